//! Twin: u = G w G^T.

use wgvae::kernels::winograd::WeightsParams;

use super::{B, Call, at, each, times_both};

const G: [[f64; 3]; 6] = [
    [1.0, 0.0, 0.0],
    [-2.0 / 3.0, -B / 3.0, -1.0 / 3.0],
    [-2.0 / 3.0, B / 3.0, -1.0 / 3.0],
    [1.0 / 6.0, B / 6.0, 1.0 / 3.0],
    [1.0 / 6.0, -B / 6.0, 1.0 / 3.0],
    [0.0, 0.0, 1.0],
];

pub(super) fn run(call: &mut Call<'_>) {
    let p: WeightsParams = call.params();
    let (w, transformed) = (call.vec4s(1, call.storage("Stored")), call.storage("Transformed"));
    let columns = at(p.blocks * p.tile_n);
    call.assert_covers(p.blocks * p.tile_n * p.c_in);
    assert!(p.k0 + p.c_in <= p.k, "{p:?}");
    for input in 0..at(p.c_in) {
        for column in 0..columns {
            let inside = at(p.column0) + column < at(p.c_out4);
            let point = |lane: usize| {
                let tap = |y: usize, x: usize| {
                    let index = ((y * 3 + x) * at(p.c_in) + input) * at(p.c_out4) + at(p.column0) + column;
                    if inside { f64::from(w[at(p.w_offset) + index][lane]) } else { 0.0 }
                };
                times_both(&G, &std::array::from_fn(|y| std::array::from_fn(|x| tap(y, x))))
            };
            let lanes = [0, 1, 2, 3].map(point);
            let block = column / at(p.tile_n);
            let target = (block * at(p.k) + at(p.k0) + input) * at(p.tile_n) + column % at(p.tile_n);
            for index in 0..36 {
                let value = each(|lane| lanes[lane][index / 6][index % 6]);
                call.set(2, transformed, index * columns * at(p.k) + target, value);
            }
        }
    }
}
