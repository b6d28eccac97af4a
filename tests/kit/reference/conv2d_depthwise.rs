//! Twin: a convolution of each channel by itself with zeros beyond the image, perhaps with a gate.

use wgvae::Storage;
use wgvae::kernels::conv2d_depthwise::DepthwiseParams;

use super::{Call, activate, at, each};

/// Value of `ACTIVATION` for `SiLU`.
const SILU: u32 = 1;

pub(super) fn run(call: &mut Call<'_>) {
    let p: DepthwiseParams = call.params();
    let (input, output) = (call.storage("Stored"), call.storage("Output"));
    let (side, gated) = (i64::from(call.variant.number("SIDE")), call.variant.flag("GATED"));
    let activation = call.variant.number("ACTIVATION");
    assert!(p.spans * call.variant.number("PIXELS") >= p.width, "{p:?}");
    call.assert_covers(p.rows * p.spans * p.y_channels4);
    assert_eq!(p.x_channels4, p.y_channels4 * if gated { 2 } else { 1 }, "{p:?}");
    let (x, weights, bias) = (call.vec4s(1, input), call.vec4s(2, Storage::F32), call.vec4s(3, Storage::F32));
    let value = |row: i64, column: i64, channel: usize, lane: usize| {
        let mut sum = 0.0;
        for tap in 0..side * side {
            let (from_row, from_column) = (row + tap / side - side / 2, column + tap % side - side / 2);
            if (0..i64::from(p.height)).contains(&from_row) && (0..i64::from(p.width)).contains(&from_column) {
                let pixel = (from_row - i64::from(p.x_row0)) * i64::from(p.width) + from_column;
                let seen = x[at(pixel) * at(p.x_channels4) + channel][lane];
                let weight = weights[at(tap) * at(p.x_channels4) + channel][lane];
                sum += activate(f64::from(seen), activation) * f64::from(weight);
            }
        }
        sum * f64::from(p.scale) + f64::from(bias[channel][lane])
    };
    for (row, column) in (p.y0..p.y0 + p.rows).flat_map(|row| (0..p.width).map(move |column| (row, column))) {
        for channel in 0..at(p.y_channels4) {
            let result = each(|lane| {
                let value = |channel| value(row.into(), column.into(), channel, lane);
                let own = value(channel);
                if gated {
                    own * activate(value(channel + at(p.y_channels4)), SILU) * f64::from(p.gate_scale)
                } else {
                    own
                }
            });
            let pixel = at((row - p.y_row0) * p.width + column);
            call.set(4, output, pixel * at(p.y_channels4) + channel, result);
        }
    }
}
