// attention_finish: y = accumulated / sum of the streaming softmax, row by row.
//
// One invocation: four channels of one query.

//#parts storage

const WORKGROUP: u32 = 64u; // invocations per workgroup
alias Stored = vec4<f32>;   // y as kept in memory

struct Params {
    queries: u32,    // queries of this block
    channels4: u32,  // channels / 4
    y_offset: u32,   // first element of the block in y
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> accumulated: array<vec4<f32>>;      // [queries, c / 4]
@group(0) @binding(2) var<storage, read> state: array<vec2<f32>>;            // [queries]: max, sum
@group(0) @binding(3) var<storage, read_write> y: array<Stored>;             // [queries, c / 4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>) {
    if (global_id.x >= params.queries * params.channels4) {
        return;
    }
    let sum = state[global_id.x / params.channels4].y;
    y[params.y_offset + global_id.x] = store_stored(accumulated[global_id.x] / sum);
}
