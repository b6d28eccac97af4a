// matmul_matrix: c = a b^T for each batch entry, on matrix units. Multiplies halves, sums in f32.
// For the products of Winograd convolutions.
//
// One workgroup: a square of 4 by 4 matrices of c, in steps of two matrices along k, through
// workgroup memory. It has at least four subgroups. Each of the first four computes a quarter of the
// square; all load and store. If a driver makes smaller subgroups, the others have no quarter. Rows
// and columns are whole matrices.

enable f16;
enable wgpu_cooperative_matrix;
// naga 30 does not know that the subgroup's number is uniform within a subgroup.
diagnostic(off, derivative_uniformity);

const WORKGROUP: u32 = 64u;               // invocations per workgroup: those of four subgroups
const SIDE: u32 = 8u;                     // rows and columns of one matrix
const LOADS: u32 = 2u;                    // vec4 of a, and of b, that an invocation loads for one step
const SPLITS: bool = true;                // the driver may make smaller subgroups
const WHOLE: bool = false;                // k is a multiple of the step along k
alias Left = coop_mat8x8<f16, A>;         // matrix of a: rows by k
alias Right = coop_mat8x8<f16, B>;        // matrix of b: k by columns
alias Sums = coop_mat8x8<f32, C>;         // matrix of c

const SIDE4: u32 = SIDE / 4u;             // numbers of a matrix's row, in vec4
const SQUARE: u32 = SIDE * 4u;            // rows and columns of one workgroup
const DEPTH4: u32 = SIDE4 * 2u;           // step along k, in vec4
const STEP: u32 = SQUARE * DEPTH4;        // vec4 of a, and of b, in one step
const FULL: bool = STEP == LOADS * WORKGROUP;   // all invocations load
// Numbers between two rows of a tile. The padding spreads the rows of a matrix over all banks.
const TILE_ROW: u32 = SIDE * 2u + 8u;
const SUMS_ROW: u32 = SIDE + 4u;
const SUMS_MATRIX: u32 = SIDE * SUMS_ROW;

struct Params {
    k4: u32,         // vec4 of one row of a and of b that are multiplied, a multiple of SIDE / 4
    a_offset: u32,   // first vec4 of a
    a_row: u32,      // vec4 between two rows of a
    batch: u32,      // batch entries of each frame
    a_batch: u32,    // vec4 between two batch entries of a
    a_frame: u32,    // vec4 between two frames of a; all frames share b
    b_batch: u32,    // vec4 between two batch entries of b
    c_offset: u32,   // first vec4 of c
    c_row: u32,      // vec4 between two rows of c
    c_batch: u32,    // vec4 between two batch entries of c
    c_frame: u32,    // vec4 between two frames of c
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<vec4<f16>>;          // [batch, m, frames, k / 4]
@group(0) @binding(2) var<storage, read> b: array<vec4<f16>>;          // [batch, n, k / 4]
@group(0) @binding(3) var<storage, read_write> c: array<vec4<f16>>;    // [batch, m, frames, n / 4]

var<workgroup> a_tile: array<f16, SQUARE * TILE_ROW>;      // [row, k]
var<workgroup> b_tile: array<f16, SQUARE * TILE_ROW>;      // [column, k]
var<workgroup> sums_tile: array<f32, 4u * SUMS_MATRIX>;    // [quarter, row, column]

alias Next = array<vec4<f16>, LOADS>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup_id: vec3<u32>, @builtin(local_invocation_index) local_index: u32, @builtin(subgroup_id) subgroup_id: u32) {
    let row0 = workgroup_id.x * SQUARE;
    let column0 = workgroup_id.y * SQUARE;
    let entry = workgroup_id.z % params.batch;
    let frame = workgroup_id.z / params.batch;
    let a_start = params.a_offset + entry * params.a_batch + frame * params.a_frame + row0 * params.a_row;
    let b_start = entry * params.b_batch + column0 * params.k4;
    let has_quarter = !SPLITS || subgroup_id < 4u;
    let quarter_row = subgroup_id % 2u * SIDE * 2u;
    let quarter_column = subgroup_id / 2u * SIDE * 2u;
    // naga 30 accepts a stride only if it is a value computed before, not a constant.
    let tile_row = TILE_ROW + params.k4 * 0u;
    let sums_row = SUMS_ROW + params.k4 * 0u;

    var sums0: Sums;
    var sums1: Sums;
    var sums2: Sums;
    var sums3: Sums;
    var a_next: Next;
    var b_next: Next;
    var k0 = 0u;
    loop {
        // The next step is loaded while the current one is multiplied.
        if (k0 < params.k4) {
            for (var i = 0u; i < LOADS; i++) { //#unroll
                let at = i * WORKGROUP + local_index;
                let row = at / DEPTH4;
                let k = k0 + at % DEPTH4;
                if ((FULL || at < STEP) && (WHOLE || k < params.k4)) {
                    a_next[i] = a[a_start + row * params.a_row + k];
                    b_next[i] = b[b_start + row * params.k4 + k];
                } else {
                    a_next[i] = vec4<f16>();
                    b_next[i] = vec4<f16>();
                }
            }
        }
        if (k0 > 0u) {
            if (has_quarter) {
                for (var half = 0u; half < 2u; half++) { //#unroll
                    let a_at = quarter_row * TILE_ROW + half * SIDE;
                    let b_at = quarter_column * TILE_ROW + half * SIDE;
                    let a_below = a_at + SIDE * TILE_ROW;
                    let b_right = b_at + SIDE * TILE_ROW;
                    let left0 = coopLoadT<Left>(&a_tile[a_at], tile_row);
                    let left1 = coopLoadT<Left>(&a_tile[a_below], tile_row);
                    let right0 = coopLoad<Right>(&b_tile[b_at], tile_row);
                    let right1 = coopLoad<Right>(&b_tile[b_right], tile_row);
                    sums0 = coopMultiplyAdd(left0, right0, sums0);
                    sums1 = coopMultiplyAdd(left0, right1, sums1);
                    sums2 = coopMultiplyAdd(left1, right0, sums2);
                    sums3 = coopMultiplyAdd(left1, right1, sums3);
                }
            }
            workgroupBarrier();
        }
        if (k0 >= params.k4) {
            break;
        }
        for (var i = 0u; i < LOADS; i++) { //#unroll
            let at = i * WORKGROUP + local_index;
            if (FULL || at < STEP) {
                let to = at / DEPTH4 * TILE_ROW + at % DEPTH4 * 4u;
                a_tile[to] = a_next[i].x;
                a_tile[to + 1u] = a_next[i].y;
                a_tile[to + 2u] = a_next[i].z;
                a_tile[to + 3u] = a_next[i].w;
                b_tile[to] = b_next[i].x;
                b_tile[to + 1u] = b_next[i].y;
                b_tile[to + 2u] = b_next[i].z;
                b_tile[to + 3u] = b_next[i].w;
            }
        }
        workgroupBarrier();
        k0 += DEPTH4;
    }

    // naga 30 cannot round a matrix: one matrix of each quarter at a time goes through workgroup
    // memory.
    let c_start = params.c_offset + entry * params.c_batch + frame * params.c_frame;
    let sums_at = subgroup_id * SUMS_MATRIX;
    for (var i = 0u; i < 4u; i++) { //#unroll
        if (has_quarter) {
            if (i == 0u) {
                coopStoreT(sums0, &sums_tile[sums_at], sums_row);
            } else if (i == 1u) {
                coopStoreT(sums1, &sums_tile[sums_at], sums_row);
            } else if (i == 2u) {
                coopStoreT(sums2, &sums_tile[sums_at], sums_row);
            } else {
                coopStoreT(sums3, &sums_tile[sums_at], sums_row);
            }
        }
        workgroupBarrier();
        for (var at = local_index; at < 4u * SIDE * SIDE4; at += WORKGROUP) {
            let quarter = at / (SIDE * SIDE4);
            let row = at / SIDE4 % SIDE;
            let column4 = at % SIDE4;
            let first = quarter * SUMS_MATRIX + row * SUMS_ROW + column4 * 4u;
            let value = vec4<f32>(sums_tile[first], sums_tile[first + 1u], sums_tile[first + 2u], sums_tile[first + 3u]);
            let c_row = row0 + (quarter % 2u * 2u + i / 2u) * SIDE + row;
            let c_column4 = column0 / 4u + (quarter / 2u * 2u + i % 2u) * SIDE4 + column4;
            c[c_start + c_row * params.c_row + c_column4] = vec4<f16>(value);
        }
        workgroupBarrier();
    }
}
