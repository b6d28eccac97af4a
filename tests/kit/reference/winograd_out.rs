//! Twin: `y = relu?(y_old? + scale * (A^T m A) + bias)`, and the moments of each run of tiles.

use wgvae::Storage;
use wgvae::kernels::winograd::{OutParams, PAIRS_OUT};

use super::group_norm_stats::write_moments;
use super::{A, B, Call, RELU, activate, at, each, times_both};

const A_T: [[f64; 6]; 4] = [
    [1.0, 1.0, 1.0, 1.0, 1.0, 0.0],
    [0.0, A, -A, B, -B, 0.0],
    [0.0, 0.5, 0.5, 2.0, 2.0, 0.0],
    [0.0, A * A * A, -A * A * A, B * B * B, -B * B * B, 1.0],
];

pub(super) fn run(call: &mut Call<'_>) {
    let p: OutParams = call.params();
    if call.variant.file == "winograd_out_pairs" {
        let [groups, runs, _] = call.workgroups;
        assert!(runs == p.runs && groups * PAIRS_OUT >= p.channels4 * 2, "{groups} by {runs} workgroups: {p:?}");
    } else {
        call.assert_covers(p.runs * p.channels4);
    }
    assert!(p.tiles.is_multiple_of(p.tiles_x), "{p:?}");
    assert_eq!(p.runs, p.runs_x * (p.tiles / p.tiles_x), "{p:?}");
    assert!(p.runs_x * p.run >= p.tiles_x, "{p:?}");
    let (m, bias) = (call.vec4s(1, call.storage("Transformed")), call.vec4s(2, Storage::F32));
    for run in 0..at(p.runs) {
        let first = run % at(p.runs_x) * at(p.run);
        let tiles = first..(first + at(p.run)).min(at(p.tiles_x));
        for channel in 0..at(p.channels4) {
            let mut values = Vec::new();
            for tile_x in tiles.clone() {
                write_tile(call, &p, (&m, &bias), [run / at(p.runs_x), tile_x, channel], &mut values);
            }
            if call.variant.flag("MOMENTS") {
                let target = (at(p.moments_offset) + run) * at(p.channels4) + channel;
                write_moments(call, 4, target, &values);
            }
        }
    }
}

type Vec4s = [[f32; 4]];

/// Writes the pixels of one tile that are inside, and appends them to `values` before they are
/// rounded to storage.
fn write_tile(
    call: &mut Call<'_>,
    p: &OutParams,
    (m, bias): (&Vec4s, &Vec4s),
    [tile_y, tile_x, channel]: [usize; 3],
    values: &mut Vec<[f32; 4]>,
) {
    let storage = call.storage(if call.variant.file == "winograd_out_pairs" { "Pair" } else { "Stored" });
    let tile = tile_y * at(p.tiles_x) + tile_x;
    let point =
        |index: usize, lane: usize| f64::from(m[(index * at(p.tiles) + tile) * at(p.channels4) + channel][lane]);
    let lanes = [0, 1, 2, 3]
        .map(|lane| times_both(&A_T, &std::array::from_fn(|y| std::array::from_fn(|x| point(y * 6 + x, lane)))));
    for pixel in 0..16 {
        let (y, x) = (pixel / 4, pixel % 4);
        let (image_y, image_x) = (at(p.y0) + tile_y * 4 + y, (at(p.tile_x0) + tile_x) * 4 + x);
        if image_y >= at(p.height) || image_x >= at(p.width) {
            continue;
        }
        let row = at(i64::try_from(image_y).unwrap_or(i64::MAX) - i64::from(p.y_row0));
        let index = (row * at(p.width) + image_x) * at(p.channels4) + channel;
        let old = if call.variant.flag("ACCUMULATE") { call.get(3, storage, index) } else { [0.0; 4] };
        let activation = if call.variant.flag("RELU") { RELU } else { 0 };
        let value = each(|lane| {
            let sum = lanes[lane][y][x] * f64::from(p.scale)
                + f64::from(bias[channel % at(p.bias4)][lane])
                + f64::from(old[lane]);
            activate(sum, activation)
        });
        call.set(3, storage, index, value);
        values.push(value);
    }
}
