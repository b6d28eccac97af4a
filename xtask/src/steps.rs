//! What `demo` and `test` are made of. A step says what it runs, and fails when that fails.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::command::{cargo, run};
use crate::install::{ensure_adapter, ensure_component};
use crate::{browser, wasm, web};

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

/// The built command line.
pub(crate) fn wgvae() -> PathBuf {
    target().join("release").join(format!("wgvae{}", std::env::consts::EXE_SUFFIX))
}

pub(crate) fn demo(output: &Path) -> Result<()> {
    cargo(&["build", "--release", "--features", "cli"])?;
    ensure_adapter(&wgvae())?;
    run(Command::new(wgvae()).arg("demo").arg("--output").arg(output))
}

pub(crate) fn test() -> Result<()> {
    ensure_component("rustfmt")?;
    ensure_component("clippy")?;
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--release", "--workspace", "--all-targets", "--features", "wgvae/cli", "--", "-D", "warnings"])?;
    wasm::lint()?;
    cargo(&["build", "--release", "--features", "cli"])?;
    ensure_adapter(&wgvae())?;
    cargo(&["test", "--release", "--workspace", "--features", "wgvae/cli"])?;
    run(Command::new("cargo")
        .args(["doc", "--release", "--no-deps", "--features", "cli"])
        .env("RUSTDOCFLAGS", "-D warnings"))?;
    web::build()?;
    browser::test(&[])
}

/// The browser tests alone: all, or those named.
pub(crate) fn test_browser(names: &[String]) -> Result<()> {
    cargo(&["build", "--release", "--features", "cli"])?;
    ensure_adapter(&wgvae())?;
    web::build()?;
    browser::test(names)
}
