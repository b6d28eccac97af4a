//! Twin: RGBA8 = round(clamp(z / 2 + 1/2) * 255), half to even, where z = x * factor + offset. Rows
//! are `stride` apart, and frames lie one below the other.

use wgvae::Storage;
use wgvae::internals::NOT_FINITE;
use wgvae::kernels::edges::ImageOutParams;

use super::{Call, at};

pub(super) fn run(call: &mut Call<'_>) {
    let p: ImageOutParams = call.params();
    call.assert_covers(p.pixels * p.frames);
    let x = call.vec4s(1, Storage::F32);
    let (rows, frames) = (at(p.pixels / p.width), at(p.frames));
    for (index, color) in x[..at(p.pixels) * frames].iter().enumerate() {
        let (pixel, frame) = (index / frames, index % frames);
        let mut color = color.map(|value| value.mul_add(p.factor, p.offset));
        if !call.variant.flag("ALPHA") {
            color[3] = 1.0;
        }
        let level = color.map(level);
        let red = if call.variant.flag("BGRA") { 2 } else { 0 };
        let mut levels = [level[red], level[1], level[2 - red], level[3]];
        if levels == NOT_FINITE {
            levels[1] += 1;
        }
        if !color.iter().all(|value| value.is_finite()) {
            levels = NOT_FINITE;
        }
        let target = (frame * rows + pixel / at(p.width)) * at(p.stride) + pixel % at(p.width);
        call.bindings[1].to_mut()[target * 4..][..4].copy_from_slice(&levels);
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
fn level(value: f32) -> u8 {
    // In f32, as in the kernel: the level of a value near a half is part of the definition.
    ((value.mul_add(0.5, 0.5).clamp(0.0, 1.0) * 255.0).round_ties_even()) as u8
}
