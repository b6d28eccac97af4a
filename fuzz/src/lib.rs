//! What libFuzzer runs. The targets are also compiled into the crate's own tests, which replay the
//! corpora: `tests/cpu/fuzz_corpus.rs`.

mod allowance;
#[path = "../../tests/support/formula.rs"]
mod formula;
#[path = "../../tests/reference/interpreter.rs"]
mod interpreter;
#[path = "../../tests/support/plan_checks.rs"]
mod plan_checks;
#[path = "../../tests/reference/mod.rs"]
mod reference;
mod targets;

#[global_allocator]
static ALLOCATOR: allowance::Counting = allowance::Counting;

/// Gives `bytes` to the target `name`.
///
/// # Panics
/// When the library does, or breaks a promise.
pub fn run(name: &str, bytes: &[u8]) {
    let target = targets::TARGETS.iter().find(|target| target.name == name);
    targets::run(target.unwrap_or_else(|| panic!("there is no target {name}")), bytes);
}
