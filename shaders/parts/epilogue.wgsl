// epilogue: finishes and stores elements of c, for the matrix products. Uses their `Params`,
// bindings and flags.

fn finish(value: vec4<f32>, row: u32, column: u32, index: u32) -> vec4<f32> {
    if (row >= params.m) {
        return vec4<f32>(0.0);
    }
    var result = value * params.scale;
    if (HAS_BIAS) {
        result += bias[column];
    }
    if (ACCUMULATE) {
        result += load_output(c[index]);
    }
    if (ROW_FACTORS) {
        let factor = row_factors[row];
        if (factor != 0.0) {
            result = fma(vec4<f32>(factor), load_output(c[index]), result);
        }
    }
    return result;
}

// Stores four columns of one row of c, whose batch entry begins at `start`.
fn store_row(value: vec4<f32>, row: u32, column: u32, start: u32) {
    if (row < params.m_stored) {
        let index = start + row * params.c_row + column;
        c[index] = store_output(finish(value, row, column, index));
    }
}

// Stores four columns of four rows of c, transposed: c[n][m / 4].
fn store_transposed(v0: vec4<f32>, v1: vec4<f32>, v2: vec4<f32>, v3: vec4<f32>, row: u32, column: u32, start: u32) {
    if (row < params.m_stored) {
        let index = start + column * 4u * params.c_row + row / 4u;
        let block = transpose(mat4x4<f32>(
            finish(v0, row, column, index),
            finish(v1, row + 1u, column, index),
            finish(v2, row + 2u, column, index),
            finish(v3, row + 3u, column, index),
        ));
        c[index] = store_output(block[0]);
        c[index + params.c_row] = store_output(block[1]);
        c[index + 2u * params.c_row] = store_output(block[2]);
        c[index + 3u * params.c_row] = store_output(block[3]);
    }
}

// Returns the first element of c of batch entry `entry` of frame `frame`.
fn c_start(entry: u32, frame: u32) -> u32 {
    return params.c_offset + entry * params.c_batch + frame * params.c_frame;
}
