//! Service worker of `dist/`, which must know every file of the page.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest as _, Sha256};

/// Program of the worker, which handles the files.
const PROGRAM: &str = "web/page/offline-worker.js";

/// Files that a visitor without a network needs, as paths in `dist/` or beginnings of them: the
/// page, its text and the demo.
const KEPT: [&str; 23] = [
    "index.html",
    "reports.html",
    "manual.html",
    "package.html",
    "manifest.webmanifest",
    // Programs are bundled into whole files. Their sources lie beside them only for reading.
    "web/page/main.js",
    "web/page/reports-page.js",
    "web/page/start-worker.js",
    "web/page/style.css",
    "web/page/worker.js",
    "web/src/worker-host.js",
    "web/src/thread.js",
    "web/pkg/wgvae_bg.wasm",
    "web/pkg/wgvae_cpu.js",
    "web/pkg/wgvae_cpu_bg.wasm",
    "web/pkg/wgvae_cpu_threads.js",
    "web/pkg/wgvae_cpu_threads_bg.wasm",
    "web/vendor/",
    "web/package.json",
    "assets/icon",
    "assets/demo/",
    "crates/memory-report/src/view/report.css",
    "results/",
];

/// Endings of files among them that the page never reads.
const ENDINGS_LEFT: [&str; 2] = [".d.ts", ".LICENSE"];

/// Writes `sw.js` into `dist`, which must contain everything else by then.
pub(crate) fn write(dist: &Path) -> Result<()> {
    let program = fs::read_to_string(PROGRAM).with_context(|| format!("could not read {PROGRAM}"))?;
    let mut hashes = BTreeMap::new();
    for file in files(dist)? {
        let path = file.strip_prefix(dist)?.to_string_lossy().replace('\\', "/");
        if is_kept(&path) {
            let bytes = fs::read(&file).with_context(|| format!("could not read {}", file.display()))?;
            hashes.insert(path, Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        }
    }
    fs::write(dist.join("sw.js"), with_files(&program, &hashes)).context("could not write dist/sw.js")
}

fn is_kept(path: &str) -> bool {
    KEPT.iter().any(|start| path.starts_with(start)) && !ENDINGS_LEFT.iter().any(|end| path.ends_with(end))
}

/// Returns the program after a table of the files. Paths are those of the repository, so no
/// character in them needs escaping.
fn with_files(program: &str, hashes: &BTreeMap<String, String>) -> String {
    let rows: String = hashes.iter().map(|(path, hash)| format!("  '{path}': '{hash}',\n")).collect();
    format!("globalThis.FILES = {{\n{rows}}};\n{program}")
}

/// Returns all files of a folder and its subfolders.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("could not read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{is_kept, with_files};

    #[test]
    fn the_page_is_kept_and_the_package_is_not() {
        for path in [
            "index.html",
            "web/pkg/wgvae_bg.wasm",
            "web/pkg/wgvae_cpu.js",
            "web/pkg/wgvae_cpu_threads_bg.wasm",
            "web/src/thread.js",
            "web/page/main.js",
            "assets/demo/latents.safetensors",
            "crates/memory-report/src/view/report.css",
            "results/lavapipe-26.2.json",
        ] {
            assert!(is_kept(path), "{path}");
        }
        for path in
            ["package/src/index.js", "wgvae.tgz", "web/page/view.js", "assets/demo.png", "web/src/index.d.ts", "sw.js"]
        {
            assert!(!is_kept(path), "{path}");
        }
    }

    #[test]
    fn another_file_is_another_worker() {
        let text = |hash: &str| with_files("program", &BTreeMap::from([("a.js".to_owned(), hash.to_owned())]));
        assert_eq!(text("00"), "globalThis.FILES = {\n  'a.js': '00',\n};\nprogram");
        assert_ne!(text("00"), text("01"));
    }
}
