// linear_attention_sums: sums over runs of pixels, for each head: relu(k) v^T, and relu(k) alone.
// linear_attention_finish adds up the runs.
//
// One workgroup: one head of one run. One invocation: four channels of k with four channels of v,
// pixel after pixel.

//#parts storage relu finite

const WORKGROUP: u32 = 64u;    // invocations per workgroup
const HEAD4: u32 = 8u;         // channels of a head / 4, at most 8
alias Stored = vec4<f32>;      // x as kept in memory

struct Params {
    pixels: u32,       // pixels of this chunk
    run: u32,          // pixels of one run
    channels4: u32,    // channels of x / 4
    sums_offset: u32,  // first run of this chunk in sums
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<Stored>;               // [pixels, heads, 3, HEAD4]: q, k, v
@group(0) @binding(2) var<storage, read_write> sums: array<vec4<f32>>;   // [runs, heads, HEAD4 * 4 + 1, HEAD4]: each channel of k with v, k

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let head = workgroup_id.x;
    let run = workgroup_id.y;
    let row4 = local_index / HEAD4;
    let column = local_index % HEAD4;
    if (row4 >= HEAD4) {
        return;
    }
    let first = run * params.run;
    let last = min(first + params.run, params.pixels);
    let start = (head * 3u + 1u) * HEAD4;
    var products: array<vec4<f32>, 4>;
    var keys = vec4<f32>(0.0);
    for (var pixel = first; pixel < last; pixel++) {
        let at = pixel * params.channels4 + start;
        let key = relu(load_stored(x[at + row4]));
        let value = load_stored(x[at + HEAD4 + column]);
        keys += key;
        products[0] = fma(vec4<f32>(key.x), value, products[0]);
        products[1] = fma(vec4<f32>(key.y), value, products[1]);
        products[2] = fma(vec4<f32>(key.z), value, products[2]);
        products[3] = fma(vec4<f32>(key.w), value, products[3]);
    }
    let target_index = ((params.sums_offset + run) * workgroups.x + head) * (HEAD4 * 4u + 1u) * HEAD4;
    for (var i = 0u; i < 4u; i++) { //#unroll
        sums[target_index + (row4 * 4u + i) * HEAD4 + column] = products[i];
    }
    if (column == 0u) {
        sums[target_index + HEAD4 * 4u * HEAD4 + row4] = keys;
    }
}
