//! Merges the moments of all runs and channels of a group: the factors and summands of the norm.
//! The merge is that of `shaders/parts/moments.wgsl`, in f64.

use crate::cpu::call::{Call, at, at4};
use crate::cpu::parallel::*;
use crate::kernels::group_norm::FinishParams;

pub(super) fn run(mut call: Call<'_>) {
    let p: FinishParams = call.params();
    let [moments, weight, bias, norm] = call.take();
    let (moments, weight, bias, norm) =
        (moments.read::<f32>(), weight.read::<f32>(), bias.read::<f32>(), norm.write::<f32>());
    let (group, groups) = (at(p.channels_per_group), at(p.channels / p.channels_per_group));
    let norms: Vec<[f64; 2]> = (0..at(p.frames) * groups)
        .into_par_iter()
        .map(|index| {
            let (frame, first) = (index / groups, index % groups * group);
            let runs = (0..at(p.runs)).flat_map(|run| (first..first + group).map(move |channel| (run, channel)));
            let found = runs.map(|(run, channel)| {
                let place = ((run * at(p.frames) + frame) * at(p.channels4) + channel / 4) * 12 + channel % 4;
                [moments[place], moments[place + 4], moments[place + 8]].map(f64::from)
            });
            let [count, mean, m2] = found.fold([0.0; 3], merge);
            // An infinite variance would make every value the bias: an overflow must stay visible.
            let variance = if m2.is_finite() { m2 / count } else { f64::NAN };
            [mean, 1.0 / (variance + f64::from(p.eps)).sqrt()]
        })
        .collect();
    for (frame, norm) in norm.chunks_exact_mut(at4(p.channels4) * 2).enumerate().take(at(p.frames)) {
        for channel in 0..at4(p.channels4) {
            let place = channel / 4 * 8 + channel % 4;
            // Padding channels belong to no group and stay zero.
            let (scale, shift) = if channel < at(p.channels) {
                let [mean, inverse_deviation] = norms[frame * groups + channel / group];
                let scale = f64::from(weight[channel]) * inverse_deviation;
                (scale, f64::from(bias[channel]) - mean * scale)
            } else {
                (0.0, 0.0)
            };
            (norm[place], norm[place + 4]) = (rounded(scale), rounded(shift));
        }
    }
}

/// Merges count, mean and M2 of two disjoint sets.
fn merge([count, mean, m2]: [f64; 3], [more, other, other_m2]: [f64; 3]) -> [f64; 3] {
    let all = count + more;
    if all == 0.0 {
        return [0.0; 3];
    }
    let (delta, share) = (other - mean, more / all);
    [all, mean + delta * share, m2 + other_m2 + delta * delta * count * share]
}

#[expect(clippy::cast_possible_truncation, reason = "rounded where it is stored")]
fn rounded(value: f64) -> f32 {
    value as f32
}
