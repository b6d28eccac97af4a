//! Twin: v = B^T d B, of the normalised, activated, doubled, zero-padded input.

use wgvae::Storage;
use wgvae::kernels::WORKGROUP;
use wgvae::kernels::winograd::{InParams, PAIRS_IN};

use super::{A, B, Call, activate, at, each, place_of, seen_at, times_both};

/// Tiles of a workgroup, as in the shader.
const WORKGROUP_TILES: u32 = 16;

const B_T: [[f64; 6]; 6] = [
    [1.0, 0.0, -2.5, 0.0, 1.0, 0.0],
    [0.0, -B, -2.0, A, 1.0, 0.0],
    [0.0, B, -2.0, -A, 1.0, 0.0],
    [0.0, -A, -0.5, B, 1.0, 0.0],
    [0.0, A, -0.5, -B, 1.0, 0.0],
    [0.0, 1.0, 0.0, -2.5, 0.0, 1.0],
];

pub(super) fn run(call: &mut Call<'_>) {
    let p: InParams = call.params();
    let pairs = call.variant.file == "winograd_in_pairs";
    let [x, y, _] = call.workgroups;
    let [tile_groups, channel_groups] = if pairs { [y, x] } else { [x, y] };
    let (tiles, channels4) =
        if pairs { (WORKGROUP / PAIRS_IN, PAIRS_IN / 2) } else { (WORKGROUP_TILES, WORKGROUP / WORKGROUP_TILES) };
    assert!(tile_groups * tiles >= p.tiles, "{tile_groups} workgroups along tiles: {p:?}");
    assert!(channel_groups * channels4 >= p.channels4, "{channel_groups} workgroups along channels: {p:?}");
    assert_eq!(p.channels4 % p.frame4, 0, "{p:?}");
    assert!(p.v_channel0 + p.channels4 <= p.v_channels4, "{p:?}");
    let x = call.vec4s(1, call.storage(if pairs { "Pair" } else { "Stored" }));
    let (normalize, activation) = (call.variant.flag("NORMALIZE"), call.variant.number("ACTIVATION"));
    let (shift, shuffle) = (call.variant.number("SHIFT"), call.variant.flag("SHUFFLE"));
    let beyond = call.variant.number("BEYOND");
    let transformed = call.storage("Transformed");
    let factor = if call.variant.flag("HALVES") { 1.0 / 32.0 } else { 1.0 };
    let norm = if normalize { call.vec4s(2, Storage::F32) } else { Vec::new() };
    let pixel = |py: i64, px: i64, channel: usize, lane: usize| {
        let [py, px] = [seen_at(py, p.height, beyond), seen_at(px, p.width, beyond)];
        let (Some(py), Some(px)) = (py, px) else { return 0.0 };
        let row = place_of(py >> shift, p.x_row0, p.height >> shift, beyond);
        let source = row * at(p.x_width) + at(px >> shift);
        // The part selects one of the four pixels in the channels of a pixel's frame.
        let (parts, part) = if shuffle { (4, at(py % 2) * 2 + at(px % 2)) } else { (1, 0) };
        let (frames, frame) = (at(p.channels4 / p.frame4), channel / at(p.frame4));
        let place = ((source * frames + frame) * parts + part) * at(p.frame4) + channel % at(p.frame4);
        let mut value = f64::from(x[place][lane]);
        if normalize {
            value = value * f64::from(norm[channel * 2][lane]) + f64::from(norm[channel * 2 + 1][lane]);
        }
        activate(value, activation)
    };
    for tile in 0..at(p.tiles) {
        // A band's last tiles may reach beyond the rows that x stores; their results there are
        // never used.
        let image_y = i64::from(p.y0) + (tile / at(p.tiles_x) * 4) as i64 - 1;
        let image_x = (at(p.tile_x0) + tile % at(p.tiles_x)) as i64 * 4 - 1;
        for channel in 0..at(p.channels4) {
            let lanes = [0, 1, 2, 3].map(|lane| {
                let d = std::array::from_fn(|y| {
                    std::array::from_fn(|x| pixel(image_y + y as i64, image_x + x as i64, channel, lane))
                });
                times_both(&B_T, &d)
            });
            for index in 0..36 {
                let (v_channels4, channel) = (at(p.v_channels4), at(p.v_channel0) + channel);
                let target = if pairs {
                    (index * at(p.tiles) + tile) * v_channels4 + channel
                } else {
                    (index * v_channels4 + channel) * at(p.tiles) + tile
                };
                call.set(3, transformed, target, each(|lane| lanes[lane][index / 6][index % 6] * factor));
            }
        }
    }
}
