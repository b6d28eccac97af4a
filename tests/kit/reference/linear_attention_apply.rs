//! Twin: y = (relu(q) . table of k v^T) / (relu(q) . table of k + eps), for each pixel and head.

use wgvae::Storage;
use wgvae::kernels::linear_attention::ApplyParams;

use super::{Call, RELU, activate, at, each};

pub(super) fn run(call: &mut Call<'_>) {
    let p: ApplyParams = call.params();
    let storage = call.storage("Stored");
    let (head4, pixels) = (at(call.variant.number("HEAD4")), call.variant.number("PIXELS"));
    call.assert_covers(p.pixels.div_ceil(pixels) * p.heads * call.variant.number("HEAD4"));
    let (x, table) = (call.vec4s(1, storage), call.vec4s(2, Storage::F32));
    for (pixel, head) in (0..at(p.pixels)).flat_map(|pixel| (0..at(p.heads)).map(move |head| (pixel, head))) {
        let query = |channel: usize| {
            let first = at(p.x_offset) + (pixel * at(p.heads) + head) * 3 * head4;
            activate(f64::from(x[first + channel / 4][channel % 4]), RELU)
        };
        let table = |row: usize, column: usize| {
            f64::from(table[(head * (head4 * 4 + 1) + row) * head4 + column / 4][column % 4])
        };
        let divisor: f64 = (0..head4 * 4).map(|k| query(k) * table(head4 * 4, k)).sum::<f64>() + f64::from(p.eps);
        for column in 0..head4 {
            let value =
                |lane: usize| (0..head4 * 4).map(|k| query(k) * table(k, column * 4 + lane)).sum::<f64>() / divisor;
            let target = at(p.y_offset) + pixel * at(p.y_channels4) + head * head4 + column;
            call.set(3, storage, target, each(value));
        }
    }
}
