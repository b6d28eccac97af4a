//! y = (relu(q) . table of k v^T) / (relu(q) . table of k + eps), for each pixel and head.

use pulp::{Simd, WithSimd};

use crate::cpu::call::{Call, at, at4};
use crate::cpu::lanes::{dispatch, load, relu, store};
use crate::cpu::parallel::*;
use crate::cpu::stored::{Stored, floats};
use crate::kernels::linear_attention::ApplyParams;

/// Pixels of a task.
const PIXELS: usize = 16;

/// Some pixels.
struct Pixels<'a, 'y, E> {
    /// `[pixels, heads, 3, head]`.
    x: &'a [E],
    /// `[heads, head + 1, head]`.
    table: &'a [f32],
    /// Channels of a head.
    head: usize,
    eps: f32,
    /// Channels of all heads.
    channels: usize,
    /// `[pixels, y_channels]`.
    y: &'y mut [E],
    y_channels: usize,
}

pub(super) fn run<E: Stored>(mut call: Call<'_>) {
    let p: ApplyParams = call.params();
    let arch = call.arch;
    let head = at4(call.variant.number("HEAD4"));
    let [x, table, y] = call.take();
    let (table, channels) = (table.read(), at(p.heads) * head);
    let y_channels = at4(p.y_channels4);
    let x = x.read::<E>()[at4(p.x_offset)..][..at(p.pixels) * 3 * channels].par_chunks(PIXELS * 3 * channels);
    let y = y.write::<E>()[at4(p.y_offset)..].par_chunks_mut(PIXELS * y_channels);
    x.zip(y).for_each(|(x, y)| dispatch(arch, Pixels { x, table, head, eps: p.eps, channels, y, y_channels }));
}

impl<E: Stored> WithSimd for Pixels<'_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, table, head, eps, channels, y, y_channels } = self;
        let mut space = Vec::new();
        let tables = table.chunks_exact((head + 1) * head);
        let x = x.chunks_exact(3 * channels).flat_map(|pixel| pixel.chunks_exact(3 * head).zip(tables.clone()));
        let y = y.chunks_mut(y_channels).flat_map(|pixel| pixel[..channels].chunks_exact_mut(head));
        for ((x, table), y) in x.zip(y) {
            let (query, keys) = (floats(&x[..head], &mut space), &table[head * head..]);
            let mut products = simd.splat_f32s(0.0);
            for lane in (0..head).step_by(S::F32_LANES) {
                let lanes = S::F32_LANES.min(head - lane);
                let query = relu(simd, load(simd, query, lane, lanes));
                products = simd.mul_add_e_f32s(query, load(simd, keys, lane, lanes), products);
            }
            let divisor = simd.reduce_sum_f32s(products) + eps;
            // An infinite divisor would make every value zero: an overflow must stay visible.
            let divisor = simd.splat_f32s(if divisor.is_finite() { divisor } else { f32::NAN });
            for lane in (0..head).step_by(S::F32_LANES) {
                let lanes = S::F32_LANES.min(head - lane);
                let mut sum = simd.splat_f32s(0.0);
                for (query, row) in query.iter().zip(table.chunks_exact(head)) {
                    let query = relu(simd, simd.splat_f32s(*query));
                    sum = simd.mul_add_e_f32s(query, load(simd, row, lane, lanes), sum);
                }
                store(simd, y, lane, lanes, simd.div_f32s(sum, divisor));
            }
        }
    }
}
