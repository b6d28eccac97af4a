//! A newer Mesa CPU driver than the system's, for tests: Debian 12's runs our kernels two to five times slower, by the CPU. Nothing is installed: the packages are unpacked
//! below `target/`, with their own C library, and their own loader starts the programs that use them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command::{output, run, succeeds};
use crate::install::has_apt;
use crate::paths::target;

/// Debian's next release: newer than any stable one, and its packages have been tried in unstable before.
const SUITE: &str = "testing";

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// What the driver is, and what loads it and the programs that are linked to an older C library.
const PACKAGES: [&str; 3] = ["mesa-vulkan-drivers", "libvulkan1", "libstdc++6"];

/// What is in these is for a whole system, not for a program.
const UNWANTED: [&str; 5] = ["debconf", "dpkg", "libc-bin", "perl", "tar"];

/// Where programs find a driver.
pub(crate) struct Lavapipe {
    libraries: PathBuf,
    manifest: PathBuf,
}

impl Lavapipe {
    /// Unpacks the newest there is, if that was not done before. `None`, and why on the way, where Debian has none for this machine or the user has chosen a driver.
    pub(crate) fn newest() -> Option<Self> {
        let folder = target().join("lavapipe");
        let found = Self::in_folder(&folder).filter(|driver| driver.manifest.is_file());
        if let Some(driver) = found {
            return Some(driver);
        }
        let unpacked = unpack(&folder).and_then(|()| Self::in_folder(&folder).context("no path to the folder"));
        unpacked.inspect_err(|error| eprintln!("xtask: no newer CPU driver, the system's will do: {error:#}")).ok()
    }

    fn in_folder(folder: &Path) -> Option<Self> {
        let folder = std::path::absolute(folder).ok()?;
        let libraries = folder.join("root/usr/lib/x86_64-linux-gnu");
        Some(Self { libraries, manifest: folder.join("lavapipe.json") })
    }

    /// Makes `cargo` run what it builds on this driver.
    pub(crate) fn run_by(&self, cargo: &mut Command) {
        let words = [self.loader().into_os_string(), "--library-path".into(), self.libraries.clone().into_os_string()];
        cargo
            .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", words.join(&OsString::from(" ")))
            .env("VK_DRIVER_FILES", &self.manifest);
    }

    /// Whether a program starts with it.
    pub(crate) fn starts(&self, program: &Path, argument: &str) -> bool {
        let mut command = Command::new(self.loader());
        command.arg("--library-path").arg(&self.libraries).arg(program).arg(argument);
        succeeds(command.env("VK_DRIVER_FILES", &self.manifest))
    }

    fn loader(&self) -> PathBuf {
        self.libraries.join("ld-linux-x86-64.so.2")
    }
}

/// Fetches the driver and what it needs, and writes the manifest that the Vulkan loader reads: last, so that its presence says that all is there.
fn unpack(folder: &Path) -> Result<()> {
    ensure!(cfg!(all(target_os = "linux", target_arch = "x86_64")), "Debian's packages are for other machines");
    ensure!(has_apt() && Path::new(KEYRING).is_file(), "this is not Debian");
    let mirror = mirror()?;
    eprintln!("xtask: unpacking the CPU driver of Debian {SUITE} into {}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    for part in ["lists/partial", "cache/archives/partial", "packages", "root"] {
        fs::create_dir_all(folder.join(part))?;
    }
    let folder = std::path::absolute(folder)?;
    fs::write(folder.join("sources.list"), format!("deb [signed-by={KEYRING}] {mirror} {SUITE} main\n"))?;
    run(apt("apt-get", &folder).arg("update"))?;
    let download = needed(&folder)?;
    run(apt("apt-get", &folder).arg("download").args(download).current_dir(folder.join("packages")))?;
    for package in fs::read_dir(folder.join("packages"))? {
        let path = package?.path();
        ensure!(
            Command::new("dpkg-deb").arg("--extract").arg(&path).arg(folder.join("root")).status()?.success(),
            "could not unpack {}",
            path.display()
        );
    }
    for part in ["lists", "cache", "packages"] {
        fs::remove_dir_all(folder.join(part))?;
    }
    let driver = folder.join("root/usr/lib/x86_64-linux-gnu/libvulkan_lvp.so");
    ensure!(driver.is_file(), "the packages have no {}", driver.display());
    let manifest = format!(
        "{{\"file_format_version\":\"1.0.1\",\"ICD\":{{\"library_path\":\"{}\",\"api_version\":\"1.4.0\"}}}}\n",
        driver.display()
    );
    Ok(fs::write(folder.join("lavapipe.json"), manifest)?)
}

/// Where this machine gets Debian's packages from.
fn mirror() -> Result<String> {
    let sites = output(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(SITE)",
        "Created-By: Packages",
        "Origin: Debian",
        "Label: Debian",
    ]))?;
    Ok(sites.lines().next().context("no source of Debian's packages is set up here")?.to_owned())
}

/// The packages that `PACKAGES` depend on, themselves included.
fn needed(folder: &Path) -> Result<Vec<String>> {
    let without = ["recommends", "suggests", "conflicts", "breaks", "replaces", "enhances"];
    let lines = output(
        apt("apt-cache", folder)
            .args(["depends", "--recurse"])
            .args(without.map(|kind| format!("--no-{kind}")))
            .args(PACKAGES),
    )?;
    // Names stand at the start of a line, what they depend on behind spaces, names that several packages provide in angle brackets.
    let names = lines.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_alphanumeric()));
    let mut names: Vec<String> = names.filter(|name| !is_unwanted(name)).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

fn is_unwanted(package: &str) -> bool {
    UNWANTED.iter().any(|name| package.starts_with(name))
}

/// An apt program that knows `SUITE` only, and leaves what the system knows alone.
fn apt(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    let at = |part: &str| folder.join(part).display().to_string();
    command.arg("-qq");
    for (option, value) in [
        ("Dir::Etc::SourceList", at("sources.list")),
        ("Dir::Etc::SourceParts", "/dev/null".to_owned()),
        ("Dir::State::Lists", at("lists")),
        ("Dir::State::status", "/dev/null".to_owned()),
        ("Dir::Cache", at("cache")),
        ("APT::Sandbox::User", "root".to_owned()),
    ] {
        command.arg("-o").arg(format!("{option}={value}"));
    }
    command
}
