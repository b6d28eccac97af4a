//! The project's chores: `cargo xtask demo`, `cargo xtask test`. Each installs what is missing, and says so first.

mod steps;

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
    /// Runs every check: format, lints, documentation, tests.
    Test,
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
        Task::Test => steps::test(),
    }
}

/// The repository: the folder above this package's.
fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}
