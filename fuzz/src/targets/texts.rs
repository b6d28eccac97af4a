//! Targets for JSON from elsewhere: configs, indices of shards, memory reports.

use wgvae::config::AutoencoderConfig;
use wgvae::internals::shard_index::shard_names;
use wgvae::tiling::{Blend, BlendRule};
use wgvae::{LatentSpace, Size};
use wgvae_memory_report::MemoryReport;

/// Fuzzes config.json. An accepted config must be valid.
pub(super) fn config(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(config) = AutoencoderConfig::from_json(text) else { return };
    config.validate().expect("what was taken is valid");
    let side = config.spatial_factor();
    assert_eq!(
        config.image_size(Size { width: 1, height: 3 }, LatentSpace::Vae),
        Size { width: side, height: 3 * side }
    );
    config.image_size(Size { width: u32::MAX, height: u32::MAX }, LatentSpace::Model);
    for rule in [BlendRule::Linear, BlendRule::Cosine] {
        if let Ok(blend) = Blend::for_model(rule, &config, None, None) {
            assert!(blend.overlap() < blend.tile());
        }
    }
}

/// Fuzzes the index of a model in shards. Its names must stay in its folder.
pub(super) fn shard_index(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(names) = shard_names("fuzzed", text) else { return };
    assert!(!names.is_empty());
    for name in names {
        let inside = std::path::Path::new("folder").join(&name);
        assert_eq!(inside.parent(), Some(std::path::Path::new("folder")), "{name:?}");
        assert_eq!(inside.file_name(), Some(std::ffi::OsStr::new(&name)), "{name:?}");
    }
}

/// Fuzzes memory reports. An accepted report can be written and read again.
pub(super) fn memory_report(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(report) = MemoryReport::from_json("fuzzed", text) else { return };
    let written = serde_json::to_string(&report).expect("a report");
    assert_eq!(MemoryReport::from_json("written", &written).expect("what was written"), report);
}
