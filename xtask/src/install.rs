//! Dependencies of the tasks from outside the repository. Installs what is missing, and prints it
//! first.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::command::{cargo, output, run, succeeds};

/// Oldest version of Node whose test runner and `fetch` the tests support.
const NODE: u32 = 20;

/// Ensures a component of the Rust toolchain; rustup installs it if missing.
pub(crate) fn ensure_component(name: &str) -> Result<()> {
    let tool = if name == "rustfmt" { "fmt" } else { name };
    if succeeds(cargo().args([tool, "--version"])) {
        return Ok(());
    }
    eprintln!("xtask: {name} is missing; installing it with rustup");
    run(Command::new("rustup").args(["component", "add", name]))
}

/// Ensures that the command line `wgvae` finds an adapter. On Debian and its derivatives a CPU
/// Vulkan driver can be installed.
pub(crate) fn ensure_adapter(wgvae: &Path) -> Result<()> {
    let has_adapter = || succeeds(Command::new(wgvae).arg("adapters"));
    if has_adapter() {
        return Ok(());
    }
    ensure!(
        has_apt(),
        "no GPU adapter was found. Install a Vulkan driver (Mesa's lavapipe runs on any CPU), or check yours"
    );
    let packages = ["mesa-vulkan-drivers", "libvulkan1"];
    apt_install("no GPU adapter was found; installing Mesa's CPU Vulkan driver", &packages)?;
    if !has_adapter() {
        bail!("there is still no GPU adapter after installing Mesa's CPU Vulkan driver");
    }
    Ok(())
}

/// Returns a program of `package`: from the path in `variable`, from the search path, or from apt.
pub(crate) fn ensure_program(names: &[&str], package: &str, variable: Option<&str>) -> Result<PathBuf> {
    if let Some(path) = variable.and_then(std::env::var_os).map(PathBuf::from) {
        ensure!(path.is_file(), "{} names {}, which is not a file", variable.unwrap_or_default(), path.display());
        return Ok(path);
    }
    let name = names[0];
    if let Some(path) = find_program(names) {
        return Ok(path);
    }
    let hint = variable.map_or_else(String::new, |variable| format!(", or set {variable} to its path"));
    ensure!(has_apt(), "{name} was not found. Install it{hint}");
    apt_install(&format!("{name} was not found"), &[package])?;
    find_program(names).ok_or_else(|| anyhow::anyhow!("{name} is still missing after installing {package}{hint}"))
}

/// Installs npm packages as the lock file in `folder` says.
pub(crate) fn install_packages(folder: &Path) -> Result<()> {
    run(npm()?.args(["ci", "--prefer-offline", "--no-audit", "--no-fund", "--prefix"]).arg(folder))
}

/// Returns Node, after checking its version.
pub(crate) fn node() -> Result<Command> {
    let node = ensure_program(&["node", "nodejs"], "nodejs", None)?;
    let version = output(Command::new(&node).arg("--version"))?;
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    ensure!(major >= Some(NODE), "expected Node {NODE} or newer, found {version} at {}", node.display());
    Ok(Command::new(node))
}

pub(crate) fn npm() -> Result<Command> {
    Ok(Command::new(ensure_program(&["npm", "npm.cmd"], "npm", None)?))
}

/// Returns the first of `names` on the search path.
pub(crate) fn find_program(names: &[&str]) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let mut candidates = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates.find(|path| path.is_file())
}

pub(crate) fn has_apt() -> bool {
    succeeds(Command::new("apt-get").arg("--version"))
}

/// Installs Debian packages, after printing `why`.
pub(crate) fn apt_install(why: &str, packages: &[&str]) -> Result<()> {
    eprintln!("xtask: {why}; installing with apt-get: {}", packages.join(", "));
    apt_get(&["update", "-qq"])?;
    let mut arguments = vec!["install", "-y", "-qq", "--no-install-recommends"];
    arguments.extend(packages);
    apt_get(&arguments)
}

/// Runs apt-get, through sudo unless the user is root.
fn apt_get(arguments: &[&str]) -> Result<()> {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    let mut command = Command::new(if is_root { "apt-get" } else { "sudo" });
    if !is_root {
        command.arg("apt-get");
    }
    run(command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}
