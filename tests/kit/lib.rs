//! Code shared by the programs of tests: readers of fixtures, made-up weights, checks of plans, an
//! allocator that counts, and each kernel's twin and problems. It is optimised fully, the programs
//! not at all.
#![expect(clippy::unwrap_used, missing_docs, missing_debug_implementations, reason = "tests")]

pub mod allowance;
pub mod clip;
pub mod clip_runs;
mod each_network;
pub mod family;
pub mod fixture;
pub mod formula;
pub mod golden;
pub mod hollow;
pub mod networks;
pub mod plan_checks;
pub mod png_header;
pub mod problems;
pub mod reference;
pub mod rust_uses;
pub mod snapshot;
pub mod sweep;
pub mod written;

use std::path::Path;

/// Returns the folder of the repository, two above this package's.
pub fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
