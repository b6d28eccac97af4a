//! 3x3 convolutions with few channels, with taps in time as well.

use pulp::{Arch, Simd, WithSimd};

use super::border::{place_of, read_at};
use crate::cpu::call::{Call, at, at4};
use crate::cpu::lanes::{self, dispatch, load, relu, store};
use crate::cpu::parallel::*;
use crate::cpu::stored::Stored;
use crate::kernels::conv2d_direct::Conv2dDirectParams;

/// Neighbouring pixels whose sums stay in registers.
const PIXELS: usize = 8;

/// Input columns that the filters of these pixels read.
const SEEN: usize = PIXELS + 2;

/// A launch, for all of its rows.
struct Convolution<'a, E> {
    p: Conv2dDirectParams,
    /// `[rows, w, frames_in, c_in]`.
    x: &'a [E],
    /// `[times, 3, 3, c_in, columns]`.
    w: Vec<f32>,
    /// Output channels, padded to whole vectors.
    columns: usize,
    bias: &'a [f32],
    times: usize,
    /// Zeros, `[times, c_in]`: the pixels beyond the image.
    outside: Vec<f32>,
    doubled: bool,
    /// Kind of the pixels beyond the image.
    beyond: u32,
    relu: bool,
}

/// One row of the output.
struct Row<'a, 'y, E, O> {
    convolution: &'a Convolution<'a, E>,
    y: i64,
    /// `[w, frames, c_out]`.
    row: &'y mut [O],
}

pub(super) fn run<E: Stored, O: Stored>(mut call: Call<'_>) {
    let p: Conv2dDirectParams = call.params();
    let arch = call.arch;
    let (times, doubled) = (at(call.variant.number("TAPS_T")), call.variant.number("SHIFT") == 1);
    let (relu, beyond) = (call.variant.flag("RELU"), call.variant.number("BEYOND"));
    let [x, w, bias, y] = call.take();
    let (w, columns) = padded(arch, w.read::<E>(), at4(p.c_out4));
    let outside = vec![0.0; times * at4(p.c_in4)];
    let convolution =
        Convolution { p, x: x.read::<E>(), w, columns, bias: bias.read(), times, outside, doubled, beyond, relu };
    let first = usize::try_from(i64::from(p.y0) - i64::from(p.y_row0)).unwrap_or(usize::MAX);
    let row = at(p.width) * at(p.frames) * at4(p.c_out4);
    y.write::<O>()[first * row..].par_chunks_mut(row).take(at(p.rows)).enumerate().for_each(|(index, row)| {
        dispatch(arch, Row { convolution: &convolution, y: i64::from(p.y0) + index as i64, row });
    });
}

/// The input channels, `[times, c_in]`, of the pixels that the filters of [`PIXELS`] pixels see.
type Seen<'a> = [[&'a [f32]; SEEN]; 3];

/// Returns rows of `columns` floats, padded with zeros to whole vectors, and their length then. So
/// a convolution to three channels loads whole vectors, too.
fn padded<E: Stored>(arch: Arch, w: &[E], columns: usize) -> (Vec<f32>, usize) {
    let wide = columns.next_multiple_of(lanes::count(arch));
    let rows = w.chunks_exact(columns);
    let zeros = wide - columns;
    (rows.flat_map(|row| row.iter().map(|value| value.get()).chain(std::iter::repeat_n(0.0, zeros))).collect(), wide)
}

impl<E: Stored> Convolution<'_, E> {
    /// Returns the first element of x of a pixel of the image, or `None` outside.
    #[inline(always)]
    fn pixel(&self, row: i64, column: i64) -> Option<usize> {
        let p = &self.p;
        let row = read_at(row, p.height, self.beyond)?;
        let column = read_at(column, p.width, self.beyond)?;
        let shift = u32::from(self.doubled);
        let row_of_x = place_of(row >> shift, p.x_row0, p.height >> shift, self.beyond);
        let index = row_of_x * i64::from(p.x_width) + (column >> shift);
        Some(usize::try_from(index).unwrap_or(usize::MAX) * at(p.frames_in) * at4(p.c_in4))
    }

    /// Returns the input of the filters of [`PIXELS`] pixels of row `y`, from column `first` on:
    /// where it lies if it is f32, else copied to `space`.
    fn seen<'a>(&'a self, y: i64, frame: usize, first: usize, space: &'a mut [f32]) -> Seen<'a> {
        let c_in = at4(self.p.c_in4);
        let mut seen = [[self.outside.as_slice(); SEEN]; 3];
        let spaces = space.chunks_exact_mut(self.times * c_in);
        for (index, (pixel, space)) in seen.as_flattened_mut().iter_mut().zip(spaces).enumerate() {
            let (row, column) = (y + (index / SEEN) as i64 - 1, (first + index % SEEN) as i64 - 1);
            if let Some(place) = self.pixel(row, column) {
                let x = &self.x[place + frame * c_in..][..space.len()];
                *pixel = E::floats(x).unwrap_or_else(|| {
                    E::widen(x, space);
                    space
                });
            }
        }
        seen
    }
}

impl<E: Stored, O: Stored> WithSimd for Row<'_, '_, E, O> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let p = &self.convolution.p;
        let mut space = vec![0.0; 3 * SEEN * self.convolution.times * at4(p.c_in4)];
        for frame in 0..at(p.frames) {
            for first in (0..at(p.width)).step_by(PIXELS) {
                let seen = self.convolution.seen(self.y, frame, first, &mut space);
                for column in (0..at4(p.c_out4)).step_by(S::F32_LANES) {
                    self.pixels(simd, &seen, (frame, first, column));
                }
            }
        }
    }
}

impl<E: Stored, O: Stored> Row<'_, '_, E, O> {
    /// Computes a vector of channels of [`PIXELS`] pixels from `first` on.
    #[inline(always)]
    fn pixels<S: Simd>(&mut self, simd: S, seen: &Seen<'_>, (frame, first, column): (usize, usize, usize)) {
        let Convolution { p, w, columns, bias, times, relu: cut, .. } = self.convolution;
        let (c_in, c_out) = (at4(p.c_in4), at4(p.c_out4));
        let mut sums = [simd.splat_f32s(0.0); PIXELS];
        for tap in 0..times * 9 {
            let row = &seen[tap / 3 % 3][tap % 3..];
            let sources: [&[f32]; PIXELS] = std::array::from_fn(|pixel| &row[pixel][tap / 9 * c_in..][..c_in]);
            for k in 0..c_in {
                let weight = load(simd, w, (tap * c_in + k) * columns + column, S::F32_LANES);
                for (sum, source) in sums.iter_mut().zip(&sources) {
                    *sum = simd.mul_add_e_f32s(simd.splat_f32s(source[k]), weight, *sum);
                }
            }
        }
        let count = S::F32_LANES.min(c_out - column);
        let (scale, bias) = (simd.splat_f32s(p.scale), load(simd, bias, column, count));
        for (pixel, sum) in sums.into_iter().enumerate().take(at(p.width) - first) {
            let value = simd.mul_add_e_f32s(sum, scale, bias);
            let value = if *cut { relu(simd, value) } else { value };
            store(simd, self.row, ((first + pixel) * at(p.frames) + frame) * c_out + column, count, value);
        }
    }
}
