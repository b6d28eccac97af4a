//! Twin: c = a b^T, for each entry of the batch. Rows that were never written are multiplied too;
//! their results are never read.

use wgvae::Storage;
use wgvae::kernels::choice::MATRICES;
use wgvae::kernels::matmul_matrix::MatrixParams;

use super::{Call, at, round};

pub(super) fn run(call: &mut Call<'_>) {
    let p: MatrixParams = call.params();
    let side = call.variant.number("SIDE");
    assert!(p.k4.is_multiple_of(side / 4), "{p:?}");
    let [rows, columns, entries] = call.workgroups;
    assert!(entries.is_multiple_of(p.batch), "{entries} batch entries: {p:?}");
    let (a, b) = (call.vec4s(1, Storage::F16), call.vec4s(2, Storage::F16));
    for z in 0..at(entries) {
        let (entry, frame) = (z % at(p.batch), z / at(p.batch));
        for row in 0..at(rows * side * MATRICES) {
            for column4 in 0..at(columns * side * MATRICES / 4) {
                let a_start = at(p.a_offset) + entry * at(p.a_batch) + frame * at(p.a_frame) + row * at(p.a_row);
                let sums = [0, 1, 2, 3].map(|lane| {
                    let b_start = entry * at(p.b_batch) + (column4 * 4 + lane) * at(p.k4);
                    let pairs = a[a_start..][..at(p.k4)].iter().zip(&b[b_start..][..at(p.k4)]);
                    let sum: f64 = pairs.map(|(a, b)| dot(*a, *b)).sum();
                    // One NaN for all, whose last byte differs from memory that was never written.
                    if sum.is_nan() { f32::NAN } else { round(sum) }
                });
                let c_start = at(p.c_offset) + entry * at(p.c_batch) + frame * at(p.c_frame) + row * at(p.c_row);
                call.set(3, Storage::F16, c_start + column4, sums);
            }
        }
    }
}

fn dot(a: [f32; 4], b: [f32; 4]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(b)).sum()
}
