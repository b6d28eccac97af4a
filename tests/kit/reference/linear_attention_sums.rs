//! Twin: sums over runs of pixels, for each head: relu(k) v^T, and relu(k).

use wgvae::Storage;
use wgvae::kernels::linear_attention::SumsParams;

use super::{Call, RELU, activate, at, each};

pub(super) fn run(call: &mut Call<'_>) {
    let p: SumsParams = call.params();
    let x = call.vec4s(1, call.storage("Stored"));
    let head4 = at(call.variant.number("HEAD4"));
    let heads = at(p.channels4) / (3 * head4);
    let runs = p.pixels.div_ceil(p.run);
    assert_eq!(call.workgroups.map(at), [heads, at(runs), 1], "{p:?}");
    assert!(head4 * head4 <= 64, "heads of {} channels", head4 * 4);
    for (run, head) in (0..at(runs)).flat_map(|run| (0..heads).map(move |head| (run, head))) {
        let pixels: Vec<usize> = (run * at(p.run)..((run + 1) * at(p.run)).min(at(p.pixels))).collect();
        let of = |pixel: usize, part: usize, channel: usize| {
            f64::from(x[pixel * at(p.channels4) + (head * 3 + part) * head4 + channel / 4][channel % 4])
        };
        let key = |pixel: usize, channel: usize| activate(of(pixel, 1, channel), RELU);
        let first = ((at(p.sums_offset) + run) * heads + head) * (head4 * 4 + 1) * head4;
        for (row, column) in (0..head4 * 4).flat_map(|row| (0..head4).map(move |column| (row, column))) {
            let product =
                |lane: usize| pixels.iter().map(|&pixel| key(pixel, row) * of(pixel, 2, column * 4 + lane)).sum();
            call.set(2, Storage::F32, first + row * head4 + column, each(product));
        }
        for column in 0..head4 {
            let sum = |lane: usize| pixels.iter().map(|&pixel| key(pixel, column * 4 + lane)).sum();
            call.set(2, Storage::F32, first + head4 * 4 * head4 + column, each(sum));
        }
    }
}
