// pixel_norm_apply: y = x / max(|x|, least) * sqrt(c) * gamma[c], |x| over the channels of a pixel, then the activation.
//
// Each pixel by itself, so it needs no statistics of the image: it runs on one band at a time, before whoever reads the band.
// One invocation: one pixel.

//#parts storage activation relu

const WORKGROUP: u32 = 64u;    // invocations per workgroup
const ACTIVATION: u32 = 1u;    // after the norm: 0 none, 1 SiLU, 2 ReLU
alias Stored = vec4<f32>;      // x and y as kept in memory

struct Params {
    pixels: u32,     // pixels of this band
    channels4: u32,  // channels / 4; padding channels are zero
    x_offset: u32,   // first element of the band in x
    root: f32,       // sqrt(c)
    least: f32,      // least length of a pixel
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<Stored>;               // [pixels, c / 4]
@group(0) @binding(2) var<storage, read> gamma: array<vec4<f32>>;        // [c / 4]
@group(0) @binding(3) var<storage, read_write> y: array<Stored>;         // [pixels of the band, c / 4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let pixel = global_id.y * workgroups.x * WORKGROUP + global_id.x;
    if (pixel >= params.pixels) {
        return;
    }
    let source = params.x_offset + pixel * params.channels4;
    var squares = vec4<f32>(0.0);
    for (var k = 0u; k < params.channels4; k++) {
        let value = load_stored(x[source + k]);
        squares = fma(value, value, squares);
    }
    let factor = params.root / max(sqrt(squares.x + squares.y + squares.z + squares.w), params.least);
    for (var k = 0u; k < params.channels4; k++) {
        let value = load_stored(x[source + k]) * factor * gamma[k];
        y[pixel * params.channels4 + k] = store_stored(activate(value));
    }
}
