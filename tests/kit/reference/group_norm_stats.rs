//! Twin: count, mean and sum of squared deviations of runs of pixels, in two passes.

use wgvae::Storage;
use wgvae::kernels::group_norm::StatsParams;

use super::{Call, at, each};

pub(super) fn run(call: &mut Call<'_>) {
    let p: StatsParams = call.params();
    call.assert_covers(p.runs * p.channels4);
    let x = call.vec4s(1, call.storage("Stored"));
    for run in 0..at(p.runs) {
        let pixels = run * at(p.run)..((run + 1) * at(p.run)).min(at(p.pixels));
        assert!(!pixels.is_empty(), "an empty run: {p:?}");
        for channel in 0..at(p.channels4) {
            let values: Vec<[f32; 4]> =
                pixels.clone().map(|pixel| x[at(p.x_offset) + pixel * at(p.channels4) + channel]).collect();
            let target = (at(p.moments_offset) + run) * at(p.channels4) + channel;
            write_moments(call, 2, target, &values);
        }
    }
}

/// Writes the moments of `values` as element `target` of binding `index`.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
pub(super) fn write_moments(call: &mut Call<'_>, index: usize, target: usize, values: &[[f32; 4]]) {
    let count = values.len() as f64;
    let mean = |lane: usize| values.iter().map(|value| f64::from(value[lane])).sum::<f64>() / count.max(1.0);
    let m2 = |lane: usize| {
        let mean = mean(lane);
        values.iter().map(|value| (f64::from(value[lane]) - mean).powi(2)).sum()
    };
    call.set(index, Storage::F32, target * 3, each(|_| count));
    call.set(index, Storage::F32, target * 3 + 1, each(mean));
    call.set(index, Storage::F32, target * 3 + 2, each(m2));
}
