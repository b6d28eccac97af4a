// winograd_weights: u = G w G^T of a 3x3 filter, for Winograd F(4x4, 3x3).
//
// Points 0, +-1/sqrt(2), +-sqrt(2), infinity: half the rounding error of the textbook points 0, +-1, +-2 at the same cost.
// A filter with taps in time is several launches, one for each: u then holds their rows one after the other.
// One invocation: four output channels of one input channel. Column blocks beyond the weights are written as zeros.

//#parts storage

const WORKGROUP: u32 = 64u; // invocations per workgroup
alias Stored = vec4<f32>;   // weights as kept in memory
alias Transformed = vec4<f32>; // u as kept in memory

const B: f32 = 1.4142135623730951;

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

fn transform(x0: vec4<f32>, x1: vec4<f32>, x2: vec4<f32>) -> array<vec4<f32>, 6> {
    let even = x0 * (2.0 / 3.0) + x2 / 3.0;
    let odd = x1 * (B / 3.0);
    let far_even = x0 / 6.0 + x2 / 3.0;
    let far_odd = x1 * (B / 6.0);
    return array<vec4<f32>, 6>(x0, -even - odd, odd - even, far_even + far_odd, far_even - far_odd, x2);
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
    let batch = columns * params.k;
    if (params.column0 + column >= params.c_out4) {
        for (var i = 0u; i < 36u; i++) {
            u[i * batch + target_index] = Transformed(vec4<f32>(0.0));
        }
        return;
    }

    let source = params.w_offset + channel_in * params.c_out4 + params.column0 + column;
    let tap = params.c_in * params.c_out4;
    var half_done: array<array<vec4<f32>, 6>, 3>;
    for (var x = 0u; x < 3u; x++) { //#unroll
        half_done[x] = transform(load_stored(w[source + x * tap]), load_stored(w[source + (3u + x) * tap]), load_stored(w[source + (6u + x) * tap]));
    }
    for (var y = 0u; y < 6u; y++) { //#unroll
        let row = transform(half_done[0][y], half_done[1][y], half_done[2][y]);
        for (var x = 0u; x < 6u; x++) { //#unroll
            u[(y * 6u + x) * batch + target_index] = Transformed(row[x]);
        }
    }
}
