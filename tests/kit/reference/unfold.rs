//! Twin: y[p][t][ky][kx][c] = x[S oy + ky - before][S ox + kx - before][t][c], zero outside of x.

use wgvae::kernels::unfold::UnfoldParams;

use super::{Call, at};

pub(super) fn run(call: &mut Call<'_>) {
    let p: UnfoldParams = call.params();
    let storage = call.storage("Stored");
    call.assert_covers(p.pixels * p.frames * 9 * p.channels4);
    assert!(p.frame0 + p.frames <= p.frames_y, "{p:?}");
    let frames = at(p.frames);
    let (stride, before) = (at(call.variant.number("STRIDE")), at(call.variant.number("BEFORE")));
    let x = call.vec4s(1, storage);
    for (pixel, frame) in (0..at(p.pixels)).flat_map(|pixel| (0..frames).map(move |frame| (pixel, frame))) {
        let (row, column) = ((at(p.first) + pixel) / at(p.width), (at(p.first) + pixel) % at(p.width));
        for tap in 0..9 {
            let source_row = (row * stride + tap / 3).checked_sub(before).filter(|row| *row < at(p.x_height));
            let source_column =
                (column * stride + tap % 3).checked_sub(before).filter(|column| *column < at(p.x_width));
            for channel in 0..at(p.channels4) {
                let value = match (source_row, source_column) {
                    (Some(row), Some(column)) => {
                        let source = ((row - at(p.x_row0)) * at(p.x_width) + column) * frames + frame;
                        x[source * at(p.channels4) + channel]
                    }
                    _ => [0.0; 4],
                };
                let target = (pixel * at(p.frames_y) + at(p.frame0) + frame) * 9 + tap;
                call.set(2, storage, target * at(p.channels4) + channel, value);
            }
        }
    }
}
