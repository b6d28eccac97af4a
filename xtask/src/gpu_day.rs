//! All that is to be measured where there is a GPU: `benches/gpu_day.rs` does it, which needs
//! nothing but `wgvae` beside it, and so can be carried to another machine.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::command::{run as run_command, selected};
use crate::paths::target;

/// Builds the program and runs it with `arguments`. Results go to `benches/results/`, where they
/// name no other folder.
pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    run_command(selected("build").args(["--bins", "--example", "gpu-day"]))?;
    let mut day = Command::new(target().join(format!("release/examples/gpu-day{}", std::env::consts::EXE_SUFFIX)));
    if !arguments.iter().any(|argument| argument == "--out") {
        day.args(["--out", "benches/results"]);
    }
    run_command(day.args(arguments))
}

/// All of it in short, to see that it runs.
pub(crate) fn test() -> Result<()> {
    run(&["--quick".into(), "--out".into(), target().join("gpu-day").into()])
}
