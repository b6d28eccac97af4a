//! Extent of sweeps: `cargo xtask test --full` takes every point.

/// Returns numbers of `0..=20` to test: all in a full run, otherwise both ends and three between.
/// These have different positions in any cycle of four.
pub fn parts_of_twenty() -> Vec<u64> {
    if is_full() { (0..=20).collect() } else { vec![0, 5, 10, 15, 20] }
}

/// Returns true if `cargo xtask test --full` runs the tests.
pub fn is_full() -> bool {
    std::env::var_os("WGVAE_FULL").is_some()
}
