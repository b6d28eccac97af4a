//! y[p][ky][kx][c] = x[S oy + ky - before][S ox + kx - before][c], zero outside of x.

use wgvae::kernels::unfold::UnfoldParams;

use super::{Call, at};

pub(super) fn run(call: &mut Call<'_>) {
    let p: UnfoldParams = call.params();
    let storage = call.storage("Stored");
    call.assert_covers(p.pixels * 9 * p.channels4);
    let (stride, before) = (at(call.variant.number("STRIDE")), at(call.variant.number("BEFORE")));
    let x = call.vec4s(1, storage);
    for pixel in 0..at(p.pixels) {
        let (row, column) = ((at(p.first) + pixel) / at(p.width), (at(p.first) + pixel) % at(p.width));
        for tap in 0..9 {
            let source_row = (row * stride + tap / 3).checked_sub(before).filter(|row| *row < at(p.x_height));
            let source_column =
                (column * stride + tap % 3).checked_sub(before).filter(|column| *column < at(p.x_width));
            for channel in 0..at(p.channels4) {
                let value = match (source_row, source_column) {
                    (Some(row), Some(column)) => {
                        x[((row - at(p.x_row0)) * at(p.x_width) + column) * at(p.channels4) + channel]
                    }
                    _ => [0.0; 4],
                };
                call.set(2, storage, (pixel * 9 + tap) * at(p.channels4) + channel, value);
            }
        }
    }
}
