//! y[c][h][w] = x[h][w][c] * factor + offset, cut off at -1 and 1 where asked, unless it is not finite.

use wgvae::Storage;
use wgvae::kernels::edges::PlanesOutParams;

use super::{Call, at, round};

pub(super) fn run(call: &mut Call<'_>) {
    let p: PlanesOutParams = call.params();
    call.assert_covers(p.pixels * p.channels4);
    let x = call.vec4s(1, Storage::F32);
    for pixel in 0..at(p.pixels) {
        for channel in 0..at(p.channels) {
            let value = x[pixel * at(p.channels4) + channel / 4][channel % 4];
            let mut value = round(f64::from(value) * f64::from(p.factor) + f64::from(p.offset));
            if call.variant.flag("CLAMP") && value.is_finite() {
                value = value.clamp(-1.0, 1.0);
            }
            call.set_float(2, channel * at(p.pixels) + pixel, value);
        }
    }
}
