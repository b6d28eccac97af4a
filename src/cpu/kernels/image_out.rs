//! The network's image as RGBA8, with the mark of [`rgba8`] for values that are not finite.

use crate::cpu::call::{Call, at};
use crate::cpu::parallel::*;
use crate::kernels::edges::ImageOutParams;
use crate::tensor::rgba8::rgba8;

pub(super) fn run(mut call: Call<'_>) {
    let p: ImageOutParams = call.params();
    let (bgra, alpha) = (call.variant.flag("BGRA"), call.variant.flag("ALPHA"));
    let [x, y] = call.take();
    let x = x.read::<f32>().as_chunks::<4>().0;
    let y: &mut [u32] = y.write();
    let (width, height) = (at(p.width), at(p.pixels / p.width));
    y.par_chunks_mut(at(p.stride)).take(height * at(p.frames)).enumerate().for_each(|(row, y)| {
        let (frame, row) = (row / height, row % height);
        for (column, y) in y.iter_mut().enumerate().take(width) {
            let mut color =
                x[(row * width + column) * at(p.frames) + frame].map(|value| value.mul_add(p.factor, p.offset));
            if bgra {
                color.swap(0, 2);
            }
            if !alpha {
                color[3] = 1.0;
            }
            *y = u32::from_le_bytes(rgba8(color));
        }
    });
}
