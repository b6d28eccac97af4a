//! Twin: one block of keys of a streaming softmax.

use wgvae::Storage;
use wgvae::kernels::attention::SoftmaxParams;

use super::{Call, at, round};

/// Initial value of a maximum, as in the kernel.
const LOWEST: f32 = -3.0e38;

pub(super) fn run(call: &mut Call<'_>) {
    let p: SoftmaxParams = call.params();
    let storage = call.storage("Stored");
    let scores = call.vec4s(1, Storage::F32);
    let state = call.floats(3);
    for query in 0..at(call.workgroups[0]) {
        let start = query * at(p.row);
        let score = |key: usize| f64::from(scores[start + key / 4][key % 4] * p.scale);
        let (max_before, sum_before) =
            if p.first == 1 { (LOWEST, 0.0) } else { (state[query * 2], state[query * 2 + 1]) };
        let maximum = (0..at(p.keys)).map(score).fold(f64::from(max_before), f64::max);
        let mut sum = 0.0;
        for key4 in 0..at(p.keys).div_ceil(4) {
            let four = [0, 1, 2, 3].map(|lane| {
                let key = key4 * 4 + lane;
                if key < at(p.keys) { (score(key) - maximum).exp() } else { 0.0 }
            });
            call.set(2, storage, start + key4, four.map(round));
            // The sum is of the rounded probabilities.
            sum += call.get(2, storage, start + key4).into_iter().map(f64::from).sum::<f64>();
        }
        let factor = if p.first == 1 { 0.0 } else { (f64::from(max_before) - maximum).exp() };
        call.set_float(3, query * 2, round(maximum));
        call.set_float(3, query * 2 + 1, round(f64::from(sum_before) * factor + sum));
        call.set_float(4, query, round(factor));
    }
}
