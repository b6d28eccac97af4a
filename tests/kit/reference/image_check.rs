//! Twin: for each workgroup of the launch, writes 1 + the first pixel of its share that marks a
//! value that is not finite, or 0 if there is none.

use wgvae::internals::NOT_FINITE;
use wgvae::kernels::WORKGROUP;
use wgvae::kernels::edges::ImageCheckParams;

use super::{Call, at};

pub(super) fn run(call: &mut Call<'_>) {
    let p: ImageCheckParams = call.params();
    let groups = call.workgroups[0];
    let mut found = vec![0_u32; at(groups)];
    for pixel in (0..p.pixels).rev() {
        let place = at(pixel / p.width * p.stride + pixel % p.width);
        if call.bindings[0][place * 4..][..4] == NOT_FINITE {
            found[at(pixel / WORKGROUP % groups)] = pixel + 1;
        }
    }
    for (group, first) in found.iter().enumerate() {
        call.bindings[0].to_mut()[(at(p.check) + group) * 4..][..4].copy_from_slice(&first.to_le_bytes());
    }
}
