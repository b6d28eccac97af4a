//! Twin: merges the moments of all runs into scale and shift of each channel, frame by frame.

use wgvae::kernels::group_norm::FinishParams;

use super::{Call, at, round};

pub(super) fn run(call: &mut Call<'_>) {
    let p: FinishParams = call.params();
    let moments = call.floats(1);
    let (weight, bias) = (call.floats(2), call.floats(3));
    assert_eq!(call.workgroups[0] * p.channels_per_group, p.channels, "{p:?}");
    assert_eq!(call.workgroups[1], p.frames, "{p:?}");
    let groups = at(call.workgroups[0]);
    for (frame, group) in (0..at(p.frames)).flat_map(|frame| (0..groups).map(move |group| (frame, group))) {
        // Moments of the runs of a channel: count, mean, M2.
        let runs = |channel: usize| {
            let moments = &moments;
            (0..at(p.runs)).map(move |run| {
                let source = ((run * at(p.frames) + frame) * at(p.channels4) + channel / 4) * 12 + channel % 4;
                [0, 4, 8].map(|part| f64::from(moments[source + part]))
            })
        };
        let channels = group * at(p.channels_per_group)..(group + 1) * at(p.channels_per_group);
        let all = || channels.clone().flat_map(runs);
        let count: f64 = all().map(|[count, ..]| count).sum();
        let mean = all().map(|[count, mean, _]| count * mean).sum::<f64>() / count;
        let m2: f64 = all().map(|[count, run_mean, m2]| m2 + count * (run_mean - mean).powi(2)).sum();
        let inverse_deviation = 1.0 / (m2 / count + f64::from(p.eps)).sqrt();
        for channel in channels.clone() {
            let scale = f64::from(weight[channel]) * inverse_deviation;
            set(call, &p, [frame, channel], scale, f64::from(bias[channel]) - mean * scale);
        }
    }
    for frame in 0..at(p.frames) {
        for channel in at(p.channels)..at(p.channels4) * 4 {
            set(call, &p, [frame, channel], 0.0, 0.0);
        }
    }
}

fn set(call: &mut Call<'_>, p: &FinishParams, [frame, channel]: [usize; 2], scale: f64, shift: f64) {
    let target = (frame * at(p.channels4) + channel / 4) * 8 + channel % 4;
    call.set_float(4, target, round(scale));
    call.set_float(4, target + 4, round(shift));
}
