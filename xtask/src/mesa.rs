//! A newer Mesa than the system's. Its CPU driver is for tests: Debian 12's runs our kernels two to
//! five times slower, by the CPU. Its drivers of GPUs, and the shims by which they see GPUs that
//! are not there, are for `cargo xtask isa`. Nothing is installed: the packages are unpacked below
//! `target/`, with their own C library, and their own loader starts the programs that use them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command::{output, run, succeeds};
use crate::install::has_apt;
use crate::paths::target;

/// Which of Debian's releases.
#[derive(Clone, Copy)]
pub(crate) enum Suite {
    /// The next: newer than any stable one, and its packages have been tried in unstable before.
    Testing,
    /// What is in no release yet: the newest GPUs.
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

/// Where packages have their libraries.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// What has the drivers and the shims, and what loads them and the programs that are linked to an
/// older C library.
const PACKAGES: [&str; 4] = ["mesa-vulkan-drivers", "mesa-drm-shim", "libvulkan1", "libstdc++6"];

/// Headers that our own shim includes. Wanted without all that they depend on.
const HEADERS: [&str; 2] = ["libdrm-dev", "linux-libc-dev"];

/// What is in these is for a whole system, not for a program.
const UNWANTED: [&str; 5] = ["debconf", "dpkg", "libc-bin", "perl", "tar"];

/// The drivers whose manifests are written: as their files are called. The CPU's is the last that
/// is written, so that its presence says that all is there.
const DRIVERS: [&str; 6] = ["asahi", "freedreno", "intel", "nouveau", "radeon", CPU];
const CPU: &str = "lvp";

/// Where programs find drivers.
pub(crate) struct Mesa {
    folder: PathBuf,
}

impl Mesa {
    /// Unpacks the newest of `suite`, if that was not done before.
    ///
    /// # Errors
    /// Where Debian has none for this machine, or cannot be reached.
    pub(crate) fn newest(suite: Suite) -> Result<Self> {
        let mesa = Self { folder: std::path::absolute(target().join(format!("mesa-{}", suite.name())))? };
        if !mesa.manifest(CPU).is_file() {
            unpack(suite.name(), &mesa.folder)?;
        }
        Ok(mesa)
    }

    /// Whether Debian has packages for this machine, and this is a Debian.
    pub(crate) fn is_for_here() -> bool {
        cfg!(all(target_os = "linux", target_arch = "x86_64")) && has_apt() && Path::new(KEYRING).is_file()
    }

    /// Has `root`, the packages' files, and a manifest for each driver, `radeon.json` and so on.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes `cargo` run what it builds on the CPU driver.
    pub(crate) fn run_by(&self, cargo: &mut Command) {
        cargo
            .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", self.runner())
            .env("VK_DRIVER_FILES", self.manifest(CPU));
    }

    /// Tells the tests in JavaScript how to run a program on the CPU driver, and leaves them and
    /// their browsers the system's.
    pub(crate) fn offer(&self, node: &mut Command) {
        node.env("WGVAE_RUNNER", self.runner()).env("WGVAE_DRIVER", self.manifest(CPU));
    }

    /// What comes before a program, in words.
    fn runner(&self) -> OsString {
        let words = [self.loader().into_os_string(), "--library-path".into(), self.libraries().into_os_string()];
        words.join(&OsString::from(" "))
    }

    /// Whether a program starts with the CPU driver.
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

/// Fetches the drivers and what they need, and writes the manifests that the Vulkan loader reads.
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
    // Names stand at the start of a line, what they depend on behind spaces, names that several
    // packages provide in angle brackets.
    let names = lines.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_alphanumeric()));
    let mut names: Vec<String> = names.filter(|name| !is_unwanted(name)).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

fn is_unwanted(package: &str) -> bool {
    UNWANTED.iter().any(|name| package.starts_with(name))
}

/// An apt program that knows one release only, and leaves what the system knows alone.
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
