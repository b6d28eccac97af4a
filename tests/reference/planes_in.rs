//! y[h][w][t][c] = x[t][k][h / P][w / P] * factor[k] + offset[k], k the channel that holds pixel (h mod P, w mod P) of c; then 3 tanh(. / 3).

use wgvae::kernels::edges::PlanesInParams;

use super::{Call, at, each};

pub(super) fn run(call: &mut Call<'_>) {
    let p: PlanesInParams = call.params();
    let storage = call.storage("Stored");
    call.assert_covers(p.pixels * p.frames * p.channels4);
    let frames = at(p.frames);
    let (patch, squash) = (at(call.variant.number("PATCH")), call.variant.flag("SQUASH"));
    let (x, factor_offset) = (call.floats(1), call.floats(2));
    let planes = at(p.channels) * patch * patch;
    assert_eq!(p.x_width * call.variant.number("PATCH"), p.width, "{p:?}");
    for (pixel, frame) in (0..at(p.pixels)).flat_map(|pixel| (0..frames).map(move |frame| (pixel, frame))) {
        let (row, column) = (pixel / at(p.width), pixel % at(p.width));
        for channel4 in 0..at(p.channels4) {
            let value = each(|lane| {
                let channel = channel4 * 4 + lane;
                if channel >= at(p.channels) {
                    return 0.0;
                }
                let k = (channel * patch + row % patch) * patch + column % patch;
                let value =
                    f64::from(x[(frame * planes + k) * at(p.plane) + row / patch * at(p.x_width) + column / patch]);
                let scaled = value * f64::from(factor_offset[k]) + f64::from(factor_offset[planes + k]);
                if squash { 3.0 * (scaled / 3.0).tanh() } else { scaled }
            });
            call.set(3, storage, (pixel * frames + frame) * at(p.channels4) + channel4, value);
        }
    }
}
