// matmul_shared: the product of `matmul`, through workgroup memory. For GPUs, where a workgroup
// should load each element once for all its invocations.
//
// One workgroup: 64 rows by 64 or 32 columns of c, in steps of 16 along k. One invocation: ROWS4
// times four rows by COLUMNS4 times four columns. 64 invocations load a, four rows of four columns
// each; a workgroup of 32 loads two such blocks each. 64 invocations, or 32 for 32 columns, load b,
// neighbouring columns together. In a workgroup of at most 64, the same ones load both.

//#parts storage output product epilogue

const WORKGROUP: u32 = 64u;       // invocations per workgroup: TILE4 / ROWS4 * WIDTH4 / COLUMNS4
const WIDTH4: u32 = 16u;          // columns of one workgroup, in vec4
const BLOCKS: u32 = 1u;           // blocks of a that an invocation loads: 64 / WORKGROUP, at least 1
const ROWS4: u32 = 2u;            // rows of one invocation, in fours
const COLUMNS4: u32 = 2u;         // columns of one invocation, in vec4
const HAS_BIAS: bool = true;      // add bias[n]
const ACCUMULATE: bool = false;   // add the old value of c
const ROW_FACTORS: bool = false;  // c = row_factors[m] * c + product (rows with factor 0 are not read)
const FRAMES: u32 = 1u;           // frames of a: rows of c are the frames of a's first row, then of its second
const TRANSPOSED: bool = false;   // write c[n][m / 4] instead of c[m][n / 4]
const WHOLE: bool = false;        // k is a multiple of the step along k
const AHEAD: bool = true;         // load the next step while the current one is multiplied; then all invocations are loaders
alias Stored = vec4<f32>;         // elements of a and b
alias Output = vec4<f32>;         // elements of c

const TILE: u32 = 64u;            // rows of one workgroup
const TILE4: u32 = 16u;           // rows of one workgroup, in fours
const LOADERS: u32 = 64u;         // invocations that load a, if there are so many
const ROWS_SIDE: u32 = TILE4 / ROWS4;         // invocations along the rows
const COLUMNS_SIDE: u32 = WIDTH4 / COLUMNS4;  // invocations along the columns
const DEPTH4: u32 = 4u;           // step along k, in vec4
const DEPTH: u32 = 16u;           // step along k
// Elements between two vec4 columns of a in its tile. The two that are not used make neighbouring
// loaders store to different banks. On an H200, products take up to a sixth less time with them.
const A_COLUMN: u32 = 4u * TILE4 + 2u;

var<workgroup> a_tile: array<vec4<f32>, DEPTH4 * A_COLUMN>;   // [k / 4][k % 4, row / 4]
var<workgroup> b_tile: array<vec4<f32>, DEPTH * WIDTH4>;      // [k, column / 4]

alias Sums = array<vec4<f32>, ROWS4 * 4u * COLUMNS4>;

alias Next = array<Stored, 4>;

// Loads vec4 column `k` of a, in the four rows that begin at `at`.
fn load_a(at: vec4<u32>, k: u32) -> Next {
    var next: Next;
    for (var i = 0u; i < 4u; i++) { //#unroll
        if (WHOLE || k < params.k4) {
            next[i] = a[at[i] + k * params.a_column];
        }
    }
    return next;
}

// Loads four rows of b, one for each of the four vec4 from `k` on. The first begins at `at`.
fn load_b(next: ptr<function, Next>, at: u32, k: u32) {
    for (var i = 0u; i < 4u; i++) { //#unroll
        next[i] = Stored();
        if (WHOLE || k + i < params.k4) {
            next[i] = b[at + (k + i) * 4u * params.b_row];
        }
    }
}

// Adds the products of the elements in both tiles.
fn multiply(acc: ptr<function, Sums>, mine_x: u32, mine_y: u32) {
    for (var k = 0u; k < DEPTH; k++) { //#unroll
        for (var r = 0u; r < ROWS4; r++) { //#unroll
            let rows = a_tile[k / 4u * A_COLUMN + k % 4u * TILE4 + r * ROWS_SIDE + mine_y];
            for (var j = 0u; j < COLUMNS4; j++) { //#unroll
                let columns = b_tile[k * WIDTH4 + j * COLUMNS_SIDE + mine_x];
                acc[(r * 4u) * COLUMNS4 + j] = fma(vec4<f32>(rows.x), columns, acc[(r * 4u) * COLUMNS4 + j]);
                acc[(r * 4u + 1u) * COLUMNS4 + j] = fma(vec4<f32>(rows.y), columns, acc[(r * 4u + 1u) * COLUMNS4 + j]);
                acc[(r * 4u + 2u) * COLUMNS4 + j] = fma(vec4<f32>(rows.z), columns, acc[(r * 4u + 2u) * COLUMNS4 + j]);
                acc[(r * 4u + 3u) * COLUMNS4 + j] = fma(vec4<f32>(rows.w), columns, acc[(r * 4u + 3u) * COLUMNS4 + j]);
            }
        }
    }
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup_id: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let entry = workgroup_id.z;
    let target_start = c_start(entry, 0u);
    let row0 = workgroup_id.x * TILE;
    let column0 = workgroup_id.y * WIDTH4;
    let mine_x = local_index % COLUMNS_SIDE;
    let mine_y = local_index / COLUMNS_SIDE;
    // Loaders. Of a: one vec4 column of four rows, for each block. Of b: one vec4 column of four
    // rows that are four apart.
    let loads_a = local_index < LOADERS;
    let a_column = local_index % DEPTH4;
    let a_rows = local_index / DEPTH4;
    let b_index = select(local_index - LOADERS, local_index, WORKGROUP <= LOADERS);
    let loads_b = b_index < WIDTH4 * 4u;
    let b_column = b_index % WIDTH4;
    let b_row = b_index / WIDTH4;
    // Rows and columns beyond the matrices read the last one again. Their results are not stored.
    let a_start = params.a_offset + entry * params.a_batch;
    var a_at: array<vec4<u32>, BLOCKS>;
    for (var block = 0u; block < BLOCKS; block++) { //#unroll
        for (var i = 0u; i < 4u; i++) { //#unroll
            let row = min(row0 + (a_rows + block * (WORKGROUP / DEPTH4)) * 4u + i, params.m - 1u);
            a_at[block][i] = a_start + row / FRAMES * params.a_row + row % FRAMES * params.a_frame;
        }
    }
    let b_start = params.b_offset + entry * params.b_batch + workgroup_id.y * params.b_block;
    let b_at = b_start + b_row * params.b_row + min(b_column, params.n4 - column0 - 1u);

    var acc: Sums;
    var a_next: array<Next, BLOCKS>;
    var b_next: Next;
    var k0 = 0u;
    loop {
        if (AHEAD && k0 < params.k4) {
            for (var block = 0u; block < BLOCKS; block++) { //#unroll
                a_next[block] = load_a(a_at[block], k0 + a_column);
            }
            load_b(&b_next, b_at, k0);
        }
        // The next step is loaded while the current one is multiplied.
        if (k0 > 0u) {
            multiply(&acc, mine_x, mine_y);
            workgroupBarrier();
        }
        if (k0 >= params.k4) {
            break;
        }
        if (loads_a) {
            for (var block = 0u; block < BLOCKS; block++) { //#unroll
                if (!AHEAD) {
                    a_next[block] = load_a(a_at[block], k0 + a_column);
                }
                let block0 = load_stored(a_next[block][0]);
                let block1 = load_stored(a_next[block][1]);
                let block2 = load_stored(a_next[block][2]);
                let block3 = load_stored(a_next[block][3]);
                let at = a_column * A_COLUMN + a_rows + block * (WORKGROUP / DEPTH4);
                a_tile[at] = vec4<f32>(block0.x, block1.x, block2.x, block3.x);
                a_tile[at + TILE4] = vec4<f32>(block0.y, block1.y, block2.y, block3.y);
                a_tile[at + 2u * TILE4] = vec4<f32>(block0.z, block1.z, block2.z, block3.z);
                a_tile[at + 3u * TILE4] = vec4<f32>(block0.w, block1.w, block2.w, block3.w);
            }
        }
        if (loads_b) {
            if (!AHEAD) {
                load_b(&b_next, b_at, k0);
            }
            for (var i = 0u; i < 4u; i++) { //#unroll
                b_tile[(i * 4u + b_row) * WIDTH4 + b_column] = load_stored(b_next[i]);
            }
        }
        workgroupBarrier();
        k0 += DEPTH4;
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
                        target_start,
                    );
                } else {
                    for (var i = 0u; i < 4u; i++) { //#unroll
                        store_row(acc[(r * 4u + i) * COLUMNS4 + j], row + i, column, target_start);
                    }
                }
            }
        }
    }
}
