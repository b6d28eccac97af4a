//! Twin: c = epilogue(a b), for each entry of the batch. It serves `matmul`, `matmul_quad`,
//! `matmul_shared` and `matmul_matrix`, which differ only in their tiles.

use wgvae::kernels::WORKGROUP;
use wgvae::kernels::choice::SHARED_TILE;
use wgvae::kernels::matmul::{MatmulParams, QUAD_WORKGROUP};

use super::{Call, at, round};

pub(super) fn run(call: &mut Call<'_>) {
    let p: MatmulParams = call.params();
    let (input, output) = (call.storage("Stored"), call.storage("Output"));
    // Rows and vec4 columns of one workgroup, and vec4 columns of a block of b.
    let (group_m, tile_n, block_n) = match call.variant.file {
        "matmul_shared" => (SHARED_TILE, call.variant.number("WIDTH4"), call.variant.number("WIDTH4")),
        "matmul_matrix" => (SHARED_TILE, SHARED_TILE / 4, SHARED_TILE / 4),
        "matmul_quad" => (QUAD_WORKGROUP * call.variant.number("TILE_M"), call.variant.number("TILE_N"), 4),
        _ => (WORKGROUP * call.variant.number("TILE_M"), call.variant.number("TILE_N"), call.variant.number("TILE_N")),
    };
    // Frames among the rows.
    let frames = at(call.variant.number("FRAMES").max(1));
    let [groups_m, groups_n, entries] = call.workgroups;
    assert!(entries.is_multiple_of(p.batch), "{entries} batch entries: {p:?}");
    assert!(groups_m * group_m >= p.m_stored, "{groups_m} workgroups of {group_m} rows: {p:?}");
    assert!(groups_n * tile_n >= p.n4, "{groups_n} workgroups of {tile_n} columns: {p:?}");
    assert!(p.m <= p.m_stored && p.m > 0);
    let transposed = call.variant.flag("TRANSPOSED");
    assert!(!transposed || p.m_stored.is_multiple_of(4), "a transpose writes four rows at once: {p:?}");
    let (a, b) = (call.vec4s(1, input), call.vec4s(2, input));
    let after = Epilogue::of(call);
    for z in 0..at(entries) {
        let (entry, frame) = (z % at(p.batch), z / at(p.batch));
        for row in 0..at(p.m_stored) {
            for column in 0..at(p.n4) {
                let sum = if row < at(p.m) {
                    product(&p, &a, &b, (at(block_n), frames), [entry, frame, row, column])
                } else {
                    [0.0; 4]
                };
                let c_start = at(p.c_offset) + entry * at(p.c_batch) + frame * at(p.c_frame);
                if transposed {
                    let value = after.apply(&p, row, column, sum, [0.0; 4]);
                    for (lane, value) in value.into_iter().enumerate() {
                        let index = c_start + (column * 4 + lane) * at(p.c_row) + row / 4;
                        let mut four = call.get(5, output, index);
                        four[row % 4] = value;
                        call.set(5, output, index, four);
                    }
                } else {
                    let index = c_start + row * at(p.c_row) + column;
                    let value = after.apply(&p, row, column, sum, call.get(5, output, index));
                    call.set(5, output, index, value);
                }
            }
        }
    }
}

/// Returns four sums over k.
fn product(
    p: &MatmulParams,
    a: &[[f32; 4]],
    b: &[[f32; 4]],
    (block_n, frames): (usize, usize),
    [entry, frame, row, column]: [usize; 4],
) -> [f64; 4] {
    let (row, frame) = (row / frames, row % frames + frame);
    let a_start = at(p.a_offset) + entry * at(p.a_batch) + frame * at(p.a_frame) + row * at(p.a_row);
    let b_start = at(p.b_offset) + entry * at(p.b_batch) + column / block_n * at(p.b_block) + column % block_n;
    let (a_column, b_row) = (at(p.a_column), at(p.b_row));
    let mut sum = [0.0_f64; 4];
    for k4 in 0..at(p.k4) {
        for (lane, factor) in a[a_start + k4 * a_column].into_iter().enumerate() {
            let weights = b[b_start + (k4 * 4 + lane) * b_row];
            for (sum, weight) in sum.iter_mut().zip(weights) {
                *sum += f64::from(factor) * f64::from(weight);
            }
        }
    }
    sum
}

/// Summands of a product besides the sum over k.
struct Epilogue {
    bias: Option<Vec<[f32; 4]>>,
    accumulates: bool,
    row_factors: Option<Vec<f32>>,
}

impl Epilogue {
    fn of(call: &Call<'_>) -> Self {
        Self {
            bias: call.variant.flag("HAS_BIAS").then(|| call.vec4s(3, wgvae::Storage::F32)),
            accumulates: call.variant.flag("ACCUMULATE"),
            row_factors: call.variant.flag("ROW_FACTORS").then(|| call.floats(4)),
        }
    }

    fn apply(&self, p: &MatmulParams, row: usize, column: usize, sum: [f64; 4], old: [f32; 4]) -> [f32; 4] {
        if row >= at(p.m) {
            return [0.0; 4];
        }
        let mut value = sum.map(|sum| sum * f64::from(p.scale));
        let add = |value: &mut [f64; 4], factor: f64, summand: [f32; 4]| {
            value.iter_mut().zip(summand).for_each(|(value, summand)| *value += factor * f64::from(summand));
        };
        if let Some(bias) = &self.bias {
            add(&mut value, 1.0, bias[column]);
        }
        if self.accumulates {
            add(&mut value, 1.0, old);
        }
        // With factor 0, nothing has been written there yet.
        if let Some(factors) = &self.row_factors
            && factors[row] != 0.0
        {
            add(&mut value, f64::from(factors[row]), old);
        }
        value.map(round)
    }
}
