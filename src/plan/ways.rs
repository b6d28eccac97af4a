//! Chooses the way of each convolution of a fused graph, and checks that the way supports it.

use crate::kernels::choice::{Choice, Way};
use crate::model::graph::{Doubling, Shape};
use crate::plan::fused::{Conv, Normalize, Residual};

impl Choice {
    /// Returns the way of `conv`, whose filter reads `input` and gives `output`.
    ///
    /// # Panics
    /// Panics if the way does not support all of `conv`: a new network that needs a new kernel.
    pub(super) fn way_of(&self, conv: &Conv, input: Shape, output: Shape) -> Way {
        let way = match self.way(conv.window, input.channels, output.channels) {
            // Direct cannot add a residual; Winograd can.
            Way::Direct if conv.residual.is_some() => Way::Winograd,
            way => way,
        };
        if let Err(missing) = check(way, conv) {
            panic!("{}: {way:?} has no {missing}", conv.name);
        }
        way
    }
}

/// Returns an error with the first feature of `conv` that `way` does not support.
fn check(way: Way, conv: &Conv) -> Result<(), &'static str> {
    let prologue = conv.prologue;
    let bent = prologue.activation.is_some() && prologue.norm.is_none();
    let normalised = prologue.norm.is_some();
    let doubled = prologue.doubling.is_some();
    let shortcut = matches!(conv.residual, Some(Residual::Shortcut { .. }));
    let missing = match way {
        Way::Winograd => {
            [(normalises_before(way, conv) && doubled, "doubling of what was normalised before"), (false, "")]
        }
        Way::Direct => [
            (bent || (normalised && doubled), "activation without a norm, and no doubling after one"),
            (prologue.doubling == Some(Doubling::Shuffle) || conv.residual.is_some(), "shuffle and no sum"),
        ],
        Way::Unfold => {
            [(bent || normalised || doubled, "prologue"), (conv.residual.is_some() || conv.relu, "sum and no ReLU")]
        }
        Way::Product => [
            (bent || doubled, "activation without a norm, and no doubling"),
            (shortcut || conv.relu, "shortcut and no ReLU"),
        ],
    };
    missing.into_iter().find(|(missing, _)| *missing).map_or(Ok(()), |(_, what)| Err(what))
}

/// True if a norm must be applied to the input rows of `conv` before the kernel reads them.
pub(super) fn normalises_before(way: Way, conv: &Conv) -> bool {
    match conv.prologue.norm {
        None => false,
        Some(Normalize::Group(_)) => way != Way::Winograd,
        Some(Normalize::Pixel(_)) => true,
    }
}
