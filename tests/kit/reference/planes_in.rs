//! Twin: y[h][w][t][c] = x[t][k][h / P][w / P] * factor[k] + offset[k], where k is the channel that
//! holds pixel (h mod P, w mod P) of c; then 3 tanh(. / 3).

use wgvae::kernels::edges::PlanesInParams;

use super::{Call, at, each};

pub(super) fn run(call: &mut Call<'_>) {
    let p: PlanesInParams = call.params();
    let storage = call.storage("Stored");
    call.assert_covers(p.pixels * p.frames * p.channels4);
    let frames = at(p.frames);
    let (patch, squash) = (at(call.variant.number("PATCH")), call.variant.flag("SQUASH"));
    let held = if call.variant.flag("UNPACKED") { 1 } else { patch };
    let (x, factor_offset) = (call.floats(1), call.floats(2));
    let planes = at(p.channels) * patch * patch;
    assert_eq!(at(p.x_width) * held, at(p.width), "{p:?}");
    for (pixel, frame) in (0..at(p.pixels)).flat_map(|pixel| (0..frames).map(move |frame| (pixel, frame))) {
        let (row, column) = (pixel / at(p.width), pixel % at(p.width));
        for channel4 in 0..at(p.channels4) {
            let value = each(|lane| {
                let channel = channel4 * 4 + lane;
                if channel >= at(p.channels) {
                    return 0.0;
                }
                let place = row % patch * patch + column % patch;
                let k = channel * at(p.channel_step) + place * at(p.place_step);
                let plane = if held == 1 { frame * at(p.channels) + channel } else { frame * planes + k };
                let value = f64::from(x[plane * at(p.plane) + row / held * at(p.x_width) + column / held]);
                let scaled = value * f64::from(factor_offset[k]) + f64::from(factor_offset[planes + k]);
                if squash { 3.0 * (scaled / 3.0).tanh() } else { scaled }
            });
            call.set(3, storage, (pixel * frames + frame) * at(p.channels4) + channel4, value);
        }
    }
}
