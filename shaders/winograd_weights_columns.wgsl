// winograd_weights_columns: the result of `winograd_weights` in the layout of `matmul_matrix`. The
// input channels of an output channel are contiguous.
//
// One invocation: four input channels of one output channel. Neighbouring invocations have
// neighbouring input channels, because the kernel writes more than it reads. Weights fill their
// blocks, so nothing is padded.

//#parts transform_weights

const WORKGROUP: u32 = 64u;    // invocations per workgroup
alias Stored = f32;            // one weight as kept in memory
alias Transformed = vec4<f32>; // u as kept in memory

struct Params {
    c_in: u32,       // input channels, a multiple of 4
    c_out4: u32,     // output channels / 4
    column0: u32,    // first output channel that u covers, / 4
    tile_n: u32,     // output channels of one block of u, / 4
    blocks: u32,     // blocks of u
    k: u32,          // input channels of all taps in time
    k0: u32,         // first input channel that this launch writes
    w_offset: u32,   // first element of w, in fours
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> w: array<Stored>;               // [3, 3, c_in, c_out]
@group(0) @binding(2) var<storage, read_write> u: array<Transformed>;    // [36, blocks * tile_n * 4, k / 4]

fn load_tap(source: u32, tap: u32) -> vec4<f32> {
    let row = params.c_out4 * 4u;
    let first = source + tap * (params.c_in * row);
    return vec4<f32>(f32(w[first]), f32(w[first + row]), f32(w[first + 2u * row]), f32(w[first + 3u * row]));
}

fn store_point(goal: u32, point: u32, value: vec4<f32>) {
    u[point * (params.blocks * params.tile_n * params.k) + goal] = Transformed(value);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>) {
    let rows4 = params.c_in / 4u;
    let row4 = global_id.x % rows4;
    let column = global_id.x / rows4;
    if (column >= params.blocks * params.tile_n * 4u) {
        return;
    }
    let source = (params.w_offset + row4 * 4u * params.c_out4 + params.column0) * 4u + column;
    transform_filters(source, (column * params.k + params.k0) / 4u + row4);
}
