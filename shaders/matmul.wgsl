// matmul: c[i][m][n] = epilogue( sum over k of a[i][m][k] * b[i][k][n] ), for each batch entry i.
//
// Serves 1x1 convolutions and linear layers (batch 1), the 36 products of a Winograd convolution
// (batch 36), and both products of attention. Register tile, no workgroup memory: one invocation
// computes TILE_M rows by 4 * TILE_N columns. Neighbouring invocations take neighbouring rows. So a
// whole subgroup loads the same elements of b, and contiguous elements of a.

//#parts storage output product epilogue

const WORKGROUP: u32 = 64u;       // invocations per workgroup, along m
const TILE_M: u32 = 4u;           // rows of c per invocation; a multiple of 4 when TRANSPOSED
const TILE_N: u32 = 4u;           // vec4 columns of c per invocation
const LANES: u32 = 8u;            // neighbouring invocations whose rows alternate; 1 when TRANSPOSED
const K_STEPS: u32 = 1u;          // vec4 columns of a per turn, a divisor of k4: CPU drivers move sums to memory and back once a turn
const HAS_BIAS: bool = true;      // add bias[n]
const ACCUMULATE: bool = false;   // add the old value of c
const ROW_FACTORS: bool = false;  // c = row_factors[m] * c + product (rows with factor 0 are not read)
const TRANSPOSED: bool = false;   // write c[n][m / 4] instead of c[m][n / 4]
alias Stored = vec4<f32>;         // elements of a and b
alias Output = vec4<f32>;         // elements of c

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup_id: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let row0 = (workgroup_id.x * WORKGROUP + local_index / LANES * LANES) * TILE_M + local_index % LANES;
    let column0 = workgroup_id.y * TILE_N;
    let entry = workgroup_id.z % params.batch;
    let frame = workgroup_id.z / params.batch;
    let target_start = c_start(entry, frame);
    let a_start = params.a_offset + entry * params.a_batch + frame * params.a_frame;
    if (row0 >= params.m_stored) {
        return;
    }

    var a_index: array<u32, TILE_M>;
    for (var i = 0u; i < TILE_M; i++) { //#unroll
        a_index[i] = a_start + min(row0 + i * LANES, params.m - 1u) * params.a_row;
    }
    var acc: array<array<vec4<f32>, TILE_M>, TILE_N>;
    let b_start = params.b_offset + entry * params.b_batch + workgroup_id.y * params.b_block;
    // A last block that is only partly there reads its last column again. Its results are not
    // stored.
    let last_column = min(TILE_N, params.n4 - column0) - 1u;

    for (var k = 0u; k < params.k4; k += K_STEPS) {
        var rows: array<array<vec4<f32>, TILE_M>, K_STEPS>;
        for (var s = 0u; s < K_STEPS; s++) { //#unroll
            for (var i = 0u; i < TILE_M; i++) { //#unroll
                rows[s][i] = load_stored(a[a_index[i] + (k + s) * params.a_column]);
            }
        }
        let b_index = b_start + k * 4u * params.b_row;
        for (var j = 0u; j < TILE_N; j++) { //#unroll
            let b_column = b_index + min(j, last_column);
            var weights: array<mat4x4<f32>, K_STEPS>;
            for (var s = 0u; s < K_STEPS; s++) { //#unroll
                weights[s] = transpose(mat4x4<f32>(
                    load_stored(b[b_column + s * 4u * params.b_row]),
                    load_stored(b[b_column + (s * 4u + 1u) * params.b_row]),
                    load_stored(b[b_column + (s * 4u + 2u) * params.b_row]),
                    load_stored(b[b_column + (s * 4u + 3u) * params.b_row]),
                ));
            }
            for (var i = 0u; i < TILE_M; i++) { //#unroll
                for (var s = 0u; s < K_STEPS; s++) { //#unroll
                    acc[j][i] = vec4<f32>(
                        add_products(acc[j][i].x, rows[s][i], weights[s][0]),
                        add_products(acc[j][i].y, rows[s][i], weights[s][1]),
                        add_products(acc[j][i].z, rows[s][i], weights[s][2]),
                        add_products(acc[j][i].w, rows[s][i], weights[s][3]),
                    );
                }
            }
        }
    }

    for (var j = 0u; j < TILE_N; j++) { //#unroll
        let column = column0 + j;
        if (column < params.n4) {
            if (TRANSPOSED) {
                for (var i = 0u; i < TILE_M; i += 4u) { //#unroll
                    store_transposed(acc[j][i], acc[j][i + 1u], acc[j][i + 2u], acc[j][i + 3u], row0 + i, column, target_start);
                }
            } else {
                for (var i = 0u; i < TILE_M; i++) { //#unroll
                    store_row(acc[j][i], row0 + i * LANES, column, target_start);
                }
            }
        }
    }
}
