//! The pixels that a 3x3 filter sees, one after the other.

use crate::cpu::call::{Call, at, at4};
use crate::cpu::parallel::*;
use crate::cpu::stored::Stored;
use crate::kernels::unfold::UnfoldParams;

const TAPS: usize = 9;

pub(super) fn run<E: Stored>(mut call: Call<'_>) {
    let p: UnfoldParams = call.params();
    let (stride, before) = (i64::from(call.variant.number("STRIDE")), i64::from(call.variant.number("BEFORE")));
    let [x, y] = call.take();
    let x = x.read::<E>();
    let channels = at4(p.channels4);
    // Returns the pixel of x that a tap sees, or `None` outside.
    let source = |pixel: usize, tap: usize| {
        let row = (pixel / at(p.width)) as i64 * stride + (tap / 3) as i64 - before;
        let column = (pixel % at(p.width)) as i64 * stride + (tap % 3) as i64 - before;
        let inside = (0..i64::from(p.x_height)).contains(&row) && (0..i64::from(p.x_width)).contains(&column);
        inside
            .then(|| usize::try_from((row - i64::from(p.x_row0)) * i64::from(p.x_width) + column).unwrap_or(usize::MAX))
    };
    let pixels = y.write::<E>().par_chunks_mut(at(p.frames_y) * TAPS * channels).take(at(p.pixels));
    pixels.enumerate().for_each(|(pixel, y)| {
        let y = &mut y[at(p.frame0) * TAPS * channels..];
        for (index, y) in y.chunks_exact_mut(channels).take(at(p.frames) * TAPS).enumerate() {
            let (frame, tap) = (index / TAPS, index % TAPS);
            match source(at(p.first) + pixel, tap) {
                Some(pixel) => y.copy_from_slice(&x[(pixel * at(p.frames) + frame) * channels..][..channels]),
                None => y.fill(E::zeroed()),
            }
        }
    });
}
