//! Chooses the factor at which each tensor is stored, so that half precision holds what would
//! overflow it.
//!
//! Half precision ends at 65504, and the residual stream of some models grows beyond that, SDXL's
//! above all. A tensor may be stored at any power of two times its value as long as every reader
//! undoes the factor. Convolutions undo it exactly, by a factor of the product. Group norms undo it
//! by their own division, with eps scaled too. `ReLU` needs no change, and a sum needs none if all
//! its terms have one factor. So everything is stored at the stream's factor, except tensors whose
//! readers could not undo it for free: queries, keys, values and the output of attention; inputs of
//! a SiLU without a norm; the input and the result.

use crate::model::graph::{Activation, TensorId};
use crate::plan::fused::{FrameWindow, Fused, LinearAttention, NormedSum, Residual, Shortcut, Stage};

/// Stores tensors at `scale` times their value.
///
/// # Panics
/// Panics if a sum would have two factors: a bug in a builder, or in this function.
pub(super) fn scale(fused: &mut Fused, scale: f32) {
    fused.factors = factors(fused, scale);
    let factors = fused.factors.clone();
    let factor = |tensor: TensorId| factors[tensor.0];
    for norm in &mut fused.norms {
        norm.eps *= factor(norm.tensor) * factor(norm.tensor);
    }
    for norm in &mut fused.pixel_norms {
        norm.least *= factor(norm.tensor);
        norm.eps *= factor(norm.tensor) * factor(norm.tensor);
    }
    for stage in &mut fused.stages {
        match stage {
            Stage::Shortcut(shortcut) => shortcut.scale = factor(shortcut.output) / factor(shortcut.input),
            Stage::NormedSum(sum) => sum.scale = factor(sum.output),
            Stage::LinearAttention(attention) => {
                attention.eps *= factor(attention.output) * factor(attention.output);
            }
            _ => {}
        }
        let Stage::Conv(conv) = stage else { continue };
        let input = if conv.prologue.norm.is_some() { 1.0 } else { factor(conv.input) };
        // A gate is no linear function: it takes true values.
        let output = if conv.gated { 1.0 } else { factor(conv.output) };
        conv.gate_scale = factor(conv.output);
        conv.scale = output / input;
        conv.bias_scale = output;
        match &mut conv.residual {
            None => {}
            Some(Residual::InPlace(residual)) => {
                assert_eq!(
                    factor(*residual).to_bits(),
                    factor(conv.output).to_bits(),
                    "expected one factor at {}",
                    conv.name
                );
            }
            Some(Residual::Shortcut { input, scale, .. }) => *scale = factor(conv.output) / factor(*input),
        }
    }
}

/// Returns the factor of each tensor.
fn factors(fused: &Fused, scale: f32) -> Vec<f32> {
    let mut streams = Streams::new(fused.shapes.len());
    for stage in &fused.stages {
        match stage {
            Stage::Conv(conv) => {
                if let Some(Residual::InPlace(residual)) = conv.residual {
                    streams.join(residual, conv.output);
                }
            }
            Stage::Shortcut(Shortcut { sum: Some(sum), output, .. }) => streams.join(*sum, *output),
            Stage::NormedSum(NormedSum { sum, output, .. }) => streams.join(*sum, *output),
            // Its result is a mean of values.
            Stage::LinearAttention(LinearAttention { inputs, output, .. }) => {
                inputs.iter().for_each(|input| streams.join(*input, *output));
            }
            Stage::Past { like: input, output, .. } | Stage::Window(FrameWindow { input, output, .. }) => {
                streams.join(*input, *output);
            }
            Stage::Input { .. } | Stage::Shortcut(_) | Stage::Attention { .. } | Stage::Output { .. } => {}
        }
    }
    let unscaled: Vec<usize> = fused.stages.iter().flat_map(must_stay).map(|tensor| streams.of(tensor)).collect();
    let factor = |tensor| if unscaled.contains(&streams.of(TensorId(tensor))) { 1.0 } else { scale };
    (0..fused.shapes.len()).map(factor).collect()
}

/// Returns the tensors that `stage` reads or makes and that must be stored without the factor.
fn must_stay(stage: &Stage) -> Vec<TensorId> {
    match stage {
        Stage::Input { output, .. } => vec![*output],
        Stage::Past { .. }
        | Stage::Window(_)
        | Stage::Shortcut(_)
        | Stage::NormedSum(_)
        | Stage::LinearAttention(_) => Vec::new(),
        Stage::Attention { inputs: [query, key, value], output, .. } => vec![*query, *key, *value, *output],
        Stage::Conv(conv) => {
            let bent = conv.prologue.norm.is_none() && conv.prologue.activation == Some(Activation::Silu);
            if bent { vec![conv.input] } else { Vec::new() }
        }
        Stage::Output { input, .. } => vec![*input],
    }
}

/// Sets of tensors that must have one factor because one overwrites the other, as a union-find
/// forest.
struct Streams(Vec<usize>);

impl Streams {
    fn new(tensors: usize) -> Self {
        Self((0..tensors).collect())
    }

    /// Returns the tensor that represents the stream of `tensor`.
    fn of(&self, tensor: TensorId) -> usize {
        let mut at = tensor.0;
        while self.0[at] != at {
            at = self.0[at];
        }
        at
    }

    fn join(&mut self, left: TensorId, right: TensorId) {
        let (left, right) = (self.of(left), self.of(right));
        self.0[left] = right;
    }
}
