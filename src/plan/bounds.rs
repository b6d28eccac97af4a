//! How large a plan may grow. Beyond that, planning itself would take minutes and gigabytes, for a decode that no device is done with in a day.
//!
//! Twice and more what the largest published decoders need for the largest images allowed, 16384x8192 pixels: 1.0 million steps, 5e15 multiply-adds.

use crate::error::{Error, Result};
use crate::plan::node::Node;

/// Chunks of all tensors together.
const MOST_CHUNKS: usize = 1 << 16;
/// Multiply-adds of a plan that computes nothing twice.
const MOST_MACS: u64 = 1 << 57;
/// Commands.
pub(super) const MOST_STEPS: usize = 1 << 21;

/// Checks what there is of the nodes so far.
///
/// # Errors
/// [`Error::Input`] with what is too much.
pub(super) fn check(nodes: &[Node]) -> Result<()> {
    let chunks: usize = nodes.iter().map(|node| node.partition.count()).sum();
    if chunks > MOST_CHUNKS {
        return Err(too_large(&format!("tensors in at most {MOST_CHUNKS} chunks"), "more, within these limits"));
    }
    let macs = |node: &Node| node.row_macs.saturating_mul(u64::from(node.partition.height));
    let macs = nodes.iter().map(macs).fold(0, u64::saturating_add);
    if macs > MOST_MACS {
        return Err(too_large(&format!("a decode of at most {MOST_MACS:e} multiply-adds"), &format!("{macs:e}")));
    }
    Ok(())
}

/// The error of a plan with more than [`MOST_STEPS`].
pub(super) fn too_many_steps() -> Error {
    too_large(&format!("a decode of at most {MOST_STEPS} steps"), "more, within these limits")
}

fn too_large(expected: &str, found: &str) -> Error {
    Error::Input { what: "size".to_owned(), expected: expected.to_owned(), found: found.to_owned() }
}
