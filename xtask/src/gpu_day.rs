//! Measurements on a real GPU. `benches/gpu_day.rs` does them; it needs only `wgvae` beside it, so
//! it can be copied to another machine.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::command::{run as run_command, selected};
use crate::paths::target;

/// Builds the program and runs it with `arguments`. Results go to `benches/results/` unless the
/// arguments name another folder.
pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    run_command(selected("build").args(["--bins", "--example", "gpu-day"]))?;
    let mut day = Command::new(target().join(format!("release/examples/gpu-day{}", std::env::consts::EXE_SUFFIX)));
    if !arguments.iter().any(|argument| argument == "--out") {
        day.args(["--out", "benches/results"]);
    }
    run_command(day.args(arguments))
}

/// Runs a short version of all measurements, to test that they work.
pub(crate) fn test() -> Result<()> {
    run(&["--quick".into(), "--out".into(), target().join("gpu-day").into()])
}
