// linear_attention_finish: table = the sum over all runs of linear_attention_sums, in their order.
//
// One invocation: one element of the table.

const WORKGROUP: u32 = 64u;    // invocations per workgroup

struct Params {
    runs: u32,         // runs of sums
    elements: u32,     // elements of one run
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> sums: array<vec4<f32>>;         // [runs, elements]
@group(0) @binding(2) var<storage, read_write> table: array<vec4<f32>>;  // [elements]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>) {
    let element = global_id.x;
    if (element >= params.elements) {
        return;
    }
    var sum = vec4<f32>(0.0);
    for (var run = 0u; run < params.runs; run++) {
        sum += sums[run * params.elements + element];
    }
    table[element] = sum;
}
