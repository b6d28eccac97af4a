//! Checks of a machine: turns each fact into one line with advice.

use serde::Serialize;
use wgvae_memory_report::Adapter;

use super::facts::{Facts, Hub};

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// All is well; there is nothing to do.
    Ok,
    /// Optional, or an improvement.
    Hint,
    /// Required: nothing can be decoded without it.
    Missing,
}

/// One line of the output.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Check {
    /// Subject of the check.
    pub(super) name: String,
    /// Result of the check.
    pub(super) state: State,
    /// Finding and advice.
    pub(super) text: String,
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match self.state {
            State::Ok => "ok",
            State::Hint => "hint",
            State::Missing => "missing",
        };
        write!(f, "{state:<8} {:<16} {}", self.name, self.text)
    }
}

fn ok(name: impl Into<String>, text: impl Into<String>) -> Check {
    Check { name: name.into(), state: State::Ok, text: text.into() }
}

fn hint(name: impl Into<String>, text: impl Into<String>) -> Check {
    Check { name: name.into(), state: State::Hint, text: text.into() }
}

fn missing(name: impl Into<String>, text: impl Into<String>) -> Check {
    Check { name: name.into(), state: State::Missing, text: text.into() }
}

/// Major version of Mesa with which the CPU driver was measured. It was compared with the version
/// of Debian 12.
const MEASURED_MESA: u32 = 26;
/// Instructions for installing a Mesa driver.
const MESA_PACKAGES: &str = "Debian and Ubuntu: apt install mesa-vulkan-drivers libvulkan1; Fedora: dnf install mesa-vulkan-drivers vulkan-loader";

/// Instructions for getting NVIDIA's driver.
const NVIDIA_DRIVER: &str = "install NVIDIA's driver with its Vulkan part; in a container, set NVIDIA_DRIVER_CAPABILITIES=graphics,compute,utility";

/// Returns all checks, ordered so that prerequisites come first.
pub(super) fn checks(facts: &Facts) -> Vec<Check> {
    let mut checks = vec![ok("cpu", &facts.cpu)];
    checks.extend(drivers(facts));
    match facts.adapters.first() {
        None => {
            let text = format!("none, so decodes run on the CPU. For a GPU: {}", no_adapter_advice(facts));
            checks.push(hint("adapter", text));
        }
        Some(best) => {
            let adapters = facts.adapters.iter().enumerate();
            checks.extend(adapters.map(|(index, adapter)| ok(format!("adapter {index}"), described(adapter))));
            checks.extend(of_best(best, facts));
        }
    }
    checks.extend(hub(&facts.hub));
    checks.push(if facts.ffmpeg {
        ok("ffmpeg", "found, for clips in .mp4, .webm, .mov and the like")
    } else {
        hint(
            "ffmpeg",
            "not on the path: clips in .mp4, .webm, .mov and the like need it, .y4m and numbered pictures do not",
        )
    });
    checks
}

/// Checks for reasons that hide a driver or a GPU from Vulkan.
fn drivers(facts: &Facts) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(named) = &facts.named {
        let paths: Vec<String> = named.missing.iter().map(|path| path.display().to_string()).collect();
        let text = format!("names files that do not exist ({}): correct or unset it", paths.join(", "));
        checks.push(if paths.is_empty() {
            ok(named.variable, "names drivers, and all of them exist")
        } else {
            hint(named.variable, text)
        });
    }
    for node in &facts.closed {
        let text =
            "cannot be opened by this user: join the group that owns it (often render or video), and log in again";
        checks.push(hint("permission", format!("{} {text}", node.display())));
    }
    for gpu in facts.gpus.iter().filter(|gpu| facts.adapters.iter().all(|adapter| adapter.pci_id != **gpu)) {
        if let Some((vendor, advice)) = vendor_advice(gpu) {
            checks.push(hint("GPU", format!("{vendor}'s {gpu} is in this machine, but no driver offers it: {advice}")));
        }
    }
    checks
}

/// Returns the vendor of the GPU with this PCI id and how to get its driver. None for graphics
/// without shaders, as servers have.
fn vendor_advice(pci_id: &str) -> Option<(&'static str, String)> {
    let mesa = || format!("install Mesa's ({MESA_PACKAGES})");
    match pci_id.split(':').next()? {
        "10de" => Some(("NVIDIA", NVIDIA_DRIVER.to_owned())),
        "1002" => Some(("AMD", mesa())),
        "8086" => Some(("Intel", mesa())),
        _ => None,
    }
}

fn no_adapter_advice(facts: &Facts) -> String {
    if !cfg!(target_os = "linux") {
        return "install the driver of the GPU, from its maker or by the system's updates".to_owned();
    }
    if facts.named.is_some() {
        return "the drivers that an environment variable names offer none".to_owned();
    }
    match facts.manifests.as_slice() {
        [] => format!(
            "no driver for Vulkan is installed. For AMD, Intel, or the CPU alone, {MESA_PACKAGES}; for NVIDIA, NVIDIA's"
        ),
        found => {
            let files: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
            format!(
                "none of the installed drivers ({}) starts, or Vulkan's loader, libvulkan.so.1, is missing ({MESA_PACKAGES})",
                files.join(", ")
            )
        }
    }
}

fn described(adapter: &Adapter) -> String {
    format!("{} ({}, {}, {})", adapter.name, adapter.backend, adapter.device_type, adapter.driver)
}

/// Checks the adapter that decodes use by default.
fn of_best(best: &Adapter, facts: &Facts) -> Vec<Check> {
    let mut checks = vec![match &facts.refused {
        None => ok("device", "opens, and has all that decodes need"),
        Some(why) => missing("device", why.clone()),
    }];
    if best.device_type == "Cpu" {
        checks.push(hint("CPU only", "decodes run on the cores of this machine. If it has a GPU, install its driver"));
    }
    if let Some(major) = mesa_version(&best.driver).filter(|major| best.device_type == "Cpu" && *major < MEASURED_MESA)
    {
        let text = format!(
            "Mesa {major} on the CPU: kernels ran two to five times as fast with Mesa {MEASURED_MESA} as with 22"
        );
        checks.push(hint("driver", text));
    }
    checks.push(if best.limits.shader_f16 {
        ok("shader-f16", "yes")
    } else {
        hint("shader-f16", "no: --precision f16 still works, with halves packed in pairs. A newer driver may have it")
    });
    checks
}

/// Parses the major version of Mesa from a driver's description.
fn mesa_version(driver: &str) -> Option<u32> {
    let (_, after) = driver.split_once("Mesa ")?;
    after.split('.').next()?.parse().ok()
}

fn hub(hub: &Hub) -> Vec<Check> {
    let mut checks = vec![match (&hub.cache, &hub.closed) {
        (Some(folder), None) => ok("hub cache", folder.display().to_string()),
        (Some(folder), Some(why)) => {
            let text = format!("{} cannot be written to ({why}): set HF_HOME or HF_HUB_CACHE", folder.display());
            hint("hub cache", text)
        }
        (None, why) => hint("hub cache", why.clone().unwrap_or_default()),
    }];
    checks.push(if hub.has_token {
        ok("hub token", "found")
    } else {
        hint(
            "hub token",
            "none: private and gated models (hf:...) need one, from `hf auth login` or HF_TOKEN; others do not",
        )
    });
    if hub.offline {
        checks.push(hint("hub", "HF_HUB_OFFLINE is set: only models in the cache can be opened by name"));
    }
    checks.extend(hub.endpoint.iter().map(|endpoint| ok("hub", format!("HF_ENDPOINT is {endpoint}"))));
    checks
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use wgvae::device::DeviceLimits;

    use super::super::facts::{NamedDrivers, gpus, manifest_folders, named_drivers};
    use super::*;

    fn card() -> Adapter {
        Adapter {
            name: "A card".to_owned(),
            backend: "Vulkan".to_owned(),
            device_type: "DiscreteGpu".to_owned(),
            driver: "NVIDIA 570.1".to_owned(),
            pci_id: "10de:2684".to_owned(),
            limits: DeviceLimits { shader_f16: true, ..DeviceLimits::webgpu_default() },
        }
    }

    fn cpu(driver: &str) -> Adapter {
        Adapter { device_type: "Cpu".to_owned(), driver: driver.to_owned(), pci_id: "10005:0000".to_owned(), ..card() }
    }

    /// A machine that lacks nothing.
    fn good() -> Facts {
        Facts {
            adapters: vec![card()],
            gpus: vec!["10de:2684".to_owned()],
            hub: Hub { cache: Some(PathBuf::from("/cache")), has_token: true, ..Hub::default() },
            ffmpeg: true,
            ..Facts::default()
        }
    }

    /// The only line of `state`, as it is printed.
    #[track_caller]
    fn only(facts: &Facts, state: State) -> String {
        let checks = checks(facts);
        let found: Vec<&Check> = checks.iter().filter(|check| check.state == state).collect();
        assert_eq!(found.len(), 1, "{checks:?}");
        found[0].to_string()
    }

    #[track_caller]
    fn has(line: &str, words: &[&str]) {
        assert!(words.iter().all(|word| line.contains(word)), "{words:?} are not in {line}");
    }

    #[test]
    fn a_good_machine_needs_nothing() {
        assert!(checks(&good()).iter().all(|check| check.state == State::Ok), "{:?}", checks(&good()));
    }

    #[test]
    fn without_an_adapter_it_says_how_to_get_one() {
        let none = Facts { adapters: Vec::new(), gpus: Vec::new(), ..good() };
        let line = only(&none, State::Hint);
        has(&line, &["hint", "adapter", "run on the CPU"]);
        if cfg!(target_os = "linux") {
            has(&line, &["no driver", "mesa-vulkan-drivers"]);
            let broken = Facts { manifests: vec![PathBuf::from("/usr/share/vulkan/icd.d/radeon.json")], ..none };
            has(&only(&broken, State::Hint), &["radeon.json", "libvulkan"]);
        }
    }

    #[test]
    fn a_device_that_does_not_open_is_missing() {
        let refused = Facts { refused: Some("too small".to_owned()), ..good() };
        has(&only(&refused, State::Missing), &["device", "too small"]);
    }

    #[test]
    fn variables_that_name_nothing_are_told() {
        let named = NamedDrivers { variable: "VK_DRIVER_FILES", missing: vec![PathBuf::from("/gone.json")] };
        let with_adapter = Facts { named: Some(named), ..good() };
        has(&only(&with_adapter, State::Hint), &["VK_DRIVER_FILES", "/gone.json", "unset"]);
        let without = checks(&Facts { adapters: Vec::new(), ..with_adapter });
        let states: Vec<(&str, State)> = without.iter().map(|check| (check.name.as_str(), check.state)).collect();
        assert!(states.contains(&("VK_DRIVER_FILES", State::Hint)) && states.contains(&("adapter", State::Hint)));
    }

    #[test]
    fn the_first_variable_that_is_set_counts_and_its_paths_are_looked_for() {
        let here = std::env::current_exe().expect("a test is a file");
        let list = std::env::join_paths([here.as_path(), Path::new("/gone.json")]).expect("paths without separators");
        let read = |name: &str| match name {
            "VK_DRIVER_FILES" => Some(list.clone()),
            _ => Some("/other.json".into()),
        };
        let found = named_drivers(read).expect("one is set");
        assert_eq!(found, NamedDrivers { variable: "VK_DRIVER_FILES", missing: vec![PathBuf::from("/gone.json")] });
        let old = named_drivers(|name| (name == "VK_ICD_FILENAMES").then(|| here.clone().into_os_string()));
        assert_eq!(old, Some(NamedDrivers { variable: "VK_ICD_FILENAMES", missing: Vec::new() }));
        assert_eq!(named_drivers(|_| Some("".into())), None);
    }

    #[test]
    fn a_gpu_without_a_driver_is_told_by_its_maker() {
        for (id, words) in
            [("10de:1234", "NVIDIA's driver"), ("1002:744c", "mesa-vulkan"), ("8086:56a0", "mesa-vulkan")]
        {
            let facts = Facts { gpus: vec![id.to_owned()], ..good() };
            has(&only(&facts, State::Hint), &["GPU", id, words]);
        }
        // What servers have to show a console.
        let server = Facts { gpus: vec!["1a03:2000".to_owned()], ..good() };
        assert!(checks(&server).iter().all(|check| check.state == State::Ok));
    }

    #[test]
    fn a_cpu_driver_and_an_old_mesa_are_told() {
        let names = |driver: &str| -> Vec<String> {
            let checks = checks(&Facts { adapters: vec![cpu(driver)], gpus: Vec::new(), ..good() });
            checks.into_iter().filter(|check| check.state == State::Hint).map(|check| check.name).collect()
        };
        assert_eq!(names("llvmpipe Mesa 22.3.6 (LLVM 15.0.6)"), ["CPU only", "driver"]);
        assert_eq!(names("llvmpipe Mesa 26.2.1 (LLVM 21)"), ["CPU only"]);
        assert_eq!(names("SwiftShader driver-5.0.0"), ["CPU only"]);
        let old_on_a_card = Adapter { driver: "radv Mesa 22.3.6".to_owned(), ..card() };
        assert!(
            checks(&Facts { adapters: vec![old_on_a_card], ..good() }).iter().all(|check| check.state == State::Ok)
        );
    }

    #[test]
    fn what_can_be_done_without_is_a_hint() {
        let plain = Adapter { limits: DeviceLimits::webgpu_default(), ..card() };
        has(&only(&Facts { adapters: vec![plain], ..good() }, State::Hint), &["shader-f16", "packed"]);
        let closed = Facts { closed: vec![PathBuf::from("/dev/dri/renderD128")], ..good() };
        has(&only(&closed, State::Hint), &["renderD128", "group"]);
        has(&only(&Facts { ffmpeg: false, ..good() }, State::Hint), &["ffmpeg", "path"]);
        let with = |hub: Hub| Facts { hub, ..good() };
        has(&only(&with(Hub { has_token: false, ..good().hub }), State::Hint), &["token", "HF_TOKEN"]);
        has(&only(&with(Hub { offline: true, ..good().hub }), State::Hint), &["HF_HUB_OFFLINE"]);
        let full = Hub { closed: Some("read-only".to_owned()), ..good().hub };
        has(&only(&with(full), State::Hint), &["/cache", "read-only", "HF_HOME"]);
        let homeless = Hub { cache: None, closed: Some("no home".to_owned()), ..good().hub };
        has(&only(&with(homeless), State::Hint), &["hub cache", "no home"]);
    }

    #[test]
    fn gpus_are_read_as_linux_lists_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let device = |name: &str, class: &str, vendor: &str, device: &str| {
            let place = folder.path().join(name);
            std::fs::create_dir(&place).expect("a folder");
            for (file, text) in [("class", class), ("vendor", vendor), ("device", device)] {
                std::fs::write(place.join(file), format!("{text}\n")).expect("a file");
            }
        };
        device("0000:01:00.0", "0x030000", "0x10de", "0x2684");
        device("0000:02:00.0", "0x038000", "0x1002", "0x744c");
        device("0000:03:00.0", "0x020000", "0x8086", "0x1533");
        std::fs::create_dir(folder.path().join("0000:04:00.0")).expect("a folder");
        assert_eq!(gpus(folder.path()), ["1002:744c", "10de:2684"]);
        assert!(gpus(&folder.path().join("none")).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn drivers_are_looked_for_where_the_loader_looks() {
        let folders = manifest_folders(|name| (name == "HOME").then(|| "/home/me".into()));
        for wanted in ["/usr/share", "/etc", "/home/me/.local/share", "/home/me/.config"] {
            assert!(folders.contains(&Path::new(wanted).join("vulkan/icd.d")), "{folders:?}");
        }
        let set = |name: &str| (name == "XDG_DATA_DIRS").then(|| "/a:/b".into());
        let folders = manifest_folders(set);
        assert!(folders.contains(&PathBuf::from("/b/vulkan/icd.d")), "{folders:?}");
        assert!(!folders.contains(&PathBuf::from("/usr/share/vulkan/icd.d")), "{folders:?}");
    }
}
