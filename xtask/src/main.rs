//! Tasks of the project: `cargo xtask demo`, `cargo xtask test`, `cargo xtask web`, and tasks that
//! serve, test and measure the page. Each installs what is missing, and prints it first.

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
mod words;

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
    /// Decode the embedded latents with the embedded model to a picture.
    Demo {
        /// Picture to write.
        #[arg(short, long, default_value = "demo.png")]
        output: PathBuf,
    },
    /// Run every check: format, lints, documentation and tests, including those in browsers.
    Test {
        /// Sweep every budget and every size instead of some of each.
        #[arg(long)]
        full: bool,
    },
    /// Run every kernel against its plain twin on the fastest driver: all problems, or those whose
    /// names match. `cargo k` is short for it.
    Kernels {
        /// Regular expression for the names of problems, for example `winograd_in`.
        problems: Option<String>,
    },
    /// Check comments and documents: their width, sentences, links, words and spelling.
    Words,
    /// Build the page and the npm package into dist/.
    Web {
        /// Address where the page will be, such as `https://example.org/wgvae/`; the picture that
        /// links to it show needs a full address.
        #[arg(long)]
        site: Option<String>,
    },
    /// Build dist/ and serve it to this machine.
    Serve {
        /// Port to listen on; 0 takes any free port.
        #[arg(long, default_value_t = 8080)]
        port: u16,
        /// Open the page in the default browser.
        #[arg(long)]
        open: bool,
    },
    /// Build dist/ and run the tests in Chromium and Firefox: all, or the named files of
    /// tests/browser.
    TestBrowser {
        /// Names without `.test.mjs`, for example `numbers`.
        names: Vec<String>,
    },
    /// Build the Python wheel from its sdist and run all tests of Python in a fresh environment,
    /// with torch, diffusers and Ray.
    TestPython {
        /// Run only the tests that need numpy alone, with the module that cargo builds, as `test`
        /// does.
        #[arg(long)]
        plain: bool,
    },
    /// Compile every kernel with the drivers of GPUs that are not present, and compare registers,
    /// spills and instructions with benches/results/isa.json.
    Isa {
        /// Arguments for tools/isa: `--accept` rewrites the table, `--help` lists the others.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Measure everything about the GPU of this machine, in under half an hour, to
    /// benches/results/gpu-day-*.json and .md.
    GpuDay {
        /// Arguments for the program: `--only decodes,bands`, `--limit SECONDS` for each part,
        /// `--quick`, `--out FOLDER`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Build dist/ and compare with onnxruntime-web in a browser.
    BenchBrowser {
        /// Arguments for benches/browser/run.mjs.
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
        Task::Kernels { problems } => steps::test_kernels(problems.as_deref()),
        Task::Words => words::check(),
        Task::Web { site } => web::build().and_then(|()| site.map_or(Ok(()), |site| web::address(&site))),
        Task::Serve { port, open } => web::serve(port, open),
        Task::TestBrowser { names } => steps::test_browser(&names),
        Task::TestPython { plain } => steps::test_python(plain),
        Task::Isa { arguments } => isa::run(&arguments),
        Task::GpuDay { arguments } => gpu_day::run(&arguments),
        Task::BenchBrowser { arguments } => browser::bench(&arguments),
    }
}

/// Returns the repository's folder, which contains this package's.
fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}
