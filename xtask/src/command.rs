//! Running of other programs: each is announced, timed, and must succeed.

use std::panic;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

/// Packages that every test command selects. They are always the same, so that each dependency is
/// compiled once. `xtask` is excluded because it is running.
const SELECTION: [&str; 4] = ["--release", "--workspace", "--exclude", "xtask"];

/// Returns a cargo command for all packages.
pub(crate) fn selected(task: &str) -> Command {
    let mut command = cargo();
    command.arg(task).args(SELECTION);
    command
}

/// Returns cargo without the variables that tell this program's package. Build scripts look at
/// them, so without this a `cargo xtask test` after a `cargo t` would compile TLS and all that uses
/// it again, and so would the next `cargo t`.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            command.env_remove(name);
        }
    }
    command
}

pub(crate) fn run(command: &mut Command) -> Result<()> {
    eprintln!("xtask: {}", text(command));
    let start = Instant::now();
    let status = command.status().with_context(|| format!("could not start {}", text(command)))?;
    ensure!(status.success(), "{} failed: {status}", text(command));
    eprintln!("xtask: done in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

pub(crate) fn text(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Returns the output of a program, trimmed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("could not start {}", text(command)))?;
    ensure!(output.status.success(), "{} failed: {}", text(command), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs `other` on a thread of its own while `task` runs. If both fail, returns the error of
/// `other`.
pub(crate) fn beside(other: impl FnOnce() -> Result<()> + Send, task: impl FnOnce() -> Result<()>) -> Result<()> {
    thread::scope(|scope| {
        let other = scope.spawn(other);
        let result = task();
        other.join().unwrap_or_else(|panic| panic::resume_unwind(panic)).and(result)
    })
}

/// Tells the tests how far sweeps go.
pub(crate) fn in_full(tests: &mut Command, full: bool) -> &mut Command {
    if full { tests.env("WGVAE_FULL", "1") } else { tests }
}

#[cfg(test)]
mod tests {
    use super::cargo;

    #[test]
    fn cargo_is_not_told_the_package_of_xtask() {
        let command = cargo();
        let removed: Vec<_> = command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PKG_VERSION_MAJOR"] {
            assert!(removed.iter().any(|&found| found == name), "{name}");
        }
    }
}
