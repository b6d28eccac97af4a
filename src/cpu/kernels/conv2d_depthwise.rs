//! Convolutions of each channel by itself, perhaps with a gate.

use pulp::{Simd, WithSimd};

use crate::cpu::call::{Call, at, at4};
use crate::cpu::lanes::{Activate, dispatch, load, store};
use crate::cpu::parallel::*;
use crate::cpu::stored::Stored;
use crate::kernels::conv2d_depthwise::DepthwiseParams;

/// Channels whose pixels are copied together, so that the pixels that a row sees stay in cache.
const BLOCK: usize = 64;

/// A launch, for all of its rows.
struct Convolution<'a, E> {
    p: DepthwiseParams,
    side: usize,
    /// `[rows, w, c]`.
    x: &'a [E],
    /// `[side, side, c]`.
    weights: &'a [f32],
    bias: &'a [f32],
    activate: Activate,
    gated: bool,
}

/// One row of the output.
struct Row<'a, 'y, E, O> {
    convolution: &'a Convolution<'a, E>,
    y: usize,
    /// `[w, c]`.
    row: &'y mut [O],
}

pub(super) fn run<E: Stored, O: Stored>(mut call: Call<'_>) {
    let p: DepthwiseParams = call.params();
    let arch = call.arch;
    let (side, gated, activate) =
        (at(call.variant.number("SIDE")), call.variant.flag("GATED"), Activate::of(call.variant));
    let [x, weights, bias, y] = call.take();
    let convolution =
        Convolution { p, side, x: x.read::<E>(), weights: weights.read(), bias: bias.read(), activate, gated };
    let row = at(p.width) * at4(p.y_channels4);
    let rows = y.write::<O>()[at(p.y0 - p.y_row0) * row..].par_chunks_mut(row).take(at(p.rows)).enumerate();
    rows.for_each(|(index, row)| dispatch(arch, Row { convolution: &convolution, y: at(p.y0) + index, row }));
}

impl<E: Stored, O: Stored> WithSimd for Row<'_, '_, E, O> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { convolution, y, row } = self;
        let p = &convolution.p;
        let (width, channels) = (at(p.width), at4(p.y_channels4));
        let mut seen = vec![0.0; convolution.side * (width + convolution.side - 1) * BLOCK];
        let mut gates = vec![0.0_f32; if convolution.gated { width * BLOCK } else { 0 }];
        for first in (0..channels).step_by(BLOCK) {
            let count = BLOCK.min(channels - first);
            if convolution.gated {
                let second = channels + first;
                convolution.bring(simd, &mut seen, y, (second, count));
                convolution.row(simd, &seen, (second, count), |column, lane, lanes, gate| {
                    let gate = simd.mul_f32s(Activate::Silu.apply(simd, gate), simd.splat_f32s(p.gate_scale));
                    store(simd, &mut gates, column * BLOCK + lane, lanes, gate);
                });
            }
            convolution.bring(simd, &mut seen, y, (first, count));
            convolution.row(simd, &seen, (first, count), |column, lane, lanes, mut value| {
                if convolution.gated {
                    value = simd.mul_f32s(value, load(simd, &gates, column * BLOCK + lane, lanes));
                }
                store(simd, row, column * channels + first + lane, lanes, value);
            });
        }
    }
}

impl<E: Stored> Convolution<'_, E> {
    /// Copies `count` channels from `first` on of the pixels that row `y` sees, activated:
    /// `[side, w + side - 1, BLOCK]`. Pixels beyond the image stay zero.
    #[inline(always)]
    fn bring<S: Simd>(&self, simd: S, seen: &mut [f32], y: usize, (first, count): (usize, usize)) {
        let (width, channels, half) = (at(self.p.width), at4(self.p.x_channels4), self.side / 2);
        for (dy, seen) in seen.chunks_exact_mut((width + 2 * half) * BLOCK).enumerate() {
            let Some(row) = (y + dy).checked_sub(half).filter(|row| *row < at(self.p.height)) else {
                seen.fill(0.0);
                continue;
            };
            let x = &self.x[(row - at(self.p.x_row0)) * width * channels..];
            for (pixel, seen) in seen[half * BLOCK..].chunks_exact_mut(BLOCK).take(width).enumerate() {
                for lane in (0..count).step_by(S::F32_LANES) {
                    let lanes = S::F32_LANES.min(count - lane);
                    let value = load(simd, x, pixel * channels + first + lane, lanes);
                    store(simd, seen, lane, lanes, self.activate.apply(simd, value));
                }
            }
        }
    }

    /// Computes `count` channels from `first` on of a row, and calls `put` with the pixel, the
    /// first channel after `first`, the number of channels, and their values.
    #[inline(always)]
    fn row<S: Simd>(
        &self,
        simd: S,
        seen: &[f32],
        (first, count): (usize, usize),
        mut put: impl FnMut(usize, usize, usize, S::f32s),
    ) {
        let (width, channels) = (at(self.p.width), at4(self.p.x_channels4));
        for lane in (0..count).step_by(S::F32_LANES) {
            let lanes = S::F32_LANES.min(count - lane);
            let bias = load(simd, self.bias, first + lane, lanes);
            for column in 0..width {
                let mut sum = simd.splat_f32s(0.0);
                let mut tap = first + lane;
                for dy in 0..self.side {
                    let mut pixel = (dy * (width + self.side - 1) + column) * BLOCK + lane;
                    for _ in 0..self.side {
                        let weight = load(simd, self.weights, tap, lanes);
                        sum = simd.mul_add_e_f32s(load(simd, seen, pixel, lanes), weight, sum);
                        pixel += BLOCK;
                        tap += channels;
                    }
                }
                put(column, lane, lanes, simd.mul_add_e_f32s(sum, simd.splat_f32s(self.p.scale), bias));
            }
        }
    }
}
