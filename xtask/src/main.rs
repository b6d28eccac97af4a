//! The project's chores: `cargo xtask demo`, `cargo xtask test`, `cargo xtask web` and what serves,
//! tests and measures it. Each installs what is missing, and says so first.

mod book;
mod browser;
mod command;
mod gpu_day;
mod install;
mod isa;
mod links;
mod mesa;
mod offline;
mod paths;
mod python;
mod steps;
mod times;
mod wasm;
mod web;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Chores of wgvae. Run from anywhere in the repository.")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Decodes the embedded latents with the embedded model: writes a picture.
    Demo {
        /// Where the picture goes.
        #[arg(short, long, default_value = "demo.png")]
        output: PathBuf,
    },
    /// Runs every check: format, lints, documentation, tests, in the browser too.
    Test {
        /// Sweeps every budget and every size; without it, some of each.
        #[arg(long)]
        full: bool,
    },
    /// Builds the page and the npm package into dist/.
    Web {
        /// Where the page will be, such as `https://example.org/wgvae/`: links to it show a
        /// picture, which must have a whole address.
        #[arg(long)]
        site: Option<String>,
    },
    /// Builds dist/ and serves it to this machine.
    Serve {
        /// Where to listen; 0 takes any free port.
        #[arg(long, default_value_t = 8080)]
        port: u16,
        /// Opens the page in the default browser.
        #[arg(long)]
        open: bool,
    },
    /// Builds dist/ and runs the tests in Chromium and Firefox: all, or the files of tests/browser
    /// named.
    TestBrowser {
        /// Names without `.test.mjs`, for example `numbers`.
        names: Vec<String>,
    },
    /// Builds the Python wheel from its sdist and runs all tests of Python in a fresh environment,
    /// with torch, diffusers and Ray.
    TestPython {
        /// Only the tests that need numpy alone, with the module that cargo builds: what `test`
        /// runs.
        #[arg(long)]
        plain: bool,
    },
    /// Compiles every kernel by the drivers of GPUs that are not here, and compares registers,
    /// spills and instructions with benches/results/isa.json.
    Isa {
        /// Passed on to tools/isa: `--accept` writes the table anew, `--help` says what else there
        /// is.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Measures everything about the GPU that is here, in under 25 minutes:
    /// benches/results/gpu-day-*.json and .md.
    GpuDay {
        /// Passed on: `--only decodes,bands`, `--limit SECONDS` for each part, `--quick`, `--out
        /// FOLDER`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Builds dist/ and compares with onnxruntime-web in a browser.
    BenchBrowser {
        /// Passed on to benches/browser/run.mjs.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    let output = std::env::current_dir()?;
    std::env::set_current_dir(root())?;
    match task {
        Task::Demo { output: name } => steps::demo(&output.join(name)),
        Task::Test { full } => steps::test(full),
        Task::Web { site } => web::build().and_then(|()| site.map_or(Ok(()), |site| web::address(&site))),
        Task::Serve { port, open } => web::serve(port, open),
        Task::TestBrowser { names } => steps::test_browser(&names),
        Task::TestPython { plain } => steps::test_python(plain),
        Task::Isa { arguments } => isa::run(&arguments),
        Task::GpuDay { arguments } => gpu_day::run(&arguments),
        Task::BenchBrowser { arguments } => browser::bench(&arguments),
    }
}

/// The repository: the folder above this package's.
fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}
