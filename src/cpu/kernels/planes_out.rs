//! The network's result: channels last to planar f32.

use crate::cpu::call::{Call, at, at4};
use crate::cpu::parallel::*;
use crate::kernels::edges::PlanesOutParams;

pub(super) fn run(mut call: Call<'_>) {
    let p: PlanesOutParams = call.params();
    let cut = call.variant.flag("CLAMP");
    let [x, y] = call.take();
    let x = x.read::<f32>();
    let pixel_floats = at(p.frames) * at4(p.channels4);
    let planes = y.write::<f32>().par_chunks_mut(at(p.pixels)).take(at(p.frames) * at(p.channels));
    planes.enumerate().for_each(|(plane, y)| {
        let (frame, channel) = (plane / at(p.channels), plane % at(p.channels));
        let first = frame * at4(p.channels4) + channel;
        for (y, pixel) in y.iter_mut().zip(x.chunks_exact(pixel_floats)) {
            let value = pixel[first].mul_add(p.factor, p.offset);
            // A value that is not finite stays: an overflow must not pass for a colour.
            *y = if cut && value.is_finite() { value.clamp(-1.0, 1.0) } else { value };
        }
    });
}
