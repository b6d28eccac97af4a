// winograd_weights: u = G w G^T of a 3x3 filter, for Winograd F(4x4, 3x3).
//
// A filter with taps in time takes one launch for each tap: u then holds their rows one after the
// other. One invocation: four output channels of one input channel. Column blocks beyond the
// weights are written as zeros.

//#parts storage transform_weights

const WORKGROUP: u32 = 64u; // invocations per workgroup
alias Stored = vec4<f32>;   // weights as kept in memory
alias Transformed = vec4<f32>; // u as kept in memory

struct Params {
    c_in: u32,       // input channels, padded to a multiple of 4
    c_out4: u32,     // output channels / 4
    column0: u32,    // first vec4 column of w that u covers
    tile_n: u32,     // vec4 columns of one block of u
    blocks: u32,     // column blocks of u
    k: u32,          // rows of u: input channels of all taps in time
    k0: u32,         // first row that this launch writes
    w_offset: u32,   // first element of w
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> w: array<Stored>;               // [3, 3, c_in, c_out / 4]
@group(0) @binding(2) var<storage, read_write> u: array<Transformed>;    // [36, blocks, k, tile_n]

fn load_tap(source: u32, tap: u32) -> vec4<f32> {
    return load_stored(w[source + tap * (params.c_in * params.c_out4)]);
}

fn store_point(goal: u32, point: u32, value: vec4<f32>) {
    u[point * (params.blocks * params.tile_n * params.k) + goal] = Transformed(value);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>) {
    let columns = params.blocks * params.tile_n;
    if (global_id.x >= columns * params.c_in) {
        return;
    }
    let channel_in = global_id.x / columns;
    let column = global_id.x % columns;
    let block = column / params.tile_n;
    let target_index = (block * params.k + params.k0 + channel_in) * params.tile_n + column % params.tile_n;
    if (params.column0 + column >= params.c_out4) {
        for (var i = 0u; i < 36u; i++) {
            store_point(target_index, i, vec4<f32>(0.0));
        }
        return;
    }
    transform_filters(params.w_offset + channel_in * params.c_out4 + params.column0 + column, target_index);
}
