//! Twin: y[p][i] = x[p][i], byte by byte.

use wgvae::kernels::frames::CopyFramesParams;

use super::{Call, at, vec4_bytes};

pub(super) fn run(call: &mut Call<'_>) {
    let p: CopyFramesParams = call.params();
    let bytes = vec4_bytes(call.storage("Stored"));
    call.assert_covers(p.pixels * p.vec4s);
    assert!(p.vec4s <= p.x_pixel4.min(p.y_pixel4), "{p:?}");
    let x = call.bindings[0].to_vec();
    for pixel in 0..at(p.pixels) {
        let source = (at(p.x_offset) + pixel * at(p.x_pixel4)) * bytes;
        let target = (at(p.y_offset) + pixel * at(p.y_pixel4)) * bytes;
        let length = at(p.vec4s) * bytes;
        call.bindings[1].to_mut()[target..][..length].copy_from_slice(&x[source..][..length]);
    }
}
