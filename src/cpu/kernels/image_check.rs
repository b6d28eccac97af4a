//! The first pixel of a picture that is not finite, in each of 64 groups of pixels.

use crate::cpu::call::{Call, at};
use crate::kernels::WORKGROUP;
use crate::kernels::edges::{CHECK_WORDS, ImageCheckParams};
use crate::tensor::rgba8::NOT_FINITE;

pub(super) fn run(mut call: Call<'_>) {
    let p: ImageCheckParams = call.params();
    let [y] = call.take();
    let y: &mut [u32] = y.write();
    let (pixels, words) = y.split_at_mut(at(p.check));
    let words = &mut words[..at(CHECK_WORDS)];
    words.fill(0);
    for pixel in 0..p.pixels {
        let color = pixels[at(pixel / p.width * p.stride + pixel % p.width)];
        let word = &mut words[at(pixel / WORKGROUP % CHECK_WORDS)];
        if color == u32::from_le_bytes(NOT_FINITE) && *word == 0 {
            *word = pixel + 1;
        }
    }
}
