//! The network's image as RGBA8. Alpha is 0 where a colour is not finite.

use rayon::prelude::*;

use crate::cpu::call::{Call, at};
use crate::kernels::edges::ImageOutParams;

pub(super) fn run(mut call: Call<'_>) {
    let p: ImageOutParams = call.params();
    let bgra = call.variant.flag("BGRA");
    let [x, y] = call.take();
    let x = x.read().as_chunks::<4>().0;
    let y: &mut [u32] = bytemuck::cast_slice_mut(y.write());
    let (width, height) = (at(p.width), at(p.pixels / p.width));
    y.par_chunks_mut(at(p.stride)).take(height * at(p.frames)).enumerate().for_each(|(row, y)| {
        let (frame, row) = (row / height, row % height);
        for (column, y) in y.iter_mut().enumerate().take(width) {
            let [red, green, blue, _] = x[(row * width + column) * at(p.frames) + frame];
            let mut color = [red, green, blue].map(|value| value.mul_add(p.factor, p.offset));
            if bgra {
                color.swap(0, 2);
            }
            let alpha = if color.iter().all(|value| value.is_finite()) { 255 } else { 0 };
            let [first, second, third] = color.map(level);
            *y = u32::from_le_bytes([first, second, third, alpha]);
        }
    });
}

/// Returns the level of a value from -1 to 1, half to even as diffusers rounds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
fn level(value: f32) -> u8 {
    (value.mul_add(0.5, 0.5).clamp(0.0, 1.0) * 255.0).round_ties_even() as u8
}
