//! Paths of cargo's output.

use std::path::PathBuf;

/// Returns cargo's target folder.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

/// Returns the path of the built command line.
pub(crate) fn wgvae() -> PathBuf {
    target().join("release").join(format!("wgvae{}", std::env::consts::EXE_SUFFIX))
}
