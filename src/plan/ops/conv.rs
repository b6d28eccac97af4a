//! Convolutions and linear layers, each by its algorithm.

use crate::error::Result;
use crate::kernels::choice::ConvAlgorithm;
use crate::plan::fused::{Conv, Residual};
use crate::plan::node::{Node, Scratch, Shared};
use crate::plan::partition::Partition;

use super::lowering::Lowering;
use super::sizing::{Reach, Sizing};
use super::{depthwise, direct, moments, past, product, unfold, winograd};

/// Returns the node of a convolution.
///
/// # Errors
/// [`crate::Error::TooLarge`] if four rows of its output exceed a binding.
pub(super) fn node(sizing: &Sizing<'_>, conv: &Conv) -> Result<Node> {
    let (input, output) = sizing.fused.shapes_of(conv);
    let algorithm = sizing.choice.algorithm_of(conv, input, output);
    let partition = match conv.replaced() {
        Some(residual) => sizing.partition(residual).clone(),
        None => sizing.cut(conv.output, Some(conv.input), 0)?,
    };
    let filter = Reach::Filter { window: conv.window, doubled: conv.prologue.doubling.is_some() };
    let mut reads = vec![sizing.read(&partition, conv.input, filter)];
    reads.extend(conv.past.map(|past| sizing.read(&partition, past, filter)));
    let taps_of_frame = u64::from(conv.window.side * conv.window.side) * u64::from(input.channels4());
    let mut taps = taps_of_frame * u64::from(conv.taps());
    if let Some(Residual::Shortcut { input, .. }) = conv.residual {
        reads.push(sizing.read(&partition, input, Reach::Same));
        taps += u64::from(sizing.fused.shape(input).channels4());
    }
    // Products of vec4: 16 multiply-adds each. Groups share them; single channels have 4 each.
    let products = (taps * u64::from(output.channels4())).div_ceil(u64::from(conv.groups));
    let kept = past::kept_bytes(sizing, conv.input, &conv.keeps);
    let scratch = scratch(sizing, conv, algorithm, &partition).with(Shared::Kept, kept);
    let node = sizing.storing(conv.output, partition, reads);
    let moments = match algorithm {
        ConvAlgorithm::Winograd if sizing.fused.norm_of(conv.output).is_some() => {
            moments::bytes(winograd::runs(sizing, conv), output)
        }
        _ => node.moments,
    };
    Ok(Node {
        row_macs: u64::from(output.width) * u64::from(output.frames) * products * 16,
        replaces: conv.replaced().map(|residual| sizing.producer(residual)),
        scratch,
        moments,
        // Biases are too small to count.
        weights: products * u64::from(conv.phases) * 4 * sizing.options.storage.vec4_bytes(),
        ..node
    })
}

fn scratch(sizing: &Sizing<'_>, conv: &Conv, algorithm: ConvAlgorithm, output: &Partition) -> Scratch {
    match algorithm {
        ConvAlgorithm::Winograd => winograd::scratch(sizing, conv, output),
        ConvAlgorithm::Direct => direct::scratch(sizing, conv, output),
        ConvAlgorithm::Unfold => unfold::scratch(sizing, conv, output),
        ConvAlgorithm::Depthwise => depthwise::scratch(sizing, conv, output),
        ConvAlgorithm::Product => product::scratch(sizing, conv, output),
    }
}

impl Lowering<'_> {
    pub(super) fn conv(&mut self, conv: &Conv, chunk: usize, measure: bool) {
        let (input, output) = self.fused.shapes_of(conv);
        match self.choice.algorithm_of(conv, input, output) {
            ConvAlgorithm::Winograd => self.winograd(conv, chunk, measure),
            ConvAlgorithm::Direct => self.direct(conv, chunk, measure),
            ConvAlgorithm::Unfold => self.unfold(conv, chunk, measure),
            ConvAlgorithm::Depthwise => self.depthwise(conv, chunk, measure),
            ConvAlgorithm::Product => self.product(conv, chunk, measure),
        }
    }
}
