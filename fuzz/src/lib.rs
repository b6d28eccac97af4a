//! Fuzz targets for libFuzzer. The crate's own tests compile them, too, and replay the corpora:
//! `tests/cpu/fuzz_corpus.rs`.

mod targets;

use test_kit::allowance;

#[global_allocator]
static ALLOCATOR: allowance::Counting = allowance::Counting;

/// Runs the target `name` on `bytes`.
///
/// # Panics
/// If the library panics or breaks a promise.
pub fn run(name: &str, bytes: &[u8]) {
    let target = targets::TARGETS.iter().find(|target| target.name == name);
    targets::run(target.unwrap_or_else(|| panic!("there is no target {name}")), bytes);
}
