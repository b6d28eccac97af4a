//! Chooses the algorithm of each convolution of a fused graph, and checks that it supports it.

use crate::kernels::choice::{ConvAlgorithm, KernelChoice};
use crate::model::graph::{Doubling, Shape, Window};
use crate::plan::fused::{Conv, Normalize, Prologue, Residual};

impl KernelChoice {
    /// Returns the algorithm of `conv`, whose filter reads `input` and gives `output`.
    ///
    /// # Panics
    /// Panics if the algorithm does not support all of `conv`: a new network needs a new kernel.
    pub(super) fn algorithm_of(&self, conv: &Conv, input: Shape, output: Shape) -> ConvAlgorithm {
        let algorithm = match self.algorithm(conv.window, input.channels, output.channels) {
            ConvAlgorithm::Product => ConvAlgorithm::Product,
            _ if conv.groups > 1 => ConvAlgorithm::Depthwise,
            // Direct can neither add a residual nor activate what is not normalised; Winograd can.
            ConvAlgorithm::Direct if conv.residual.is_some() || is_bent(conv.prologue) => ConvAlgorithm::Winograd,
            algorithm => algorithm,
        };
        if let Err(missing) = check(algorithm, conv) {
            panic!("{}: {algorithm:?} has no {missing}", conv.name);
        }
        algorithm
    }
}

/// True if a function comes before the filter without a norm.
fn is_bent(prologue: Prologue) -> bool {
    prologue.activation.is_some() && prologue.norm.is_none()
}

/// Returns an error with the first feature of `conv` that `algorithm` does not support.
fn check(algorithm: ConvAlgorithm, conv: &Conv) -> Result<(), &'static str> {
    let prologue = conv.prologue;
    let bent = is_bent(prologue);
    let normalised = prologue.norm.is_some();
    let doubled = prologue.doubling.is_some();
    let shortcut = matches!(conv.residual, Some(Residual::Shortcut { .. }));
    let missing = match algorithm {
        ConvAlgorithm::Winograd => {
            [(normalises_before(algorithm, conv) && doubled, "doubling of what was normalised before"), (false, "")]
        }
        ConvAlgorithm::Direct => [
            (bent || (normalised && doubled), "activation without a norm, and no doubling after one"),
            (prologue.doubling == Some(Doubling::Shuffle) || conv.residual.is_some(), "shuffle and no sum"),
        ],
        ConvAlgorithm::Unfold => {
            [(bent || normalised || doubled, "prologue"), (shortcut || conv.relu, "shortcut and no ReLU")]
        }
        ConvAlgorithm::Depthwise => {
            let plain = conv.window == Window::same(conv.window.side) && conv.time.is_none();
            [
                (normalised || doubled, "norm and no doubling"),
                (!plain || conv.residual.is_some() || conv.relu, "stride, taps in time, sum and no ReLU"),
            ]
        }
        ConvAlgorithm::Product => [
            (bent || doubled, "activation without a norm, and no doubling"),
            (shortcut || conv.relu, "shortcut and no ReLU"),
        ],
    };
    missing.into_iter().find(|(missing, _)| *missing).map_or(Ok(()), |(_, what)| Err(what))
}

/// True if a norm must be applied to the input rows of `conv` before the kernel reads them.
pub(super) fn normalises_before(algorithm: ConvAlgorithm, conv: &Conv) -> bool {
    match conv.prologue.norm {
        None => false,
        Some(Normalize::Group(_)) => algorithm != ConvAlgorithm::Winograd,
        Some(Normalize::Pixel(_)) => true,
    }
}
