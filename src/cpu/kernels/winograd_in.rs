//! v = B^T d B of 6x6 input tiles. The points and B are those of `shaders/parts/transform_in.wgsl`,
//! the layout of v is that of `winograd_in_pairs.wgsl`.

use pulp::{Simd, WithSimd};

use super::border::{place_of, read_at};
use super::norm_table::NormTable;
use super::points::{ALL, parts};
use crate::cpu::call::{Call, at, at4};
use crate::cpu::lanes::{Activate, across, dispatch, load, plus, store, times};
use crate::cpu::parallel::*;
use crate::cpu::stored::Stored;
use crate::kernels::winograd::InParams;

const A: f32 = std::f32::consts::FRAC_1_SQRT_2;
const B: f32 = std::f32::consts::SQRT_2;

/// Fewest tiles of a task, and most tasks of a launch: one thread lists the tasks.
const TILES: usize = 8;
const MOST_TASKS: usize = 256;

/// A launch, for all of its tiles.
struct Image<'a, E> {
    p: InParams,
    /// `[rows, w, channels]`.
    x: &'a [E],
    norm: Option<NormTable>,
    activate: Activate,
    /// True if x is half the size of the image.
    doubled: bool,
    /// Kind of the pixels beyond the image.
    beyond: u32,
    /// True if the channels of x are four pixels.
    shuffled: bool,
}

/// Some tiles.
struct Tiles<'a, 'v, E> {
    image: &'a Image<'a, E>,
    first: usize,
    /// Their part of v of each point, `[tiles, v_channels]`.
    v: [&'v mut [f32]; ALL],
}

pub(super) fn run<E: Stored>(mut call: Call<'_>) {
    let p: InParams = call.params();
    let arch = call.arch;
    let normalize = call.variant.flag("NORMALIZE");
    let activate = Activate::of(call.variant);
    let (doubled, shuffled) = (call.variant.number("SHIFT") == 1, call.variant.flag("SHUFFLE"));
    let beyond = call.variant.number("BEYOND");
    let [x, norm, v] = call.take();
    let norm = normalize.then(|| NormTable::new(norm.read(), at4(p.channels4)));
    let image = Image { p, x: x.read::<E>(), norm, activate, doubled, beyond, shuffled };
    let row = at4(p.v_channels4);
    let tiles = TILES.max(at(p.tiles).div_ceil(MOST_TASKS));
    parts(v.write(), at(p.tiles) * row, tiles * row)
        .into_par_iter()
        .enumerate()
        .for_each(|(part, v)| dispatch(arch, Tiles { image: &image, first: part * tiles, v }));
}

impl<E: Stored> Image<'_, E> {
    /// Returns the first element of x of a pixel of the image, or `None` outside.
    #[inline(always)]
    fn pixel(&self, row: i64, column: i64) -> Option<usize> {
        let p = &self.p;
        let row = read_at(row, p.height, self.beyond)?;
        let column = read_at(column, p.width, self.beyond)?;
        let shift = u32::from(self.doubled);
        let row_of_x = place_of(row >> shift, p.x_row0, p.height >> shift, self.beyond);
        let index = row_of_x * i64::from(p.x_width) + (column >> shift);
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        if !self.shuffled {
            return Some(index * at4(p.channels4));
        }
        let place = usize::from(row & 1 == 1) * 2 + usize::from(column & 1 == 1);
        Some(index * 4 * at4(p.channels4) + place * at4(p.frame4))
    }

    /// Returns the input of the convolution: `count` channels from `channel` on, of which the first
    /// is at `index` of x.
    #[inline(always)]
    fn value<S: Simd>(&self, simd: S, index: usize, channel: usize, count: usize) -> S::f32s {
        let mut value = load(simd, self.x, index, count);
        if let Some(norm) = &self.norm {
            let (scale, shift) = (load(simd, &norm.scale, channel, count), load(simd, &norm.shift, channel, count));
            value = simd.mul_add_e_f32s(value, scale, shift);
        }
        self.activate.apply(simd, value)
    }
}

impl<E: Stored> WithSimd for Tiles<'_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { image, first, v } = self;
        let p = &image.p;
        let row = at4(p.v_channels4);
        // If shuffled, a frame of x holds four of the image.
        let frame = if image.shuffled { at4(p.frame4) } else { at4(p.channels4) };
        // Cleared once, not for each tile.
        let mut columns = [[simd.splat_f32s(0.0); 6]; 6];
        for tile in 0..v[0].len() / row {
            let [tile_y, tile_x] = [(first + tile) / at(p.tiles_x), (first + tile) % at(p.tiles_x)];
            let y = i64::from(p.y0) + tile_y as i64 * 4 - 1;
            let x = (i64::from(p.tile_x0) + tile_x as i64) * 4 - 1;
            let mut pixels = [[None; 6]; 6];
            for (index, pixel) in pixels.as_flattened_mut().iter_mut().enumerate() {
                *pixel = image.pixel(y + (index / 6) as i64, x + (index % 6) as i64);
            }
            let mut channel = 0;
            while channel < at4(p.channels4) {
                let count = S::F32_LANES.min(frame - channel % frame);
                let source = channel + channel / frame * frame * if image.shuffled { 3 } else { 0 };
                for (x, column) in columns.iter_mut().enumerate() {
                    let mut values = [simd.splat_f32s(0.0); 6];
                    for (value, pixels) in values.iter_mut().zip(&pixels) {
                        if let Some(pixel) = pixels[x] {
                            *value = image.value(simd, pixel + source, channel, count);
                        }
                    }
                    *column = transform(simd, values);
                }
                let target = tile * row + at4(p.v_channel0) + channel;
                for y in 0..6 {
                    let points = transform(simd, across(&columns, y));
                    for x in 0..6 {
                        store(simd, v[y * 6 + x], target, count, points[x]);
                    }
                }
                channel += count;
            }
        }
    }
}

/// Returns B^T d for one column.
#[inline(always)]
fn transform<S: Simd>(simd: S, d: [S::f32s; 6]) -> [S::f32s; 6] {
    let near_even = plus(simd, d[4], -2.0, d[2]);
    let near_odd = plus(simd, times(simd, A, d[3]), -B, d[1]);
    let far_even = plus(simd, d[4], -0.5, d[2]);
    let far_odd = plus(simd, times(simd, B, d[3]), -A, d[1]);
    [
        plus(simd, simd.add_f32s(d[0], d[4]), -2.5, d[2]),
        simd.add_f32s(near_even, near_odd),
        simd.sub_f32s(near_even, near_odd),
        simd.add_f32s(far_even, far_odd),
        simd.sub_f32s(far_even, far_odd),
        plus(simd, simd.add_f32s(d[1], d[5]), -2.5, d[3]),
    ]
}
