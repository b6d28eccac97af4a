// matmul_matrix: c = a b^T for each batch entry, on matrix units. Multiplies halves, sums in f32.
// For the products of Winograd convolutions.
//
// One workgroup: a square of 4 by 4 matrices of c. It is one subgroup; if a driver splits it, the
// first subgroup computes and the others return. Nothing is masked: rows, columns and k are whole
// matrices. Each row of a and of b has k contiguous numbers, so both sides are loaded in their
// layout.

enable f16;
enable wgpu_cooperative_matrix;
// naga 30 does not know that the subgroup's number is uniform within a subgroup.
diagnostic(off, derivative_uniformity);

const WORKGROUP: u32 = 64u;               // invocations per workgroup: those of a subgroup
const SIDE: u32 = 8u;                     // rows and columns of one matrix
alias Left = coop_mat8x8<f16, A>;         // matrix of a: rows by k
alias Right = coop_mat8x8<f16, B>;        // matrix of b: k by columns
alias Sums = coop_mat8x8<f32, C>;         // matrix of c

struct Params {
    k: u32,          // numbers of one row of a and of b that are multiplied, a multiple of SIDE
    a_offset: u32,   // first number of a
    a_row: u32,      // numbers between two rows of a
    batch: u32,      // batch entries of each frame
    a_batch: u32,    // numbers between two batch entries of a
    a_frame: u32,    // numbers between two frames of a; all frames share b
    b_batch: u32,    // numbers between two batch entries of b
    c_offset: u32,   // first number of c
    c_row: u32,      // numbers between two rows of c
    c_batch: u32,    // numbers between two batch entries of c
    c_frame: u32,    // numbers between two frames of c
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f16>;          // [batch, m, frames, k]
@group(0) @binding(2) var<storage, read> b: array<f16>;          // [batch, n, k]
@group(0) @binding(3) var<storage, read_write> c: array<f32>;    // [batch, m, frames, n]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup_id: vec3<u32>, @builtin(subgroup_id) subgroup_id: u32) {
    if (subgroup_id > 0u) {
        return;
    }
    let row0 = workgroup_id.x * 4u * SIDE;
    let column0 = workgroup_id.y * 4u * SIDE;
    // naga 30 accepts a stride only if it is a value computed before, not a member of `params`.
    let a_row = params.a_row;
    let b_row = params.k;
    let c_row = params.c_row;
    let entry = workgroup_id.z % params.batch;
    let frame = workgroup_id.z / params.batch;
    let a_start = params.a_offset + entry * params.a_batch + frame * params.a_frame + row0 * a_row;
    let b_start = entry * params.b_batch + column0 * b_row;

    var sums: array<Sums, 16>;
    for (var k0 = 0u; k0 < params.k; k0 += SIDE) {
        var left: array<Left, 4>;
        var right: array<Right, 4>;
        for (var i = 0u; i < 4u; i++) { //#unroll
            let a_index = a_start + i * SIDE * a_row + k0;
            let b_index = b_start + i * SIDE * b_row + k0;
            left[i] = coopLoadT<Left>(&a[a_index], a_row);
            right[i] = coopLoad<Right>(&b[b_index], b_row);
        }
        for (var i = 0u; i < 4u; i++) { //#unroll
            for (var j = 0u; j < 4u; j++) { //#unroll
                sums[i * 4u + j] = coopMultiplyAdd(left[i], right[j], sums[i * 4u + j]);
            }
        }
    }
    let c_start = params.c_offset + entry * params.c_batch + frame * params.c_frame + row0 * c_row + column0;
    for (var i = 0u; i < 4u; i++) { //#unroll
        for (var j = 0u; j < 4u; j++) { //#unroll
            let c_index = c_start + i * SIDE * c_row + j * SIDE;
            coopStoreT(sums[i * 4u + j], &c[c_index], c_row);
        }
    }
}
