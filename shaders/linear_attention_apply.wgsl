// linear_attention_apply: y = (relu(q) . table of k v^T) / (relu(q) . table of k + eps), for each
// pixel and head.
//
// One invocation: four channels of one head of PIXELS successive pixels, which share the elements
// of the table that it loads. Neighbouring invocations take neighbouring channels.

//#parts storage relu finite

const WORKGROUP: u32 = 64u;    // invocations per workgroup
const HEAD4: u32 = 8u;         // channels of a head / 4, at most 8
const PIXELS: u32 = 4u;        // successive pixels per invocation
alias Stored = vec4<f32>;      // x and y as kept in memory

struct Params {
    pixels: u32,       // pixels of this launch
    heads: u32,        // heads of x
    x_offset: u32,     // first element in x
    y_offset: u32,     // first element in y
    y_channels4: u32,  // channels of y / 4
    eps: f32,          // added to the divisor
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<Stored>;               // [pixels, heads, 3, HEAD4]: q, k, v
@group(0) @binding(2) var<storage, read> table: array<vec4<f32>>;        // [heads, HEAD4 * 4 + 1, HEAD4]
@group(0) @binding(3) var<storage, read_write> y: array<Stored>;         // [pixels, y_channels4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let index = global_id.y * workgroups.x * WORKGROUP + global_id.x;
    let columns = params.heads * HEAD4;
    let first = index / columns * PIXELS;
    if (first >= params.pixels) {
        return;
    }
    let column = index % columns;
    let head = column / HEAD4;
    let row = head * (HEAD4 * 4u + 1u) * HEAD4 + column % HEAD4;
    let keys = (head + 1u) * (HEAD4 * 4u + 1u) * HEAD4 - HEAD4;
    var sums: array<vec4<f32>, PIXELS>;
    var divisors: array<f32, PIXELS>;
    for (var k = 0u; k < HEAD4; k++) {
        let key = table[keys + k];
        let rows = mat4x4<f32>(
            table[row + k * 4u * HEAD4],
            table[row + (k * 4u + 1u) * HEAD4],
            table[row + (k * 4u + 2u) * HEAD4],
            table[row + (k * 4u + 3u) * HEAD4],
        );
        for (var i = 0u; i < PIXELS; i++) { //#unroll
            let pixel = min(first + i, params.pixels - 1u);
            let query = relu(load_stored(x[params.x_offset + (pixel * params.heads + head) * 3u * HEAD4 + k]));
            sums[i] += rows * query;
            divisors[i] += dot(key, query);
        }
    }
    for (var i = 0u; i < PIXELS; i++) { //#unroll
        if (first + i < params.pixels) {
            let divisor = divisors[i] + params.eps;
            // An infinite divisor would make every value zero: an overflow must stay visible.
            let value = select(vec4<f32>(divisor), sums[i] / divisor, is_finite(divisor));
            y[params.y_offset + (first + i) * params.y_channels4 + column] = store_stored(value);
        }
    }
}
