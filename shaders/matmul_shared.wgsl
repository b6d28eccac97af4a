// matmul_shared: the product of `matmul`, through workgroup memory: for GPUs, where loads are shared by a workgroup or lost.
//
// One workgroup: 64 rows by 64 columns of c, in steps of 16 along k. One invocation: 8 rows by 8 columns.
// The loads of a take neighbouring rows together, those of b neighbouring columns.

//#parts storage output epilogue

const WORKGROUP: u32 = 64u;       // invocations per workgroup: 8 by 8
const HAS_BIAS: bool = true;      // add bias[n]
const ACCUMULATE: bool = false;   // add what c holds
const ROW_FACTORS: bool = false;  // c = row_factors[m] * c + product (rows with factor 0 are not read)
const TRANSPOSED: bool = false;   // write c[n][m / 4] instead of c[m][n / 4]
alias Stored = vec4<f32>;         // elements of a and b
alias Output = vec4<f32>;         // elements of c

const TILE: u32 = 64u;            // rows and columns of one workgroup
const TILE4: u32 = 16u;           // columns of one workgroup, in vec4
const SIDE: u32 = 8u;             // invocations along each side
const DEPTH4: u32 = 4u;           // step along k, in vec4
const DEPTH: u32 = 16u;           // step along k

struct Params {
    m: u32,               // rows of a and c
    m_stored: u32,        // rows of c written; those from m on are zero
    n4: u32,              // columns of b and c, in vec4
    k4: u32,              // columns of a, in vec4; b has 4 * k4 rows
    a_offset: u32,        // first element of a
    a_row: u32,           // elements between two rows of a
    a_column: u32,        // elements between two vec4 columns of a
    a_batch: u32,         // elements between two batch entries of a
    b_offset: u32,        // first element of b
    b_row: u32,           // elements between two rows of b
    b_block: u32,         // elements between two blocks of TILE columns of b
    b_batch: u32,         // elements between two batch entries of b
    c_offset: u32,        // first element of c
    c_row: u32,           // elements between two rows of c (or of its transpose)
    c_batch: u32,         // elements between two batch entries of c
    scale: f32,           // factor of the product, before bias and accumulation
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<Stored>;                // [batch, m, k / 4] or [batch, k / 4, m]
@group(0) @binding(2) var<storage, read> b: array<Stored>;                // [batch, n / TILE, k, TILE / 4] or [batch, k, n / 4]
@group(0) @binding(3) var<storage, read> bias: array<vec4<f32>>;          // [n / 4]
@group(0) @binding(4) var<storage, read> row_factors: array<f32>;         // [m]
@group(0) @binding(5) var<storage, read_write> c: array<Output>;          // [batch, m, n / 4] or [n, m / 4]

var<workgroup> a_tile: array<f32, DEPTH * TILE>;              // [k, row]
var<workgroup> b_tile: array<vec4<f32>, DEPTH * TILE4>;       // [k, column / 4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup_id: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let batch = workgroup_id.z;
    let row0 = workgroup_id.x * TILE;
    let column0 = workgroup_id.y * TILE4;
    let mine_x = local_index % SIDE;
    let mine_y = local_index / SIDE;
    let a_start = params.a_offset + batch * params.a_batch;
    let b_start = params.b_offset + batch * params.b_batch + workgroup_id.y * params.b_block;
    // Rows and columns beyond the matrices read the last one again; what is computed from them is not stored.
    let last_column = min(TILE4, params.n4 - column0) - 1u;

    var acc: array<vec4<f32>, 16>;
    for (var k0 = 0u; k0 < params.k4; k0 += DEPTH4) {
        for (var i = 0u; i < 4u; i++) { //#unroll
            let row = local_index;
            let k = k0 + i;
            var value = vec4<f32>(0.0);
            if (k < params.k4) {
                value = load_stored(a[a_start + min(row0 + row, params.m - 1u) * params.a_row + k * params.a_column]);
            }
            a_tile[(i * 4u) * TILE + row] = value.x;
            a_tile[(i * 4u + 1u) * TILE + row] = value.y;
            a_tile[(i * 4u + 2u) * TILE + row] = value.z;
            a_tile[(i * 4u + 3u) * TILE + row] = value.w;
        }
        for (var i = 0u; i < 4u; i++) { //#unroll
            let k = i * 4u + local_index / TILE4;
            let column = local_index % TILE4;
            var value = vec4<f32>(0.0);
            if (k0 * 4u + k < params.k4 * 4u) {
                value = load_stored(b[b_start + (k0 * 4u + k) * params.b_row + min(column, last_column)]);
            }
            b_tile[k * TILE4 + column] = value;
        }
        workgroupBarrier();
        for (var k = 0u; k < DEPTH; k++) {
            let left = b_tile[k * TILE4 + mine_x];
            let right = b_tile[k * TILE4 + SIDE + mine_x];
            for (var i = 0u; i < 8u; i++) { //#unroll
                let value = vec4<f32>(a_tile[k * TILE + mine_y * 8u + i]);
                acc[i * 2u] = fma(value, left, acc[i * 2u]);
                acc[i * 2u + 1u] = fma(value, right, acc[i * 2u + 1u]);
            }
        }
        workgroupBarrier();
    }

    let row = row0 + mine_y * 8u;
    for (var j = 0u; j < 2u; j++) { //#unroll
        let column = column0 + j * SIDE + mine_x;
        if (column < params.n4) {
            if (TRANSPOSED) {
                store_transposed(acc[j], acc[2u + j], acc[4u + j], acc[6u + j], row, column, batch);
                store_transposed(acc[8u + j], acc[10u + j], acc[12u + j], acc[14u + j], row + 4u, column, batch);
            } else {
                for (var i = 0u; i < 8u; i++) { //#unroll
                    store_row(acc[i * 2u + j], row + i, column, batch);
                }
            }
        }
    }
}
