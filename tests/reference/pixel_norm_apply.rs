//! Twin: y = x / max(sqrt(|x|^2 + eps), least) * root * gamma, with |x| over the channels of a
//! pixel; then the activation.

use wgvae::Storage;
use wgvae::kernels::pixel_norm::PixelNormParams;

use super::{Call, activate, at, each};

pub(super) fn run(call: &mut Call<'_>) {
    let p: PixelNormParams = call.params();
    let storage = call.storage("Stored");
    call.assert_covers(p.pixels * p.frames * call.variant.number("LANES"));
    let (x, gamma) = (call.vec4s(1, storage), call.vec4s(2, Storage::F32));
    let activation = call.variant.number("ACTIVATION");
    let frames = at(p.frames);
    for (pixel, frame) in (0..at(p.pixels)).flat_map(|pixel| (0..frames).map(move |frame| (pixel, frame))) {
        let first = at(p.x_offset) + (pixel * frames + frame) * at(p.channels4);
        let target = at(p.y_offset) + pixel * at(p.y_pixel4) + frame * at(p.channels4);
        let pixel_x = &x[first..first + at(p.channels4)];
        let squares: f64 = pixel_x.iter().flatten().map(|value| f64::from(*value).powi(2)).sum();
        let factor = f64::from(p.root) / (squares + f64::from(p.eps)).sqrt().max(f64::from(p.least));
        for channel in 0..at(p.channels4) {
            let value = each(|lane| {
                activate(f64::from(pixel_x[channel][lane]) * factor * f64::from(gamma[channel][lane]), activation)
            });
            call.set(3, storage, target + channel, value);
        }
    }
}
