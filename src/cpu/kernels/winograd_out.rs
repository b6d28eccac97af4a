//! y = A^T m A, 4x4 pixels of each tile, and the moments of runs of tiles. The points and A are
//! those of `shaders/parts/transform_out.wgsl`, the layouts those of `winograd_out_pairs.wgsl`.

use arrayvec::ArrayVec;
use pulp::{Simd, WithSimd};

use crate::cpu::call::{Call, at, at4};
use crate::cpu::lanes::{across, at_least_zero, dispatch, load, plus, relu, store, times};
use crate::cpu::parallel::*;
use crate::cpu::stored::Stored;
use crate::kernels::winograd::OutParams;

const A: f32 = std::f32::consts::FRAC_1_SQRT_2;
const B: f32 = std::f32::consts::SQRT_2;
const SIDE: usize = 4;

/// A launch, for all of its runs.
struct Products<'a> {
    p: OutParams,
    /// `[36, tiles, channels]`.
    m: &'a [f32],
    /// `[channels of one frame]`.
    bias: &'a [f32],
    accumulate: bool,
    relu: bool,
}

/// A run of neighbouring tiles in one row of tiles.
struct Run<'a, 'y, E> {
    products: &'a Products<'a>,
    /// First tile of the band.
    first: usize,
    /// The run's part of each image row, `[pixels, channels]`.
    rows: ArrayVec<&'y mut [E], SIDE>,
    /// `[c / 4, 3, 4]`; empty if nobody asks for moments.
    moments: &'y mut [f32],
}

pub(super) fn run<E: Stored>(mut call: Call<'_>) {
    let p: OutParams = call.params();
    let arch = call.arch;
    let [accumulate, relu, measure] = ["ACCUMULATE", "RELU", "MOMENTS"].map(|flag| call.variant.flag(flag));
    let [m, bias, y, moments] = call.take();
    let products = Products { p, m: m.read(), bias: bias.read(), accumulate, relu };
    let channels = at4(p.channels4);
    let row = at(p.width) * channels;
    let first_row = usize::try_from(i64::from(p.y0) - i64::from(p.y_row0)).unwrap_or(usize::MAX);
    let tile_rows = at(p.tiles / p.tiles_x);
    let moments = if measure { &mut moments.write()[at(p.moments_offset) * channels * 3..] } else { &mut [] };
    let mut moments = moments.chunks_mut(channels * 3);
    let mut rows = y.write::<E>()[first_row * row..].chunks_mut(row).take(at(p.height - p.y0));
    let mut tasks = Vec::new();
    for tile_row in 0..tile_rows {
        let mut rows: ArrayVec<&mut [E], SIDE> =
            rows.by_ref().take(SIDE).map(|row| &mut row[at(p.tile_x0) * SIDE * channels..]).collect();
        for start in (0..at(p.tiles_x)).step_by(at(p.run)) {
            let tiles = at(p.run).min(at(p.tiles_x) - start);
            tasks.push(Run {
                products: &products,
                first: tile_row * at(p.tiles_x) + start,
                rows: rows.iter_mut().map(|row| split(row, tiles * SIDE * channels)).collect(),
                moments: moments.next().unwrap_or_default(),
            });
        }
    }
    tasks.into_par_iter().for_each(|run| dispatch(arch, run));
}

/// Takes the first `most` elements out of `row`, or all if it has fewer.
fn split<'a, E>(row: &mut &'a mut [E], most: usize) -> &'a mut [E] {
    let taken = std::mem::take(row);
    let (first, rest) = taken.split_at_mut(most.min(taken.len()));
    *row = rest;
    first
}

/// Sums over a run, `[channels]` each, of the difference to the run's first pixel: so no digits are
/// lost if |mean| >> deviation.
struct Sums {
    pivot: Vec<f32>,
    sum: Vec<f32>,
    squares: Vec<f32>,
}

impl<E: Stored> WithSimd for Run<'_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let channels = at4(self.products.p.channels4);
        let zeros = || vec![0.0; if self.moments.is_empty() { 0 } else { channels }];
        let mut sums = Sums { pivot: zeros(), sum: zeros(), squares: zeros() };
        let mut half_done = [[simd.splat_f32s(0.0); SIDE]; 6];
        let pixels = self.rows[0].len() / channels;
        for tile in 0..pixels.div_ceil(SIDE) {
            for channel in (0..channels).step_by(S::F32_LANES) {
                let count = S::F32_LANES.min(channels - channel);
                let columns = SIDE.min(pixels - tile * SIDE);
                self.tile(simd, tile, (channel, count), columns, &mut half_done, &mut sums);
            }
        }
        if !self.moments.is_empty() {
            self.store_moments(&sums, pixels * self.rows.len());
        }
    }
}

impl<E: Stored> Run<'_, '_, E> {
    /// Computes `count` channels from `channel` on of a tile, of `columns` pixels in a row. It uses
    /// `half_done`, so that this is not cleared for each tile.
    #[inline(always)]
    fn tile<S: Simd>(
        &mut self,
        simd: S,
        tile: usize,
        (channel, count): (usize, usize),
        columns: usize,
        half_done: &mut [[S::f32s; SIDE]; 6],
        sums: &mut Sums,
    ) {
        let Products { p, m, bias, accumulate, relu: cut, .. } = *self.products;
        let channels = at4(p.channels4);
        let (batch, source) = (at(p.tiles) * channels, (self.first + tile) * channels + channel);
        for (x, column) in half_done.iter_mut().enumerate() {
            let mut points = [simd.splat_f32s(0.0); 6];
            for (y, point) in points.iter_mut().enumerate() {
                *point = load(simd, m, (y * 6 + x) * batch + source, count);
            }
            *column = transform(simd, points);
        }
        let added = frame_bias(simd, bias, at4(p.bias4), channel, count);
        let scale = simd.splat_f32s(p.scale);
        let measure = !self.moments.is_empty();
        let zero = simd.splat_f32s(0.0);
        let (mut sum, mut squares) = (zero, zero);
        let mut pivot = if measure { load(simd, &sums.pivot, channel, count) } else { zero };
        for (y, row) in self.rows.iter_mut().enumerate() {
            let values = transform(simd, across(half_done, y));
            for (x, value) in values.into_iter().enumerate().take(columns) {
                let index = (tile * SIDE + x) * channels + channel;
                let mut value = simd.mul_add_e_f32s(value, scale, added);
                if accumulate {
                    value = simd.add_f32s(value, load(simd, row, index, count));
                }
                if cut {
                    value = relu(simd, value);
                }
                store(simd, row, index, count, value);
                if measure {
                    if (tile, y, x) == (0, 0, 0) {
                        pivot = value;
                        store(simd, &mut sums.pivot, channel, count, pivot);
                    }
                    let difference = simd.sub_f32s(value, pivot);
                    sum = simd.add_f32s(sum, difference);
                    squares = simd.mul_add_e_f32s(difference, difference, squares);
                }
            }
        }
        if measure {
            for (total, part) in [(&mut sums.sum, sum), (&mut sums.squares, squares)] {
                let new = simd.add_f32s(load(simd, total, channel, count), part);
                store(simd, total, channel, count, new);
            }
        }
    }

    /// Writes count, mean and M2 of `pixels` pixels.
    #[expect(clippy::cast_precision_loss, reason = "a run has few pixels")]
    fn store_moments(&mut self, sums: &Sums, pixels: usize) {
        let count = pixels as f32;
        for (channel, sum) in sums.sum.iter().enumerate() {
            let place = channel / 4 * 12 + channel % 4;
            self.moments[place] = count;
            self.moments[place + 4] = sums.pivot[channel] + sum / count;
            self.moments[place + 8] = at_least_zero(sums.squares[channel] - sum * sum / count);
        }
    }
}

/// Returns the bias of `count` channels of all frames from `channel` on. `frame` channels have a
/// bias of their own, and a vector may cover several frames.
#[inline(always)]
fn frame_bias<S: Simd>(simd: S, bias: &[f32], frame: usize, channel: usize, count: usize) -> S::f32s {
    let first = channel % frame;
    if first + count <= frame {
        return load(simd, bias, first, count);
    }
    let mut values = [0.0; 16];
    for (lane, value) in values.iter_mut().enumerate().take(count) {
        *value = bias[(channel + lane) % frame];
    }
    load(simd, &values, 0, S::F32_LANES)
}

/// Returns A^T m for one column.
#[inline(always)]
fn transform<S: Simd>(simd: S, m: [S::f32s; 6]) -> [S::f32s; SIDE] {
    let near_sum = simd.add_f32s(m[1], m[2]);
    let near_difference = simd.sub_f32s(m[1], m[2]);
    let far_sum = simd.add_f32s(m[3], m[4]);
    let far_difference = simd.sub_f32s(m[3], m[4]);
    [
        simd.add_f32s(simd.add_f32s(m[0], near_sum), far_sum),
        plus(simd, times(simd, A, near_difference), B, far_difference),
        plus(simd, times(simd, 0.5, near_sum), 2.0, far_sum),
        plus(simd, plus(simd, m[5], A * A * A, near_difference), B * B * B, far_difference),
    ]
}
