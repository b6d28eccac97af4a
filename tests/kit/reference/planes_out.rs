//! Twin: y[t][c][h][w] = x[h][w][t][c] * factor + offset. On request, finite values are clamped to
//! -1..1.

use wgvae::Storage;
use wgvae::kernels::edges::PlanesOutParams;

use super::{Call, at, round};

pub(super) fn run(call: &mut Call<'_>) {
    let p: PlanesOutParams = call.params();
    call.assert_covers(p.pixels * p.frames * p.channels4);
    let frames = at(p.frames);
    let x = call.vec4s(1, Storage::F32);
    for (pixel, frame) in (0..at(p.pixels)).flat_map(|pixel| (0..frames).map(move |frame| (pixel, frame))) {
        for channel in 0..at(p.channels) {
            let value = x[(pixel * frames + frame) * at(p.channels4) + channel / 4][channel % 4];
            let mut value = round(f64::from(value) * f64::from(p.factor) + f64::from(p.offset));
            if call.variant.flag("CLAMP") && value.is_finite() {
                value = value.clamp(-1.0, 1.0);
            }
            call.set_float(2, (frame * at(p.channels) + channel) * at(p.pixels) + pixel, value);
        }
    }
}
