//! How far sweeps go: `cargo xtask test --full` takes every point.

/// Numbers of `0..=20` that are looked at: all in a full run, otherwise both ends and three
/// between, which stand in different places of any cycle of four.
pub(crate) fn parts_of_twenty() -> Vec<u64> {
    if is_full() { (0..=20).collect() } else { vec![0, 5, 10, 15, 20] }
}

/// Whether `cargo xtask test --full` runs the tests.
pub(crate) fn is_full() -> bool {
    std::env::var_os("WGVAE_FULL").is_some()
}
