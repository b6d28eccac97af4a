//! Short names of adapters, the same in tables and legends.

use wgvae::report::{Adapter, Machine, MemoryReport};

/// The short names of every report's adapters. The same adapter of the same machine has one name in all reports; where two others would
/// have the same, the later gets a number.
pub(super) fn labels(reports: &[MemoryReport]) -> Vec<Vec<String>> {
    let mut known: Vec<(&Machine, &Adapter)> = Vec::new();
    let mut labels = Vec::new();
    for report in reports {
        let mut label = |adapter| {
            let own = (&report.machine, adapter);
            let place = known.iter().position(|other| *other == own).unwrap_or_else(|| {
                known.push(own);
                known.len() - 1
            });
            let name = short(adapter);
            let before = known[..place].iter().filter(|(_, other)| short(other) == name).count();
            if before == 0 { name } else { format!("{name} #{}", before + 1) }
        };
        labels.push(report.adapters.iter().map(&mut label).collect());
    }
    labels
}

/// Distinct values in order of first appearance.
pub(super) fn distinct<T: PartialEq>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for value in values {
        if !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

/// Name and version. Drivers put details into brackets.
fn short(adapter: &Adapter) -> String {
    let name = adapter.name.split(" (").next().unwrap_or(&adapter.name);
    format!("{name}, {}", version(&adapter.driver).unwrap_or(&adapter.backend))
}

/// The first word of a driver's text that looks like a version, and the word before it.
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
            limits: wgvae::DeviceLimits::webgpu_default(),
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
