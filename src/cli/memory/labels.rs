//! Short names of adapters, the same in tables and legends.

use wgvae::report::{Adapter, MemoryReport};

/// The short names of every report's adapters. Where two would be the same, the later gets a number.
pub(super) fn labels(reports: &[MemoryReport]) -> Vec<Vec<String>> {
    let mut taken: Vec<String> = Vec::new();
    let mut label = |adapter: &Adapter| {
        let name = short(adapter);
        let times = taken.iter().filter(|other| **other == name).count();
        taken.push(name.clone());
        if times == 0 { name } else { format!("{name} #{}", times + 1) }
    };
    reports.iter().map(|report| report.adapters.iter().map(&mut label).collect()).collect()
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
