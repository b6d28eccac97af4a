//! y[h][w][c] = x[c][h][w] * factor[c] + offset[c].

use wgvae::kernels::edges::LatentsInParams;

use super::{Call, at, round};

pub(super) fn run(call: &mut Call<'_>) {
    let p: LatentsInParams = call.params();
    let storage = call.storage("Stored");
    call.assert_covers(p.pixels * p.channels4);
    let (x, factor_offset) = (call.floats(1), call.floats(2));
    for pixel in 0..at(p.pixels) {
        for channel4 in 0..at(p.channels4) {
            let value = [0, 1, 2, 3].map(|lane| {
                let channel = channel4 * 4 + lane;
                if channel >= at(p.channels) {
                    return 0.0;
                }
                let value = f64::from(x[channel * at(p.plane) + at(p.x_offset) + pixel]);
                round(value * f64::from(factor_offset[channel]) + f64::from(factor_offset[at(p.channels) + channel]))
            });
            call.set(3, storage, at(p.y_offset) + pixel * at(p.channels4) + channel4, value);
        }
    }
}
