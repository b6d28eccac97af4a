// copy_frames: y[p][i] = x[p][i] for some elements of each pixel. It copies frames of one tensor to
// another, bit by bit.
//
// One invocation: one element.

const WORKGROUP: u32 = 64u;  // invocations per workgroup
alias Stored = vec4<f32>;    // x and y as kept in memory

struct Params {
    pixels: u32,    // pixels of x and y
    vec4s: u32,     // elements of each pixel that are copied
    x_offset: u32,  // first element to read in x
    x_pixel4: u32,  // elements from pixel to pixel of x
    y_offset: u32,  // first element to write in y
    y_pixel4: u32,  // elements from pixel to pixel of y
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<Stored>;               // [pixels, x_pixel4]
@group(0) @binding(2) var<storage, read_write> y: array<Stored>;         // [pixels, y_pixel4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let index = global_id.y * workgroups.x * WORKGROUP + global_id.x;
    if (index >= params.pixels * params.vec4s) {
        return;
    }
    let pixel = index / params.vec4s;
    let element = index % params.vec4s;
    y[params.y_offset + pixel * params.y_pixel4 + element] = x[params.x_offset + pixel * params.x_pixel4 + element];
}
