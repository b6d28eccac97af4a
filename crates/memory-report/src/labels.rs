//! Short names of adapters, as `view/adapters.js` has them, too.

use std::collections::HashMap;

use crate::{Adapter, Machine, MemoryReport};

/// Chooses the short names of every report's adapters. An adapter of one machine has the same name
/// in all reports. If two adapters would share a name, the later one gets a number.
pub(super) fn labels(reports: &[MemoryReport]) -> Vec<Vec<String>> {
    let mut known: HashMap<String, String> = HashMap::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut label = |machine: &Machine, adapter: &Adapter| {
        // Neither type implements `Hash`. Their JSON contains all of both.
        let own = serde_json::json!([machine, adapter]).to_string();
        let name = known.entry(own).or_insert_with(|| {
            let name = short(adapter);
            let count = counts.entry(name.clone()).or_default();
            *count += 1;
            if *count == 1 { name } else { format!("{name} #{count}") }
        });
        name.clone()
    };
    let mut of = |report: &MemoryReport| -> Vec<String> {
        report.adapters.iter().map(|adapter| label(&report.machine, adapter)).collect()
    };
    reports.iter().map(&mut of).collect()
}

/// Returns name and version of an adapter, without the details in brackets that drivers add.
fn short(adapter: &Adapter) -> String {
    let name = adapter.name.split(" (").next().unwrap_or(&adapter.name);
    format!("{name}, {}", version(&adapter.driver).unwrap_or(&adapter.backend))
}

/// Returns the first word of a driver's description that looks like a version, and the word before
/// it.
fn version(driver: &str) -> Option<&str> {
    let text = driver.split(" (").next()?;
    let word = text.split(' ').find(|word| word.contains('.') && word.chars().any(|letter| letter.is_ascii_digit()))?;
    let at = text.find(word)?;
    let before = text[..at].trim_end().rfind(' ').map_or(0, |space| space + 1);
    Some(text[before..].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_adapter_has_one_name_in_all_reports_and_two_have_two() {
        let adapter = |driver: &str| Adapter {
            name: "card (rev 2)".to_owned(),
            backend: "Vulkan".to_owned(),
            device_type: "DiscreteGpu".to_owned(),
            driver: driver.to_owned(),
            pci_id: "10de:1".to_owned(),
            limits: wgvae::device::DeviceLimits::webgpu_default(),
        };
        let report = |cpus, adapters: &[&str]| MemoryReport {
            schema: String::new(),
            version: 1,
            wgvae: String::new(),
            machine: Machine { os: "linux".to_owned(), arch: "x86_64".to_owned(), cpus },
            adapters: adapters.iter().map(|driver| adapter(driver)).collect(),
            measurements: Vec::new(),
        };
        let reports =
            [report(2, &["NVIDIA 1.2", "NVIDIA 3.4"]), report(4, &["NVIDIA 1.2"]), report(2, &["NVIDIA 1.2"])];
        let expected = [&["card, NVIDIA 1.2", "card, NVIDIA 3.4"][..], &["card, NVIDIA 1.2 #2"], &["card, NVIDIA 1.2"]];
        assert_eq!(labels(&reports), expected);
    }

    #[test]
    fn drivers_are_named_by_their_version() {
        for (driver, expected) in [
            ("llvmpipe Mesa 22.3.6 (LLVM 15.0.6)", Some("Mesa 22.3.6")),
            ("NVIDIA 580.65.06", Some("NVIDIA 580.65.06")),
            ("31.0.101.5186", Some("31.0.101.5186")),
            ("Metal", None),
            ("", None),
        ] {
            assert_eq!(version(driver), expected, "{driver}");
        }
    }
}
