//! Twin: the sum over all runs.

use wgvae::Storage;
use wgvae::kernels::linear_attention::FinishParams;

use super::{Call, at, each};

pub(super) fn run(call: &mut Call<'_>) {
    let p: FinishParams = call.params();
    call.assert_covers(p.elements);
    let sums = call.vec4s(1, Storage::F32);
    for element in 0..at(p.elements) {
        let of_run = |run: usize, lane: usize| f64::from(sums[run * at(p.elements) + element][lane]);
        call.set(2, Storage::F32, element, each(|lane| (0..at(p.runs)).map(|run| of_run(run, lane)).sum()));
    }
}
