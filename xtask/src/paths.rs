//! Where cargo puts what it builds.

use std::path::PathBuf;

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

/// The built command line.
pub(crate) fn wgvae() -> PathBuf {
    target().join("release").join(format!("wgvae{}", std::env::consts::EXE_SUFFIX))
}
