//! Copies frames of each pixel from one tensor to another.

use crate::cpu::call::{Call, at, at4};
use crate::cpu::parallel::*;
use crate::cpu::stored::Stored;
use crate::kernels::frames::CopyFramesParams;

pub(super) fn run<E: Stored>(mut call: Call<'_>) {
    let p: CopyFramesParams = call.params();
    let [x, y] = call.take();
    let (from, to) = (x.read::<E>()[at4(p.x_offset)..].par_chunks(at4(p.x_pixel4)), y.write());
    let to = to[at4(p.y_offset)..].par_chunks_mut(at4(p.y_pixel4));
    from.zip(to).take(at(p.pixels)).for_each(|(x, y)| y[..at4(p.vec4s)].copy_from_slice(&x[..at4(p.vec4s)]));
}
