//! Runs programs of Node: the tests in real browsers and the comparison with onnxruntime-web.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::command::{in_full, run};
use crate::install::{ensure_program, install_packages, node};
use crate::mesa::Mesa;
use crate::paths::wgvae;
use crate::web;

/// Folders whose lock files name the npm packages for the tests: the tests' own, and those of the
/// example that they open.
const TEST_FOLDERS: [&str; 2] = ["tests/browser", "examples/onnx"];

/// Runs the tests in `tests/browser`: all, or the named ones. `dist/` must be built. `driver` is
/// for programs of Node that use a GPU. With `full`, all files run in both browsers.
pub(crate) fn test(names: &[String], driver: Option<&Mesa>, full: bool) -> Result<()> {
    let folder = Path::new(TEST_FOLDERS[0]);
    for file in names.iter().map(|name| folder.join(format!("{name}.test.mjs"))) {
        ensure!(file.is_file(), "there is no {}", file.display());
    }
    let mut node = node()?;
    for folder in TEST_FOLDERS {
        install_packages(Path::new(folder))?;
    }
    let chromium =
        ensure_program(&["chromium", "chromium-browser", "google-chrome"], "chromium", Some("WGVAE_CHROMIUM"))?;
    let firefox = ensure_program(&["firefox-esr", "firefox"], "firefox-esr", Some("WGVAE_FIREFOX"))?;
    node.arg(folder.join("all.mjs"))
        .args(names)
        .env("WGVAE_CLI", std::path::absolute(wgvae())?)
        .env("WGVAE_CHROMIUM", chromium)
        .env("WGVAE_FIREFOX", firefox);
    if let Some(driver) = driver {
        driver.offer(&mut node);
    }
    run(in_full(&mut node, full))
}

/// Runs the comparison in `benches/browser`, which finds any browser with WebGPU itself.
pub(crate) fn bench(arguments: &[OsString]) -> Result<()> {
    web::build()?;
    let folder = Path::new("benches/browser");
    let mut node = node()?;
    install_packages(folder)?;
    run(node.arg(folder.join("run.mjs")).args(arguments))
}
