// matmul_matrix: the product of `matmul`, on matrix units. Multiplies halves, sums in f32.
//
// One workgroup: 64 rows by 64 columns of c, in steps of 32 along k, through workgroup memory. It
// has at least four subgroups. Each of the first four computes a quarter, 32 by 32; all load and
// store. If a driver makes smaller subgroups than the largest, the others have no quarter.

enable f16;
enable wgpu_cooperative_matrix;
// naga 30 does not know that the subgroup's number is uniform within a subgroup.
diagnostic(off, derivative_uniformity);

//#parts storage output product epilogue

const WORKGROUP: u32 = 64u;       // invocations per workgroup: those of four subgroups
const SIDE: u32 = 8u;             // rows and columns of one matrix
const MATRICES: u32 = 4u;         // matrices along each side of a quarter: 32 / SIDE
const LOADS: u32 = 8u;            // vec4 of a, and of b, that an invocation loads for one step: 512 / WORKGROUP
const HAS_BIAS: bool = true;      // add bias[n]
const ACCUMULATE: bool = false;   // add the old value of c
const ROW_FACTORS: bool = false;  // c = row_factors[m] * c + product (rows with factor 0 are not read)
const FRAMES: u32 = 1u;           // frames of a: rows of c are the frames of a's first row, then of its second
const TRANSPOSED: bool = false;   // write c[n][m / 4] instead of c[m][n / 4]
const WHOLE: bool = false;        // k is a multiple of the step along k
alias Stored = vec4<f16>;         // elements of a and b
alias Output = vec4<f32>;         // elements of c
alias Left = coop_mat8x8<f16, A>;    // matrix of a: rows by k
alias Right = coop_mat8x8<f16, B>;   // matrix of b: k by columns
alias Sums = coop_mat8x8<f32, C>;    // matrix of c

const TILE: u32 = 64u;            // rows and columns of one workgroup
const TILE4: u32 = 16u;           // columns of one workgroup, in vec4
const QUARTER: u32 = 32u;         // rows and columns of one subgroup
const DEPTH: u32 = 32u;           // step along k
const DEPTH4: u32 = 8u;           // step along k, in vec4
const SIDE4: u32 = SIDE / 4u;     // columns of a matrix, in vec4
// Numbers between two rows of a tile. The padding spreads the rows of a matrix over all banks:
// without it, an H200 takes twice as long.
const A_ROW: u32 = DEPTH + 8u;
const B_ROW: u32 = TILE + 8u;
const SUMS_ROW: u32 = SIDE + 4u;
const SUMS_MATRIX: u32 = SIDE * SUMS_ROW;

var<workgroup> a_tile: array<f16, TILE * A_ROW>;           // [row, k]
var<workgroup> b_tile: array<f16, DEPTH * B_ROW>;          // [k, column]
var<workgroup> sums_tile: array<f32, 4u * SUMS_MATRIX>;    // [quarter, row, column]

alias Next = array<Stored, LOADS>;

alias Places = array<u32, LOADS>;

// Loads one vec4 of each of the rows of a that begin at `places`, in column `k`.
fn load_a(next: ptr<function, Next>, places: ptr<function, Places>, k: u32) {
    for (var i = 0u; i < LOADS; i++) { //#unroll
        next[i] = Stored();
        // A condition for each load takes up to twice as long on an H200.
        if (WHOLE || k < params.k4) {
            next[i] = a[places[i] + k * params.a_column];
        }
    }
}

// Loads one vec4 of each of the rows of b from `k` on. The first row of b begins at `start`.
fn load_b(next: ptr<function, Next>, start: u32, k: u32) {
    for (var i = 0u; i < LOADS; i++) { //#unroll
        let row = k + i * (WORKGROUP / TILE4);
        next[i] = Stored();
        if (WHOLE || row < params.k4 * 4u) {
            next[i] = b[start + row * params.b_row];
        }
    }
}

// Returns four sums of a row that begin at `first`.
fn sums_at(first: u32) -> vec4<f32> {
    return vec4<f32>(sums_tile[first], sums_tile[first + 1u], sums_tile[first + 2u], sums_tile[first + 3u]);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup_id: vec3<u32>, @builtin(local_invocation_index) local_index: u32, @builtin(subgroup_id) subgroup_id: u32) {
    let entry = workgroup_id.z;
    let target_start = c_start(entry, 0u);
    let row0 = workgroup_id.x * TILE;
    let column0 = workgroup_id.y * TILE4;
    // Neighbouring loaders take neighbouring columns. Rows and columns beyond the matrices read the
    // last one again. Their results are not stored.
    let a_column = local_index % DEPTH4;
    let a_row = local_index / DEPTH4;
    let a_start = params.a_offset + entry * params.a_batch;
    var a_places: Places;
    for (var i = 0u; i < LOADS; i++) { //#unroll
        let row = min(row0 + a_row + i * (WORKGROUP / DEPTH4), params.m - 1u);
        a_places[i] = a_start + row / FRAMES * params.a_row + row % FRAMES * params.a_frame;
    }
    let b_column = local_index % TILE4;
    let b_row = local_index / TILE4;
    let b_block = params.b_offset + entry * params.b_batch + workgroup_id.y * params.b_block;
    let b_start = b_block + min(b_column, params.n4 - column0 - 1u);
    let has_quarter = subgroup_id < 4u;
    let quarter_row = subgroup_id % 2u * QUARTER;
    let quarter_column = subgroup_id / 2u * QUARTER;
    // naga 30 accepts a stride only if it is a value computed before, not a constant.
    let zero = params.batch * 0u;
    let a_stride = A_ROW + zero;
    let b_stride = B_ROW + zero;
    let sums_stride = SUMS_ROW + zero;

    var sums: array<Sums, MATRICES * MATRICES>;
    var a_next: Next;
    var b_next: Next;
    var k0 = 0u;
    loop {
        // The next step is loaded while the current one is multiplied.
        if (k0 < params.k4) {
            load_a(&a_next, &a_places, k0 + a_column);
            load_b(&b_next, b_start, k0 * 4u + b_row);
        }
        if (k0 > 0u) {
            if (has_quarter) {
                for (var s = 0u; s < MATRICES; s++) { //#unroll
                    var left: array<Left, MATRICES>;
                    for (var i = 0u; i < MATRICES; i++) { //#unroll
                        let a_at = (quarter_row + i * SIDE) * A_ROW + s * SIDE;
                        left[i] = coopLoadT<Left>(&a_tile[a_at], a_stride);
                    }
                    for (var j = 0u; j < MATRICES; j++) { //#unroll
                        let b_at = s * SIDE * B_ROW + quarter_column + j * SIDE;
                        let right = coopLoadT<Right>(&b_tile[b_at], b_stride);
                        for (var i = 0u; i < MATRICES; i++) { //#unroll
                            sums[i * MATRICES + j] = coopMultiplyAdd(left[i], right, sums[i * MATRICES + j]);
                        }
                    }
                }
            }
            workgroupBarrier();
        }
        if (k0 >= params.k4) {
            break;
        }
        for (var i = 0u; i < LOADS; i++) { //#unroll
            let a_at = (a_row + i * (WORKGROUP / DEPTH4)) * A_ROW + a_column * 4u;
            a_tile[a_at] = a_next[i].x;
            a_tile[a_at + 1u] = a_next[i].y;
            a_tile[a_at + 2u] = a_next[i].z;
            a_tile[a_at + 3u] = a_next[i].w;
            let b_at = (b_row + i * (WORKGROUP / TILE4)) * B_ROW + b_column * 4u;
            b_tile[b_at] = b_next[i].x;
            b_tile[b_at + 1u] = b_next[i].y;
            b_tile[b_at + 2u] = b_next[i].z;
            b_tile[b_at + 3u] = b_next[i].w;
        }
        workgroupBarrier();
        k0 += DEPTH4;
    }

    // naga 30 can neither round a matrix nor reach its elements: one matrix of each quarter at a
    // time goes through workgroup memory.
    let quarter_sums = subgroup_id * SUMS_MATRIX;
    for (var i = 0u; i < MATRICES; i++) { //#unroll
        for (var j = 0u; j < MATRICES; j++) { //#unroll
            if (has_quarter) {
                coopStoreT(sums[i * MATRICES + j], &sums_tile[quarter_sums], sums_stride);
            }
            workgroupBarrier();
            let rows_at_once = select(1u, 4u, TRANSPOSED);
            for (var at = local_index; at < 4u * SIDE * SIDE4 / rows_at_once; at += WORKGROUP) {
                let in_matrix = at % (SIDE * SIDE4 / rows_at_once);
                let quarter = at / (SIDE * SIDE4 / rows_at_once);
                let matrix_row = in_matrix / SIDE4 * rows_at_once;
                let matrix_column = in_matrix % SIDE4;
                let first = quarter * SUMS_MATRIX + matrix_row * SUMS_ROW + matrix_column * 4u;
                let row = row0 + quarter % 2u * QUARTER + i * SIDE + matrix_row;
                let column = column0 + (quarter / 2u * QUARTER + j * SIDE) / 4u + matrix_column;
                if (column < params.n4) {
                    if (TRANSPOSED) {
                        store_transposed(
                            sums_at(first),
                            sums_at(first + SUMS_ROW),
                            sums_at(first + 2u * SUMS_ROW),
                            sums_at(first + 3u * SUMS_ROW),
                            row,
                            column,
                            target_start,
                        );
                    } else {
                        store_row(sums_at(first), row, column, target_start);
                    }
                }
            }
            workgroupBarrier();
        }
    }
}
