//! Compilation of the kernels for GPUs that are not present. `tools/isa` does the work, with
//! drivers that are unpacked here.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::{run as run_command, selected};
use crate::install::ensure_program;
use crate::mesa::{Mesa, Suite};
use crate::paths::target;

/// Fetches the drivers, builds `tools/isa`, and runs it with `arguments`.
pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    // The drivers of Debian testing in November 2026 do not know NVIDIA's newest GPUs.
    let mesa = Mesa::newest(Suite::Unstable).context("there are no drivers to compile with")?;
    build_shim(mesa.folder())?;
    run_command(selected("build").args(["--example", "isa"]))?;
    let program = std::path::absolute(target().join("release/examples/isa"))?;
    run_command(Command::new(program).arg("--mesa").arg(mesa.folder()).args(arguments))
}

/// Runs the tests of `tools/isa`, then compares all kernels with the committed table. Other systems
/// than Debian have no drivers; then it prints that it skips this.
pub(crate) fn test() -> Result<()> {
    if !Mesa::is_for_here() {
        eprintln!("xtask: SKIPPED: kernels' machine code, which wants Debian's drivers for x86-64");
        return Ok(());
    }
    run_command(selected("test").args(["--example", "isa"]))?;
    run(&[])
}

/// Builds a shim for Intel's kernel driver, because Debian has none.
fn build_shim(mesa: &Path) -> Result<()> {
    let headers = mesa.join("root/usr/include");
    run_command(
        Command::new(ensure_program(&["cc", "gcc", "clang"], "gcc", None)?)
            .args(["-shared", "-fPIC", "-O1", "-Wall"])
            .arg("-I")
            .arg(headers.join("libdrm"))
            .arg("-idirafter")
            .arg(&headers)
            .arg("tools/isa/xe_shim.c")
            .arg("-o")
            .arg(mesa.join("libxe_shim.so")),
    )
}
