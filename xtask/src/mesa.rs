//! A newer Mesa than the system's, unpacked below `target/`.
//!
//! Its CPU driver is for tests: Debian 12's runs our kernels two to five times slower, depending on
//! the CPU. Its GPU drivers, and the shims that show them GPUs that are not present, are for `cargo
//! xtask isa`.
//!
//! Nothing is installed. The packages come with their own C library, and their own loader starts
//! the programs that use them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command::{output, run, succeeds};
use crate::install::has_apt;
use crate::paths::target;

/// Release of Debian.
#[derive(Clone, Copy)]
pub(crate) enum Suite {
    /// Testing, the next release: newer than any stable one, with packages that were tried in
    /// unstable before.
    Testing,
    /// Unstable: in no release yet, with drivers for the newest GPUs.
    Unstable,
}

impl Suite {
    fn name(self) -> &'static str {
        match self {
            Self::Testing => "testing",
            Self::Unstable => "unstable",
        }
    }
}

/// Folder of libraries in a package.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Packages with the drivers, the shims, their loader, and a library for programs that are linked
/// to an older C library.
const PACKAGES: [&str; 4] = ["mesa-vulkan-drivers", "mesa-drm-shim", "libvulkan1", "libstdc++6"];

/// Packages with headers that our own shim includes, without their dependencies.
const HEADERS: [&str; 2] = ["libdrm-dev", "linux-libc-dev"];

/// Packages that a whole system needs, but no program.
const UNWANTED: [&str; 5] = ["debconf", "dpkg", "libc-bin", "perl", "tar"];

/// Drivers whose manifests are written, by their file names. The CPU driver comes last, so that its
/// manifest shows that all files are complete.
const DRIVERS: [&str; 6] = ["asahi", "freedreno", "intel", "nouveau", "radeon", CPU];
const CPU: &str = "lvp";

/// Folder in which programs find drivers.
pub(crate) struct Mesa {
    folder: PathBuf,
}

impl Mesa {
    /// Unpacks the newest Mesa of `suite`, unless that was done before.
    ///
    /// # Errors
    /// If Debian has none for this machine, or cannot be reached.
    pub(crate) fn newest(suite: Suite) -> Result<Self> {
        let mesa = Self { folder: std::path::absolute(target().join(format!("mesa-{}", suite.name())))? };
        if !mesa.manifest(CPU).is_file() {
            unpack(suite.name(), &mesa.folder)?;
        }
        Ok(mesa)
    }

    /// Returns true if this is a Debian, and it has packages for this machine.
    pub(crate) fn is_for_here() -> bool {
        cfg!(all(target_os = "linux", target_arch = "x86_64")) && has_apt() && Path::new(KEYRING).is_file()
    }

    /// Returns the folder. It contains `root` with the packages' files, and a manifest for each
    /// driver (`radeon.json` and so on).
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes `cargo` run the programs that it builds on the CPU driver.
    pub(crate) fn run_by(&self, cargo: &mut Command) {
        cargo
            .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", self.runner())
            .env("VK_DRIVER_FILES", self.manifest(CPU));
    }

    /// Tells the tests in JavaScript how to run a program on the CPU driver. The tests themselves
    /// and their browsers keep the system's driver.
    pub(crate) fn offer(&self, node: &mut Command) {
        node.env("WGVAE_RUNNER", self.runner()).env("WGVAE_DRIVER", self.manifest(CPU));
    }

    /// Returns the words before a program, as one string.
    fn runner(&self) -> OsString {
        let words = [self.loader().into_os_string(), "--library-path".into(), self.libraries().into_os_string()];
        words.join(&OsString::from(" "))
    }

    /// Returns true if a program starts with the CPU driver.
    pub(crate) fn starts(&self, program: &Path, argument: &str) -> bool {
        let mut command = Command::new(self.loader());
        command.arg("--library-path").arg(self.libraries()).arg(program).arg(argument);
        succeeds(command.env("VK_DRIVER_FILES", self.manifest(CPU)))
    }

    fn loader(&self) -> PathBuf {
        self.libraries().join("ld-linux-x86-64.so.2")
    }

    fn libraries(&self) -> PathBuf {
        self.folder.join("root").join(LIBRARIES)
    }

    fn manifest(&self, driver: &str) -> PathBuf {
        self.folder.join(format!("{driver}.json"))
    }
}

/// Fetches the drivers and their dependencies, and writes the manifests that the Vulkan loader
/// reads.
fn unpack(suite: &str, folder: &Path) -> Result<()> {
    ensure!(Mesa::is_for_here(), "this is no Debian on x86-64");
    let mirror = mirror()?;
    eprintln!("xtask: unpacking the Vulkan drivers of Debian {suite} into {}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    for part in ["lists/partial", "cache/archives/partial", "packages", "root"] {
        fs::create_dir_all(folder.join(part))?;
    }
    fs::write(folder.join("sources.list"), format!("deb [signed-by={KEYRING}] {mirror} {suite} main\n"))?;
    run(apt("apt-get", folder).arg("update"))?;
    let download = needed(folder)?;
    run(apt("apt-get", folder).arg("download").args(download).args(HEADERS).current_dir(folder.join("packages")))?;
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
    for name in DRIVERS {
        let driver = folder.join("root").join(LIBRARIES).join(format!("libvulkan_{name}.so"));
        ensure!(driver.is_file(), "the packages have no {}", driver.display());
        let manifest = format!(
            "{{\"file_format_version\":\"1.0.1\",\"ICD\":{{\"library_path\":\"{}\",\"api_version\":\"1.4.0\"}}}}\n",
            driver.display()
        );
        fs::write(folder.join(format!("{name}.json")), manifest)?;
    }
    Ok(())
}

/// Returns the site from which this machine gets Debian's packages.
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

/// Returns the packages that `PACKAGES` depend on, and `PACKAGES` themselves.
fn needed(folder: &Path) -> Result<Vec<String>> {
    let without = ["recommends", "suggests", "conflicts", "breaks", "replaces", "enhances"];
    let lines = output(
        apt("apt-cache", folder)
            .args(["depends", "--recurse"])
            .args(without.map(|kind| format!("--no-{kind}")))
            .args(PACKAGES),
    )?;
    // Package names stand at the start of a line, and their dependencies after spaces. Names that
    // several packages provide are in angle brackets.
    let names = lines.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_alphanumeric()));
    let mut names: Vec<String> = names.filter(|name| !is_unwanted(name)).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

fn is_unwanted(package: &str) -> bool {
    UNWANTED.iter().any(|name| package.starts_with(name))
}

/// Returns an apt program that knows one release only, and does not touch the system's state.
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
