//! The weights that a graph needs, found without a schedule or a device.

use crate::kernels::weights::WeightLayout;
use crate::model::graph::{Graph, Weight, WeightSlice};
use crate::plan::fused::{Conv, Fused, Normalize, PixelNorm, PixelNormId, Residual, Stage};
use crate::plan::parts::WeightUse;
use crate::plan::{fuse, stream_scale};
use crate::tensor::Storage;

impl WeightUse {
    /// Returns the use of `weight` in `layout`, multiplied by `factor`, by a plan whose filters are
    /// stored as `storage`. Vectors are f32.
    pub(super) fn new(weight: &Weight, layout: WeightLayout, factor: f32, storage: Storage) -> Self {
        let storage = match layout {
            WeightLayout::Filter { .. } => storage,
            WeightLayout::Depthwise { .. } | WeightLayout::Vector { .. } => Storage::F32,
        };
        // Zeros stay zeros at any factor, and ones have none, so all uses share one weight.
        let (name, factor) = match weight.take {
            WeightSlice::Zeros => ("zeros", 1.0),
            WeightSlice::Ones => ("ones", 1.0),
            WeightSlice::All
            | WeightSlice::Tap { .. }
            | WeightSlice::SumOfTaps { .. }
            | WeightSlice::Rows { .. }
            | WeightSlice::Frames { .. }
            | WeightSlice::Filled { .. }
            | WeightSlice::Inputs { .. }
            | WeightSlice::InputTaps { .. }
            | WeightSlice::Transform => (weight.name.as_str(), factor),
        };
        Self { name: name.to_owned(), take: weight.take, layout, storage, factor, bytes: layout.bytes(storage) }
    }
}

/// Returns all weights that plans of `graph` need, in the order of the network. The same weight may
/// come several times. The transform of the input is not among them, as no file has it.
pub fn weights_of(graph: &Graph, storage: Storage) -> Vec<WeightUse> {
    let fused = fuse::fuse(graph, stream_scale(storage));
    let mut uses = Vec::new();
    for stage in &fused.stages {
        match stage {
            Stage::Conv(conv) => uses.extend(weights_of_conv(&fused, conv, storage)),
            Stage::NormedSum(sum) => uses.extend(weights_of_pixel_norm(&fused, sum.norm, sum.scale, storage)),
            _ => {}
        }
        let norm = stage.output().and_then(|output| fused.norm_of(output)).map(|norm| &fused.norms[norm]);
        if let Some(norm) = norm {
            let layout = WeightLayout::Vector { channels: fused.shape(norm.tensor).channels };
            let affine = ["weight", "bias"].map(|part| Weight::all(format!("{}.{part}", norm.name)));
            uses.extend(affine.map(|weight| WeightUse::new(&weight, layout, 1.0, storage)));
        }
    }
    uses
}

/// Returns the number of a filter's output channels, for `phases` frames of `channels` channels.
/// Several frames each have a multiple of four.
pub(super) fn rows_of_frames(channels: u32, phases: u32) -> u32 {
    if phases == 1 { channels } else { channels.next_multiple_of(4) * phases }
}

/// Returns the weights of a norm of pixels whose result has the factor `factor`.
fn weights_of_pixel_norm(
    fused: &Fused,
    norm: PixelNormId,
    factor: f32,
    storage: Storage,
) -> impl Iterator<Item = WeightUse> {
    let PixelNorm { gamma, beta, tensor, .. } = &fused.pixel_norms[norm];
    let layout = WeightLayout::Vector { channels: fused.shape(*tensor).channels };
    [Some(gamma), beta.as_ref()]
        .into_iter()
        .flatten()
        .map(move |weight| WeightUse::new(weight, layout, factor, storage))
}

fn weights_of_conv(fused: &Fused, conv: &Conv, storage: Storage) -> Vec<WeightUse> {
    let (input, output) = fused.shapes_of(conv);
    let c_out = rows_of_frames(output.channels, conv.phases);
    let depthwise = conv.groups > 1 && conv.window.side > 1;
    let pair = |weight: &Weight, bias: &Weight, (times, filter, c_in): (u32, u32, u32)| {
        let whole = WeightLayout::filter(times, filter, c_in / conv.groups, c_out);
        // Only Winograd's transform takes a filter in parts.
        let parts = match conv.window.stride {
            _ if depthwise => vec![WeightLayout::Depthwise { filter, channels: c_out }],
            1 if filter == 3 => whole.parts(storage),
            _ => vec![whole],
        };
        let filters = parts.into_iter().map(|part| WeightUse::new(weight, part, 1.0, storage));
        let bias = WeightUse::new(bias, WeightLayout::Vector { channels: c_out }, conv.bias_scale, storage);
        filters.chain([bias]).collect::<Vec<_>>()
    };
    let mut uses = Vec::new();
    if let Some(Normalize::Pixel(norm)) = conv.prologue.norm {
        uses.extend(weights_of_pixel_norm(fused, norm, 1.0, storage));
    }
    uses.extend(pair(&conv.weight, &conv.bias, (conv.taps(), conv.window.side, input.channels)));
    if let Some(Residual::Shortcut { weight, bias, input, .. }) = &conv.residual {
        uses.extend(pair(weight, bias, (1, 1, fused.shape(*input).channels)));
    }
    uses
}
