//! What the tasks are made of. A step says what it runs, and fails when that fails.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

/// The built command line.
fn wgvae() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    target.join("release").join(format!("wgvae{}", std::env::consts::EXE_SUFFIX))
}

pub(crate) fn demo(output: &Path) -> Result<()> {
    cargo(&["build", "--release", "--features", "cli"])?;
    ensure_adapter()?;
    run(Command::new(wgvae()).arg("demo").arg("--output").arg(output))
}

pub(crate) fn test() -> Result<()> {
    ensure_component("rustfmt")?;
    ensure_component("clippy")?;
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--release", "--workspace", "--all-targets", "--features", "wgvae/cli", "--", "-D", "warnings"])?;
    cargo(&["build", "--release", "--features", "cli"])?;
    ensure_adapter()?;
    cargo(&["test", "--release", "--workspace", "--features", "wgvae/cli"])?;
    run(Command::new("cargo")
        .args(["doc", "--release", "--no-deps", "--features", "cli"])
        .env("RUSTDOCFLAGS", "-D warnings"))
}

/// Runs cargo from the repository's root.
fn cargo(arguments: &[&str]) -> Result<()> {
    run(Command::new("cargo").args(arguments))
}

fn run(command: &mut Command) -> Result<()> {
    eprintln!("xtask: {}", text(command));
    let start = Instant::now();
    let status = command.status().with_context(|| format!("could not start {}", text(command)))?;
    ensure!(status.success(), "{} failed: {status}", text(command));
    eprintln!("xtask: done in {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn text(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A component of the Rust toolchain, from rustup where it is missing.
fn ensure_component(name: &str) -> Result<()> {
    let tool = if name == "rustfmt" { "fmt" } else { name };
    if succeeds(Command::new("cargo").args([tool, "--version"])) {
        return Ok(());
    }
    eprintln!("xtask: {name} is missing; installing it with rustup");
    run(Command::new("rustup").args(["component", "add", name]))
}

/// Some adapter must be there. On Debian and its children a CPU Vulkan driver can be installed.
fn ensure_adapter() -> Result<()> {
    if has_adapter() {
        return Ok(());
    }
    let apt = succeeds(Command::new("apt-get").arg("--version"));
    ensure!(apt, "no GPU adapter was found. Install a Vulkan driver (Mesa's lavapipe runs on any CPU), or check yours");
    eprintln!(
        "xtask: no GPU adapter was found; installing Mesa's CPU Vulkan driver with apt-get (mesa-vulkan-drivers, libvulkan1)"
    );
    apt_get(&["update", "-qq"])?;
    apt_get(&["install", "-y", "-qq", "--no-install-recommends", "mesa-vulkan-drivers", "libvulkan1"])?;
    if !has_adapter() {
        bail!("there is still no GPU adapter after installing Mesa's CPU Vulkan driver");
    }
    Ok(())
}

fn has_adapter() -> bool {
    succeeds(Command::new(wgvae()).arg("adapters"))
}

/// apt-get, through sudo where we are not root.
fn apt_get(arguments: &[&str]) -> Result<()> {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    let mut command = Command::new(if is_root { "apt-get" } else { "sudo" });
    if !is_root {
        command.arg("apt-get");
    }
    run(command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}
