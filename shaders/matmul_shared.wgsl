// matmul_shared: the product of `matmul`, through workgroup memory: for GPUs, where loads are shared by a workgroup or lost.
//
// One workgroup: 64 rows by 64 columns of c, in steps of 16 along k. One invocation: ROWS4 times four rows by COLUMNS4 times four columns.
// 64 invocations load a, four rows of four columns each, and 64 load b, neighbouring columns together: the same ones where there are no more.

//#parts storage output product epilogue

const WORKGROUP: u32 = 64u;       // invocations per workgroup: TILE4 / ROWS4 * TILE4 / COLUMNS4
const ROWS4: u32 = 2u;            // rows of one invocation, in fours
const COLUMNS4: u32 = 2u;         // columns of one invocation, in vec4
const HAS_BIAS: bool = true;      // add bias[n]
const ACCUMULATE: bool = false;   // add what c holds
const ROW_FACTORS: bool = false;  // c = row_factors[m] * c + product (rows with factor 0 are not read)
const TRANSPOSED: bool = false;   // write c[n][m / 4] instead of c[m][n / 4]
alias Stored = vec4<f32>;         // elements of a and b
alias Output = vec4<f32>;         // elements of c

const TILE: u32 = 64u;            // rows and columns of one workgroup
const TILE4: u32 = 16u;           // rows of one workgroup in fours, and columns in vec4
const LOADERS: u32 = 64u;         // invocations that load
const ROWS_SIDE: u32 = TILE4 / ROWS4;       // invocations along the rows
const COLUMNS_SIDE: u32 = TILE4 / COLUMNS4; // invocations along the columns
const DEPTH4: u32 = 4u;           // step along k, in vec4
const DEPTH: u32 = 16u;           // step along k

var<workgroup> a_tile: array<vec4<f32>, DEPTH * TILE4>;       // [k, row / 4]
var<workgroup> b_tile: array<vec4<f32>, DEPTH * TILE4>;       // [k, column / 4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup_id: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let batch = workgroup_id.z;
    let row0 = workgroup_id.x * TILE;
    let column0 = workgroup_id.y * TILE4;
    let mine_x = local_index % COLUMNS_SIDE;
    let mine_y = local_index / COLUMNS_SIDE;
    // Who loads: of a, one vec4 column of four rows; of b, one vec4 column of four rows that are four apart.
    let loads_a = local_index < LOADERS;
    let a_column = local_index % DEPTH4;
    let a_rows = local_index / DEPTH4;
    let b_index = select(local_index - LOADERS, local_index, WORKGROUP == LOADERS);
    let loads_b = b_index < LOADERS;
    let b_column = b_index % TILE4;
    let a_start = params.a_offset + batch * params.a_batch;
    let b_start = params.b_offset + batch * params.b_batch + workgroup_id.y * params.b_block;
    // Rows and columns beyond the matrices read the last one again; what is computed from them is not stored.
    let last_column = min(TILE4, params.n4 - column0) - 1u;

    var acc: array<vec4<f32>, ROWS4 * 4u * COLUMNS4>;
    for (var k0 = 0u; k0 < params.k4; k0 += DEPTH4) {
        if (loads_a) {
            let k = k0 + a_column;
            var block: array<vec4<f32>, 4>;
            for (var i = 0u; i < 4u; i++) { //#unroll
                block[i] = vec4<f32>(0.0);
                if (k < params.k4) {
                    let row = min(row0 + a_rows * 4u + i, params.m - 1u);
                    block[i] = load_stored(a[a_start + row * params.a_row + k * params.a_column]);
                }
            }
            a_tile[(a_column * 4u) * TILE4 + a_rows] = vec4<f32>(block[0].x, block[1].x, block[2].x, block[3].x);
            a_tile[(a_column * 4u + 1u) * TILE4 + a_rows] = vec4<f32>(block[0].y, block[1].y, block[2].y, block[3].y);
            a_tile[(a_column * 4u + 2u) * TILE4 + a_rows] = vec4<f32>(block[0].z, block[1].z, block[2].z, block[3].z);
            a_tile[(a_column * 4u + 3u) * TILE4 + a_rows] = vec4<f32>(block[0].w, block[1].w, block[2].w, block[3].w);
        }
        if (loads_b) {
            for (var i = 0u; i < 4u; i++) { //#unroll
                let k = i * 4u + b_index / TILE4;
                var value = vec4<f32>(0.0);
                if (k0 * 4u + k < params.k4 * 4u) {
                    value = load_stored(b[b_start + (k0 * 4u + k) * params.b_row + min(b_column, last_column)]);
                }
                b_tile[k * TILE4 + b_column] = value;
            }
        }
        workgroupBarrier();
        for (var k = 0u; k < DEPTH; k++) { //#unroll
            for (var r = 0u; r < ROWS4; r++) { //#unroll
                let rows = a_tile[k * TILE4 + r * ROWS_SIDE + mine_y];
                for (var j = 0u; j < COLUMNS4; j++) { //#unroll
                    let columns = b_tile[k * TILE4 + j * COLUMNS_SIDE + mine_x];
                    acc[(r * 4u) * COLUMNS4 + j] = fma(vec4<f32>(rows.x), columns, acc[(r * 4u) * COLUMNS4 + j]);
                    acc[(r * 4u + 1u) * COLUMNS4 + j] = fma(vec4<f32>(rows.y), columns, acc[(r * 4u + 1u) * COLUMNS4 + j]);
                    acc[(r * 4u + 2u) * COLUMNS4 + j] = fma(vec4<f32>(rows.z), columns, acc[(r * 4u + 2u) * COLUMNS4 + j]);
                    acc[(r * 4u + 3u) * COLUMNS4 + j] = fma(vec4<f32>(rows.w), columns, acc[(r * 4u + 3u) * COLUMNS4 + j]);
                }
            }
        }
        workgroupBarrier();
    }

    for (var r = 0u; r < ROWS4; r++) { //#unroll
        let row = row0 + (r * ROWS_SIDE + mine_y) * 4u;
        for (var j = 0u; j < COLUMNS4; j++) { //#unroll
            let column = column0 + j * COLUMNS_SIDE + mine_x;
            if (column < params.n4) {
                if (TRANSPOSED) {
                    store_transposed(
                        acc[(r * 4u) * COLUMNS4 + j],
                        acc[(r * 4u + 1u) * COLUMNS4 + j],
                        acc[(r * 4u + 2u) * COLUMNS4 + j],
                        acc[(r * 4u + 3u) * COLUMNS4 + j],
                        row,
                        column,
                        batch,
                    );
                } else {
                    for (var i = 0u; i < 4u; i++) { //#unroll
                        store_row(acc[(r * 4u + i) * COLUMNS4 + j], row + i, column, batch);
                    }
                }
            }
        }
    }
}
