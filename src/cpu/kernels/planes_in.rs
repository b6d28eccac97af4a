//! The network's input: planar to channels last, scaled, and unpacked from squares of pixels.

use crate::cpu::call::{Call, at, at4};
use crate::cpu::parallel::*;
use crate::cpu::stored::Stored;
use crate::kernels::edges::PlanesInParams;

pub(super) fn run<E: Stored>(mut call: Call<'_>) {
    let p: PlanesInParams = call.params();
    let (patch, squash) = (at(call.variant.number("PATCH")), call.variant.flag("SQUASH"));
    let unpacked = call.variant.flag("UNPACKED");
    let [x, factor_offset, y] = call.take();
    let (x, factor_offset) = (x.read::<f32>(), factor_offset.read::<f32>());
    let planes = at(p.channels) * patch * patch;
    let value = |frame: usize, channel: usize, row: usize, column: usize| {
        let place = row % patch * patch + column % patch;
        let source = channel * at(p.channel_step) + place * at(p.place_step);
        let index = if unpacked {
            (frame * at(p.channels) + channel) * at(p.plane) + row * at(p.x_width) + column
        } else {
            (frame * planes + source) * at(p.plane) + row / patch * at(p.x_width) + column / patch
        };
        let scaled = x[index].mul_add(factor_offset[source], factor_offset[planes + source]);
        if squash { 3.0 * (scaled / 3.0).tanh() } else { scaled }
    };
    let pixels = y.write::<E>().par_chunks_mut(at(p.frames) * at4(p.channels4)).take(at(p.pixels));
    pixels.enumerate().for_each(|(pixel, y)| {
        let (row, column) = (pixel / at(p.width), pixel % at(p.width));
        for (frame, y) in y.chunks_exact_mut(at4(p.channels4)).enumerate() {
            let (used, padding) = y.split_at_mut(at(p.channels));
            used.iter_mut().enumerate().for_each(|(channel, y)| *y = E::of(value(frame, channel, row, column)));
            padding.fill(E::zeroed());
        }
    });
}
