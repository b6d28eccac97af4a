//! u = G w G^T of 3x3 filters. The points and G are those of
//! `shaders/parts/transform_weights.wgsl`.

use pulp::{Simd, WithSimd};

use super::points::{ALL, parts};
use crate::cpu::call::{Call, at, at4};
use crate::cpu::lanes::{across, dispatch, load, plus, store, times};
use crate::cpu::parallel::*;
use crate::kernels::winograd::WeightsParams;

const B: f32 = std::f32::consts::SQRT_2;

/// One block of columns of u.
struct Block<'a, 'u> {
    p: WeightsParams,
    /// `[3, 3, c_in, c_out]`.
    w: &'a [f32],
    /// First column of w.
    column: usize,
    /// The block of each point, `[k, tile_n]`.
    u: [&'u mut [f32]; ALL],
}

pub(super) fn run(mut call: Call<'_>) {
    let p: WeightsParams = call.params();
    let arch = call.arch;
    let [w, u] = call.take();
    let w = w.read();
    let block = at(p.k) * at4(p.tile_n);
    parts(u.write(), block * at(p.blocks), block).into_par_iter().enumerate().for_each(|(block, u)| {
        dispatch(arch, Block { p, w: &w[at4(p.w_offset)..], column: at4(p.column0) + block * at4(p.tile_n), u });
    });
}

impl WithSimd for Block<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { p, w, column, u } = self;
        let (width, c_out) = (at4(p.tile_n), at4(p.c_out4));
        for channel in 0..at(p.c_in) {
            for first in (0..width).step_by(S::F32_LANES) {
                // Columns beyond the weights are zero.
                let count = S::F32_LANES.min(c_out.saturating_sub(column + first));
                let mut taps = [[simd.splat_f32s(0.0); 3]; 3];
                if count > 0 {
                    for (tap, value) in taps.as_flattened_mut().iter_mut().enumerate() {
                        *value = load(simd, w, (tap * at(p.c_in) + channel) * c_out + column + first, count);
                    }
                }
                let mut columns = [[simd.splat_f32s(0.0); 6]; 3];
                for (x, column) in columns.iter_mut().enumerate() {
                    *column = transform(simd, across(&taps, x));
                }
                let target = (at(p.k0) + channel) * width + first;
                for y in 0..6 {
                    let row = transform(simd, across(&columns, y));
                    for x in 0..6 {
                        store(simd, u[y * 6 + x], target, S::F32_LANES.min(width - first), row[x]);
                    }
                }
            }
        }
    }
}

/// Returns G w for one column of filters.
#[inline(always)]
fn transform<S: Simd>(simd: S, [x0, x1, x2]: [S::f32s; 3]) -> [S::f32s; 6] {
    let third = times(simd, 1.0 / 3.0, x2);
    let even = plus(simd, third, 2.0 / 3.0, x0);
    let odd = times(simd, B / 3.0, x1);
    let far_even = plus(simd, third, 1.0 / 6.0, x0);
    let far_odd = times(simd, B / 6.0, x1);
    [
        x0,
        simd.sub_f32s(simd.neg_f32s(even), odd),
        simd.sub_f32s(odd, even),
        simd.add_f32s(far_even, far_odd),
        simd.sub_f32s(far_even, far_odd),
        x2,
    ]
}
