//! Problems of products on matrix units, as Winograd convolutions launch them.

use wgvae::Storage;
use wgvae::device::MatrixUnits;
use wgvae::kernels::matmul_matrix::{MatrixMatmul, MatrixParams};

use super::{Problem, random, room, tolerance};

/// Squares of rows and of columns, matrices along k, and batch.
const SHAPES: [(u32, u32, u32, u32); 4] = [(1, 1, 1, 1), (2, 1, 3, 4), (1, 3, 8, 36), (3, 2, 2, 1)];

pub(super) fn problems() -> Vec<Problem> {
    let mut problems = Vec::new();
    for units in
        [MatrixUnits { side: 8, lanes: 8, one_size: true }, MatrixUnits { side: 16, lanes: 32, one_size: true }, MatrixUnits { side: 16, lanes: 64, one_size: false }]
    {
        for shape in SHAPES {
            for frames in [1, 3] {
                problems.push(problem(units, shape, frames));
            }
        }
    }
    problems
}

/// Makes a problem of `frames` frames, which lie within each row of a and of c.
fn problem(units: MatrixUnits, (rows, columns, depth, batch): (u32, u32, u32, u32), frames: u32) -> Problem {
    let square = units.side * 4;
    let (m, n, k) = (rows * square, columns * square, depth * units.side);
    let (k4, n4) = (k / 4, n / 4);
    let (a_row, c_row) = (frames * k4, frames * n4);
    let params = MatrixParams {
        k4,
        a_offset: 0,
        a_row,
        batch,
        a_batch: m * a_row,
        a_frame: k4,
        b_batch: n * k4,
        c_offset: 0,
        c_row,
        c_batch: m * c_row,
        c_frame: n4,
    };
    Problem {
        name: format!(
            "matmul_matrix m{m} n{n} k{k} batch{batch} frames{frames} {0}x{0} lanes{1}",
            units.side, units.lanes
        ),
        launch: MatrixMatmul { units, m, n, frames, params }.launch(),
        bindings: vec![
            random(1, Storage::F16, batch * m * a_row, 1.0),
            random(2, Storage::F16, batch * n * k4, 1.0),
            room(Storage::F16, batch * m * c_row),
        ],
        tolerance: tolerance(Storage::F16),
    }
}
