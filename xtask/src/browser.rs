//! Runs programs of Node: the tests in real browsers and the comparison with onnxruntime-web.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, anyhow, ensure};

use crate::command::{run, text};
use crate::install::{ensure_program, install_packages, node};
use crate::mesa::Mesa;
use crate::paths::wgvae;
use crate::web;

/// Folders whose lock files name the npm packages for the tests: the tests' own, and those of the
/// example that they open.
const TEST_FOLDERS: [&str; 2] = ["tests/browser", "examples/onnx"];

/// Runs the tests in `tests/browser`: all, or the named ones. `dist/` must be built. `driver` is
/// for programs of Node that use a GPU.
pub(crate) fn test(names: &[String], driver: Option<&Mesa>) -> Result<()> {
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
    node.arg("--test-reporter=spec")
        .arg(folder.join("run.mjs"))
        .args(names)
        .env("WGVAE_CLI", std::path::absolute(wgvae())?)
        .env("WGVAE_CHROMIUM", chromium)
        .env("WGVAE_FIREFOX", firefox);
    if let Some(driver) = driver {
        driver.offer(&mut node);
    }
    match std::env::var_os("WGVAE_BROWSER") {
        Some(_) => run(&mut node),
        None => in_both(node),
    }
}

/// Runs the tests in Chromium and in Firefox at once, because Chromium compiles shaders on one core
/// most of the time. Firefox's output is printed after Chromium's.
fn in_both(mut node: Command) -> Result<()> {
    eprintln!("xtask: {} in Firefox, besides", text(&node));
    let firefox = node.env("WGVAE_BROWSER", "firefox").stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
    let printed = std::thread::spawn(move || firefox.wait_with_output());
    let chromium = run(node.env("WGVAE_BROWSER", "chromium").stdout(Stdio::inherit()));
    let firefox = printed.join().map_err(|_| anyhow!("the thread that reads what Firefox's tests print ended"))??;
    std::io::stdout().write_all(&firefox.stdout)?;
    ensure!(firefox.status.success(), "the tests in Firefox failed: {}", firefox.status);
    chromium
}

/// Runs the comparison in `benches/browser`, which finds any browser with WebGPU itself.
pub(crate) fn bench(arguments: &[OsString]) -> Result<()> {
    web::build()?;
    let folder = Path::new("benches/browser");
    let mut node = node()?;
    install_packages(folder)?;
    run(node.arg(folder.join("run.mjs")).args(arguments))
}
