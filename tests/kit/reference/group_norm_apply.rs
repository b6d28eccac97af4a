//! Twin: y = x * scale + shift, then the activation.

use wgvae::Storage;
use wgvae::kernels::group_norm::ApplyParams;

use super::{Call, activate, at, each};

pub(super) fn run(call: &mut Call<'_>) {
    let p: ApplyParams = call.params();
    let storage = call.storage("Stored");
    call.assert_covers(p.elements);
    let (x, norm) = (call.vec4s(1, storage), call.vec4s(2, Storage::F32));
    let activation = call.variant.number("ACTIVATION");
    for index in 0..at(p.elements) {
        let channel = index % at(p.channels4);
        let value = each(|lane| {
            let x = f64::from(x[at(p.x_offset) + index][lane]);
            activate(x * f64::from(norm[channel * 2][lane]) + f64::from(norm[channel * 2 + 1][lane]), activation)
        });
        let target = at(p.y_offset) + index / at(p.channels4) * at(p.y_pixel4) + channel;
        call.set(3, storage, target, value);
    }
}
