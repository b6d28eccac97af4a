//! Twin: y = accumulated / sum.

use wgvae::Storage;
use wgvae::kernels::attention::FinishParams;

use super::{Call, at, each};

pub(super) fn run(call: &mut Call<'_>) {
    let p: FinishParams = call.params();
    let storage = call.storage("Stored");
    call.assert_covers(p.queries * p.channels4);
    let (accumulated, state) = (call.vec4s(1, Storage::F32), call.floats(2));
    for index in 0..at(p.queries * p.channels4) {
        let sum = f64::from(state[index / at(p.channels4) * 2 + 1]);
        let value = each(|lane| f64::from(accumulated[index][lane]) / sum);
        call.set(3, storage, at(p.y_offset) + index, value);
    }
}
