// matmul_quad: the product of `matmul`, with four neighbouring invocations that load for each
// other. For drivers that emulate a GPU, where loads cost the most.
//
// One invocation: TILE_M rows by 4 * TILE_N columns of c. A block of b is four vec4 columns. Each
// of the four invocations of a quad loads one of them, and they swap. After that, place j of an
// invocation holds column j ^ lane. A quad swaps only when it is whole, so all invocations of a
// workgroup stay to the end.

//#parts storage output product epilogue

const WORKGROUP: u32 = 64u;       // invocations per workgroup, along m; whole quads
const TILE_M: u32 = 4u;           // rows of c per invocation; a multiple of 4 when TRANSPOSED
const TILE_N: u32 = 4u;           // vec4 columns of c per invocation; a multiple of 4
const LANES: u32 = 8u;            // neighbouring invocations whose rows alternate; 1 when TRANSPOSED
const HAS_BIAS: bool = true;      // add bias[n]
const ACCUMULATE: bool = false;   // add the old value of c
const ROW_FACTORS: bool = false;  // c = row_factors[m] * c + product (rows with factor 0 are not read)
const TRANSPOSED: bool = false;   // write c[n][m / 4] instead of c[m][n / 4]
alias Stored = vec4<f32>;         // elements of a and b
alias Output = vec4<f32>;         // elements of c

fn swap_x(own: mat4x4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(quadSwapX(own[0]), quadSwapX(own[1]), quadSwapX(own[2]), quadSwapX(own[3]));
}

fn swap_y(own: mat4x4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(quadSwapY(own[0]), quadSwapY(own[1]), quadSwapY(own[2]), quadSwapY(own[3]));
}

fn swap_diagonal(own: mat4x4<f32>) -> mat4x4<f32> {
    return mat4x4<f32>(quadSwapDiagonal(own[0]), quadSwapDiagonal(own[1]), quadSwapDiagonal(own[2]), quadSwapDiagonal(own[3]));
}

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
    @builtin(subgroup_invocation_id) subgroup_index: u32,
) {
    let row0 = (workgroup_id.x * WORKGROUP + local_index / LANES * LANES) * TILE_M + local_index % LANES;
    let column0 = workgroup_id.y * TILE_N;
    let entry = workgroup_id.z % params.batch;
    let frame = workgroup_id.z / params.batch;
    let target_start = c_start(entry, frame);
    let a_start = params.a_offset + entry * params.a_batch + frame * params.a_frame;
    let lane = subgroup_index % 4u;

    // Rows and columns beyond the matrices read the last one again. Their results are not stored.
    var a_index: array<u32, TILE_M>;
    for (var i = 0u; i < TILE_M; i++) { //#unroll
        a_index[i] = a_start + min(row0 + i * LANES, params.m - 1u) * params.a_row;
    }
    // Column of each block that this invocation loads. If the last block is only partly there, this
    // may be its last column again.
    var b_column: array<u32, TILE_N>;
    for (var j = 0u; j < TILE_N; j += 4u) { //#unroll
        let column = min(column0 + j + lane, params.n4 - 1u);
        b_column[j] = params.b_offset + entry * params.b_batch + column / 4u * params.b_block + column % 4u;
    }

    var acc: array<array<vec4<f32>, TILE_M>, TILE_N>;
    for (var k = 0u; k < params.k4; k++) {
        var rows: array<vec4<f32>, TILE_M>;
        for (var i = 0u; i < TILE_M; i++) { //#unroll
            rows[i] = load_stored(a[a_index[i] + k * params.a_column]);
        }
        for (var j = 0u; j < TILE_N; j += 4u) { //#unroll
            let b_index = b_column[j] + k * 4u * params.b_row;
            let own = transpose(mat4x4<f32>(
                load_stored(b[b_index]),
                load_stored(b[b_index + params.b_row]),
                load_stored(b[b_index + 2u * params.b_row]),
                load_stored(b[b_index + 3u * params.b_row]),
            ));
            let weights = array<mat4x4<f32>, 4>(own, swap_x(own), swap_y(own), swap_diagonal(own));
            for (var q = 0u; q < 4u; q++) { //#unroll
                for (var i = 0u; i < TILE_M; i++) { //#unroll
                    acc[j + q][i] = vec4<f32>(
                        add_products(acc[j + q][i].x, rows[i], weights[q][0]),
                        add_products(acc[j + q][i].y, rows[i], weights[q][1]),
                        add_products(acc[j + q][i].z, rows[i], weights[q][2]),
                        add_products(acc[j + q][i].w, rows[i], weights[q][3]),
                    );
                }
            }
        }
    }

    for (var j = 0u; j < TILE_N; j++) { //#unroll
        let column = column0 + (j ^ lane);
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
