//! Facts that `wgvae doctor` collects, as plain data. It changes nothing and does not contact the
//! hub.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use wgvae::device::{Cpu, CpuOptions};
use wgvae::hub::HubOptions;
use wgvae::{Gpu, GpuOptions};
use wgvae_media::clip_files::Ffmpeg;
use wgvae_memory_report::Adapter;

/// Environment variables that make Vulkan's loader use the named drivers in place of installed
/// ones. The first one that is set counts.
const DRIVER_VARIABLES: [&str; 2] = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"];

/// Facts about this machine.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// Name of the machine's cores as a device.
    pub(super) cpu: String,
    /// Adapters, best first.
    pub(super) adapters: Vec<Adapter>,
    /// Error of opening a device on the best adapter.
    pub(super) refused: Option<String>,
    /// PCI ids of the GPUs in the machine, such as `10de:2684`, where the system lists them
    /// (Linux).
    pub(super) gpus: Vec<String>,
    /// Device files of GPUs that this user has no permission to open (Linux).
    pub(super) closed: Vec<PathBuf>,
    /// Drivers that an environment variable names in place of installed ones.
    pub(super) named: Option<NamedDrivers>,
    /// Manifest files by which Vulkan's loader finds drivers (Linux).
    pub(super) manifests: Vec<PathBuf>,
    /// State of the Hugging Face Hub's cache and settings.
    pub(super) hub: Hub,
    /// True if an `ffmpeg` is on the path.
    pub(super) ffmpeg: bool,
}

/// Drivers named by an environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedDrivers {
    pub(super) variable: &'static str,
    /// Paths in the variable that do not exist.
    pub(super) missing: Vec<PathBuf>,
}

/// Facts about the hub that need no network.
#[derive(Debug, Clone, Default)]
pub(super) struct Hub {
    /// Folder of the cache; `None` if it cannot be determined.
    pub(super) cache: Option<PathBuf>,
    /// Reason why the cache cannot be written, or why there is no cache folder.
    pub(super) closed: Option<String>,
    pub(super) has_token: bool,
    pub(super) offline: bool,
    pub(super) endpoint: Option<String>,
}

impl Facts {
    /// Collects the facts of this machine, for this user and environment.
    pub(super) async fn collect() -> Self {
        let adapters = wgvae::device::adapters(None).await.unwrap_or_default();
        let refused = match adapters.is_empty() {
            true => None,
            false => Gpu::request(&GpuOptions::default()).await.err().map(|error| error.to_string()),
        };
        let cpu = match Cpu::new(&CpuOptions::default()) {
            Ok(cpu) => cpu.adapter().name.clone(),
            Err(error) => error.to_string(),
        };
        Self {
            cpu,
            adapters: adapters.iter().map(|(_, report)| report.into()).collect(),
            refused,
            gpus: gpus(Path::new("/sys/bus/pci/devices")),
            closed: closed_nodes(Path::new("/dev/dri")),
            named: named_drivers(|name| std::env::var_os(name)),
            manifests: manifests(&manifest_folders(|name| std::env::var_os(name))),
            hub: Hub::find(&HubOptions::from_env()),
            ffmpeg: is_on_path(&Ffmpeg::default().program, std::env::var_os("PATH")),
        }
    }
}

impl Hub {
    fn find(options: &HubOptions) -> Self {
        let (cache, closed) = match options.cache_folder() {
            Ok(folder) => {
                let closed = closed_folder(&folder);
                (Some(folder), closed)
            }
            Err(error) => (None, Some(error.to_string())),
        };
        Self {
            cache,
            closed,
            has_token: options.has_token(),
            offline: options.offline,
            endpoint: options.endpoint.clone(),
        }
    }
}

/// Returns the PCI ids of the display controllers below `devices`, sorted.
pub(super) fn gpus(devices: &Path) -> Vec<String> {
    const DISPLAY_CONTROLLER: &str = "0x03";
    let mut found: Vec<String> = entries(devices)
        .iter()
        .filter_map(|device| {
            let read = |name: &str| std::fs::read_to_string(device.join(name)).ok();
            let id = |name: &str| read(name).map(|text| text.trim().trim_start_matches("0x").to_owned());
            let is_display = read("class")?.starts_with(DISPLAY_CONTROLLER);
            is_display.then(|| Some(format!("{}:{}", id("vendor")?, id("device")?)))?
        })
        .collect();
    found.sort();
    found
}

/// Returns the render nodes in `folder` that this user has no permission to open.
fn closed_nodes(folder: &Path) -> Vec<PathBuf> {
    let is_node = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("renderD"));
    let is_closed = |path: &PathBuf| {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        opened.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    };
    entries(folder).into_iter().filter(is_node).filter(is_closed).collect()
}

/// Returns the drivers that an environment variable names in place of installed ones. `read` reads
/// a variable.
pub(super) fn named_drivers(read: impl Fn(&str) -> Option<OsString>) -> Option<NamedDrivers> {
    let set = |variable: &'static str| Some((variable, read(variable).filter(|value| !value.is_empty())?));
    let (variable, value) = DRIVER_VARIABLES.into_iter().find_map(set)?;
    let missing = std::env::split_paths(&value).filter(|path| !path.as_os_str().is_empty() && !path.exists()).collect();
    Some(NamedDrivers { variable, missing })
}

/// Returns the folders in which Vulkan's loader looks for drivers on Linux.
pub(super) fn manifest_folders(read: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let set = |name: &str| read(name).filter(|value| !value.is_empty());
    let home = |below: &str| set("HOME").map(|home| Path::new(&home).join(below).into_os_string());
    let lists = [
        set("XDG_CONFIG_HOME").or_else(|| home(".config")),
        set("XDG_CONFIG_DIRS").or_else(|| Some("/etc/xdg".into())),
        Some("/usr/local/etc:/etc".into()),
        set("XDG_DATA_HOME").or_else(|| home(".local/share")),
        set("XDG_DATA_DIRS").or_else(|| Some("/usr/local/share:/usr/share".into())),
    ];
    let folders = lists.into_iter().flatten();
    folders
        .flat_map(|list| std::env::split_paths(&list).collect::<Vec<_>>())
        .map(|it| it.join("vulkan/icd.d"))
        .collect()
}

/// Returns the drivers' manifest files in `folders`.
fn manifests(folders: &[PathBuf]) -> Vec<PathBuf> {
    let all = folders.iter().flat_map(|folder| entries(folder));
    all.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect()
}

/// Returns the reason why `folder` cannot be written. If it does not exist yet, tests its nearest
/// existing parent.
fn closed_folder(folder: &Path) -> Option<String> {
    let there = folder.ancestors().find(|folder| folder.exists())?;
    tempfile::tempfile_in(there).err().map(|error| error.to_string())
}

fn is_on_path(program: &Path, path: Option<OsString>) -> bool {
    let name = format!("{}{}", program.display(), std::env::consts::EXE_SUFFIX);
    path.is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(&name).is_file()))
}

/// Returns the entries of `folder`, sorted. A missing folder has none.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}
