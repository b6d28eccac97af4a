//! Building of `dist/`: the page with the repository's layout, the documents, and the npm package.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::book::{Book, DRAWINGS};
use crate::command::{output, run, selected, succeeds, text};
use crate::install::{install_packages, node, npm};
use crate::offline;
use crate::paths::target;
use crate::wasm::{self, Module};

/// Files that a visitor's browser fetches, at the same relative paths as in the repository.
const PAGE: [&str; 10] = [
    "index.html",
    "reports.html",
    "manifest.webmanifest",
    "web/src",
    "web/page",
    "web/pkg",
    "web/package.json",
    "assets",
    "crates/memory-report/src/view",
    "results/lavapipe-26.2.json",
];

/// Line of `index.html` that names the picture that links to it show.
const SOCIAL: &str = "<meta property=\"og:image\" content=\"assets/social.jpg\">";

/// Folder with the npm packages that the page contains, and their files: path there, and path in
/// `dist/`. These are whole files as published, with their licence.
const VENDOR: &str = "web/vendor";
const VENDORED: [(&str, &str); 2] =
    [("dist/bundles/mediabunny.min.mjs", "mediabunny.mjs"), ("LICENSE", "mediabunny.LICENSE")];

/// Program that bundles each program of the page and of the package into one file of `dist/`.
const BUNDLER: &str = "web/vendor/bundle.mjs";

/// Program that minifies JavaScript files.
const MINIFIER: &str = "web/vendor/minify.mjs";

/// Files that npm publishes, without the bundles in its folder `dist`: path in the repository, and
/// path in the package.
const PACKAGE: [(&str, &str); 6] = [
    ("web/package.json", "package.json"),
    ("web/README.md", "README.md"),
    ("web/src", "src"),
    ("web/pkg", "pkg"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("LICENSE-MIT", "LICENSE-MIT"),
];

/// Compiles the wasm modules into `web/pkg` and lays everything out in `dist/`.
pub(crate) fn build() -> Result<()> {
    run(&mut built("xtask-bindgen"))?;
    build_with_tools()
}

/// As [`build`], with tools that were built with the tests. Built alone they have other features,
/// so most of their dependencies would be compiled again.
pub(crate) fn build_with_tools() -> Result<()> {
    check_versions()?;
    let folder = Path::new("web/pkg");
    fs::create_dir_all(folder)?;
    wasm::compile()?;
    for module in Module::ALL {
        run(bindgen("bind", folder, module).arg(module.path()))?;
    }
    install_packages(Path::new(VENDOR))?;
    run(node()?.arg(MINIFIER).args(Module::ALL.map(|module| folder.join(format!("{}.js", module.name())))))?;
    for module in Module::ALL {
        run(bindgen("measure", folder, module).arg(module.budget().to_string()))?;
    }
    lay_out(Path::new("dist"))
}

/// Returns the command of `xtask-bindgen` that does `what` with `module`, without its last word.
fn bindgen(what: &str, folder: &Path, module: Module) -> Command {
    let mut command = Command::new(tool("xtask-bindgen"));
    command.arg(what).arg(folder).arg(module.name());
    command
}

/// Returns the command that builds a tool.
fn built(tool: &str) -> Command {
    let mut command = selected("build");
    command.args(["--bin", tool]);
    command
}

/// Writes the future address of `dist/` into its page, because pictures of links need full
/// addresses.
pub(crate) fn address(site: &str) -> Result<()> {
    ensure!(site.starts_with("https://") || site.starts_with("http://"), "{site} is no address of a site");
    let page = Path::new("dist/index.html");
    let text = fs::read_to_string(page).context("could not read dist/index.html")?;
    fs::write(page, with_address(&text, site)?).context("could not write dist/index.html")?;
    offline::write(Path::new("dist"))
}

/// Returns the page's text with the full addresses of its picture and of itself.
fn with_address(text: &str, site: &str) -> Result<String> {
    let site = site.trim_end_matches('/');
    ensure!(text.contains(SOCIAL), "index.html has no {SOCIAL}");
    let url = format!("<meta property=\"og:url\" content=\"{site}/\">\n    ");
    let whole = SOCIAL.replace("assets/", &format!("{site}/assets/"));
    Ok(text.replacen(SOCIAL, &format!("{url}{whole}"), 1))
}

/// Builds, then serves `dist/` until it is stopped.
pub(crate) fn serve(port: u16, open: bool) -> Result<()> {
    build()?;
    // Developers who rebuild want to see the new build, so nothing is kept offline.
    fs::write("dist/sw.js", "").context("could not write dist/sw.js")?;
    run(&mut built("xtask-serve"))?;
    let mut command = Command::new(tool("xtask-serve"));
    command.arg(port.to_string()).args(["dist", "examples=examples"]).stdout(Stdio::piped());
    let mut server = command.spawn().with_context(|| format!("could not start {}", text(&command)))?;
    let mut address = String::new();
    if let Some(output) = server.stdout.as_mut() {
        BufReader::new(output).read_line(&mut address)?;
    }
    let address = address.trim();
    if !address.is_empty() {
        eprintln!("xtask: serving dist/ at {address}; stop with Ctrl+C");
        if open && !succeeds(&mut opener(address)) {
            eprintln!("xtask: could not start a browser; open {address} yourself");
        }
    }
    let status = server.wait()?;
    ensure!(status.success(), "the server failed: {status}");
    Ok(())
}

/// Returns the command that opens an address in the default browser.
fn opener(address: &str) -> Command {
    let words: &[&str] = match std::env::consts::OS {
        "windows" => &["explorer"],
        "macos" => &["open"],
        _ => &["xdg-open"],
    };
    let mut command = Command::new(words[0]);
    command.arg(address);
    command
}

fn tool(name: &str) -> std::path::PathBuf {
    target().join("release").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

fn lay_out(dist: &Path) -> Result<()> {
    if dist.exists() {
        fs::remove_dir_all(dist).context("could not remove dist/")?;
    }
    for path in PAGE {
        copy(Path::new(path), &dist.join(path))?;
    }
    for (path, place) in VENDORED {
        copy(&Path::new(VENDOR).join("node_modules/mediabunny").join(path), &dist.join(VENDOR).join(place))?;
    }
    for (path, place) in PACKAGE {
        copy(Path::new(path), &dist.join("package").join(place))?;
    }
    run(node()?.arg(BUNDLER).arg(dist))?;
    pack(dist)?;
    copy(Path::new(DRAWINGS), &dist.join(DRAWINGS))?;
    Book::read()?.write(dist)?;
    offline::write(dist)?;
    eprintln!(
        "xtask: dist/ is the page, dist/docs/ the documents, dist/package/ what npm publishes, dist/wgvae.tgz the same to be installed"
    );
    Ok(())
}

/// Packs the package as one file, with a name without its version so that links to it last.
fn pack(dist: &Path) -> Result<()> {
    let mut command = npm()?;
    let name = output(command.args(["pack", "--silent", "--pack-destination"]).arg(dist).arg(format!(
        ".{}{}",
        std::path::MAIN_SEPARATOR,
        dist.join("package").display()
    )))?;
    fs::rename(dist.join(name.trim()), dist.join("wgvae.tgz")).context("npm packed nothing")
}

/// Copies a file or a whole folder. Leaves out hidden files, which belong to the build.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if !from.is_dir() {
        to.parent().map(fs::create_dir_all).transpose()?;
        fs::copy(from, to).with_context(|| format!("could not copy {} to {}", from.display(), to.display()))?;
        return Ok(());
    }
    for entry in fs::read_dir(from).with_context(|| format!("could not read {}", from.display()))? {
        let name = entry?.file_name();
        if !name.to_string_lossy().starts_with('.') {
            copy(&from.join(&name), &to.join(&name))?;
        }
    }
    Ok(())
}

/// Checks that the glue is made by exactly the version of wasm-bindgen that the crate is compiled
/// with.
fn check_versions() -> Result<()> {
    let lock = fs::read_to_string("Cargo.lock").context("could not read Cargo.lock")?;
    let versions = |name| locked_versions(&lock, name);
    let (used, tool) = (versions("wasm-bindgen"), versions("wasm-bindgen-cli-support"));
    ensure!(
        !used.is_empty() && used == tool,
        "Cargo.lock has wasm-bindgen {used:?} and wasm-bindgen-cli-support {tool:?}: they must be the same version. \
         Change wasm-bindgen-cli-support in xtask/bindgen/Cargo.toml"
    );
    Ok(())
}

/// Returns the versions of the package `name` in the text of a Cargo.lock.
fn locked_versions<'a>(lock: &'a str, name: &str) -> Vec<&'a str> {
    let header = format!("name = \"{name}\"");
    let lines: Vec<&str> = lock.lines().collect();
    let pairs = lines.windows(2).filter(|pair| pair[0] == header);
    pairs.filter_map(|pair| pair[1].strip_prefix("version = \"")?.strip_suffix('"')).collect()
}

#[cfg(test)]
mod tests {
    use super::{check_versions, locked_versions, with_address};

    #[test]
    fn the_lock_file_tells_versions() {
        let lock =
            "[[package]]\nname = \"a\"\nversion = \"1.2.3\"\n\n[[package]]\nname = \"a-b\"\nversion = \"4.5.6\"\n";
        assert_eq!(locked_versions(lock, "a"), ["1.2.3"]);
        assert_eq!(locked_versions(lock, "a-b"), ["4.5.6"]);
        assert!(locked_versions(lock, "b").is_empty());
    }

    #[test]
    fn links_to_a_site_have_a_picture() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../index.html");
        let text = with_address(&std::fs::read_to_string(page).unwrap(), "https://example.org/wgvae/").unwrap();
        assert!(text.contains("property=\"og:image\" content=\"https://example.org/wgvae/assets/social.jpg\""));
        assert!(text.contains("property=\"og:url\" content=\"https://example.org/wgvae/\""));
        with_address("<html>", "https://example.org").unwrap_err();
    }

    #[test]
    fn the_glue_is_made_by_the_crates_own_version() {
        std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).unwrap();
        check_versions().unwrap();
    }
}
