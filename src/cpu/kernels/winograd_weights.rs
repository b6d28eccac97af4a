//! u = G w G^T of 3x3 filters. The points and G are those of
//! `shaders/parts/transform_weights.wgsl`.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::points::ALL;
use crate::cpu::call::{Call, at, at4};
use crate::cpu::lanes::{across, dispatch, load, plus, store, times};
use crate::cpu::parallel::*;
use crate::cpu::stored::Stored;
use crate::kernels::winograd::WeightsParams;

const B: f32 = std::f32::consts::SQRT_2;

/// Most tasks: enough for many cores, and few places to list.
const TASKS: usize = 16;

/// Channels that are read, transformed and written together. Their rows of w and of a block of u
/// are long enough to be fetched ahead; single vectors would each wait for their cache line.
const RUN: usize = 8;

/// Blocks of columns that are read together.
const GROUP: usize = 4;

/// A range of channels of u.
struct Channels<'a, 'u, E> {
    p: WeightsParams,
    /// `[3, 3, c_in, c_out]`, from the first channel on.
    w: &'a [E],
    /// The channels of each block of columns of each point, `[channels, tile_n]`.
    u: Vec<&'u mut [f32]>,
}

pub(super) fn run<E: Stored>(mut call: Call<'_>) {
    let p: WeightsParams = call.params();
    let arch = call.arch;
    let [w, u] = call.take();
    let (w, width, c_in) = (&w.read::<E>()[at4(p.w_offset)..], at4(p.tile_n), at(p.c_in));
    let range = c_in.div_ceil(TASKS).next_multiple_of(RUN);
    let mut tasks: Vec<Vec<&mut [f32]>> = (0..c_in.div_ceil(range)).map(|_| Vec::new()).collect();
    for block in u.write().chunks_mut(at(p.k) * width).take(ALL * at(p.blocks)) {
        let channels = block[at(p.k0) * width..][..c_in * width].chunks_mut(range * width);
        tasks.iter_mut().zip(channels).for_each(|(task, channels)| task.push(channels));
    }
    tasks.into_par_iter().enumerate().for_each(|(index, u)| {
        dispatch(arch, Channels { p, w: &w[index * range * at4(p.c_out4)..], u });
    });
}

impl<E: Stored> WithSimd for Channels<'_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { p, w, mut u } = self;
        let (width, c_out, blocks) = (at4(p.tile_n), at4(p.c_out4), at(p.blocks));
        let columns = GROUP * width;
        let (mut read, mut made) = (vec![0.0; 9 * RUN * columns], vec![0.0; ALL * RUN * width]);
        let channels = u[0].len() / width;
        for (run, group) in
            runs(channels, RUN).flat_map(|run| runs(blocks, GROUP).map(move |group| (run.clone(), group)))
        {
            let column = at4(p.column0) + group.start * width;
            // Columns beyond the weights are zero.
            let count = columns.min(c_out.saturating_sub(column));
            for (index, row) in read.chunks_exact_mut(columns).enumerate().filter(|(index, _)| index % RUN < run.len())
            {
                let from = (index / RUN * at(p.c_in) + run.start + index % RUN) * c_out + column;
                E::widen(&w[from..], &mut row[..count]);
                row[count..].fill(0.0);
            }
            for block in 0..group.len() {
                for channel in 0..run.len() {
                    for first in (0..width).step_by(S::F32_LANES) {
                        let from = channel * columns + block * width + first;
                        let lanes = S::F32_LANES.min(width - first);
                        let points = points(simd, &read[from..], RUN * columns, lanes);
                        for (point, value) in points.as_flattened().iter().enumerate() {
                            store(simd, &mut made, (point * RUN + channel) * width + first, lanes, *value);
                        }
                    }
                }
                for (point, made) in made.chunks_exact(RUN * width).enumerate() {
                    let block = &mut u[point * blocks + group.start + block];
                    block[run.start * width..run.end * width].copy_from_slice(&made[..run.len() * width]);
                }
            }
        }
    }
}

/// Splits `0..count` into ranges of `length`. The last may be shorter.
fn runs(count: usize, length: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(length).map(move |start| start..count.min(start + length))
}

/// Returns G w G^T of `lanes` filters, whose nine taps are `step` values apart.
#[inline(always)]
fn points<S: Simd>(simd: S, w: &[f32], step: usize, lanes: usize) -> [[S::f32s; 6]; 6] {
    let mut taps = [[simd.splat_f32s(0.0); 3]; 3];
    for (tap, value) in taps.as_flattened_mut().iter_mut().enumerate() {
        *value = load(simd, w, tap * step, lanes);
    }
    let mut columns = [[simd.splat_f32s(0.0); 6]; 3];
    for (x, column) in columns.iter_mut().enumerate() {
        *column = transform(simd, across(&taps, x));
    }
    let mut rows = [[simd.splat_f32s(0.0); 6]; 6];
    for (y, row) in rows.iter_mut().enumerate() {
        *row = transform(simd, across(&columns, y));
    }
    rows
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
