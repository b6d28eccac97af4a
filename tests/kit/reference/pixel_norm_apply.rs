//! Twin: y = x / max(sqrt(|x|^2 + eps), least) * root * gamma + beta, with |x| over the channels of
//! a pixel; then the activation. Perhaps it is added to y.

use wgvae::Storage;
use wgvae::kernels::pixel_norm::PixelNormParams;

use super::{Call, activate, at, each};

pub(super) fn run(call: &mut Call<'_>) {
    let p: PixelNormParams = call.params();
    let storage = call.storage("Stored");
    call.assert_covers(p.pixels * p.frames * call.variant.number("LANES"));
    let (x, gamma) = (call.vec4s(1, storage), call.vec4s(2, Storage::F32));
    let beta = call.variant.flag("HAS_BETA").then(|| call.vec4s(3, Storage::F32));
    let activation = call.variant.number("ACTIVATION");
    let frames = at(p.frames);
    for (pixel, frame) in (0..at(p.pixels)).flat_map(|pixel| (0..frames).map(move |frame| (pixel, frame))) {
        let first = at(p.x_offset) + (pixel * frames + frame) * at(p.channels4);
        let target = at(p.y_offset) + pixel * at(p.y_pixel4) + frame * at(p.channels4);
        let pixel_x = &x[first..first + at(p.channels4)];
        let squares: f64 = pixel_x.iter().flatten().map(|value| f64::from(*value).powi(2)).sum();
        let factor = f64::from(p.root) / (squares + f64::from(p.eps)).sqrt().max(f64::from(p.least));
        for channel in 0..at(p.channels4) {
            let old = call.variant.flag("SUM").then(|| call.get(4, storage, target + channel));
            let value = each(|lane| {
                let of = |values: &[[f32; 4]]| f64::from(values[channel][lane]);
                let normed = of(pixel_x) * factor * of(&gamma) + beta.as_deref().map_or(0.0, of);
                activate(normed, activation) + old.map_or(0.0, |old| f64::from(old[lane]))
            });
            call.set(4, storage, target + channel, value);
        }
    }
}
