// pixel_norm_apply: y = x / max(|x|, least) * sqrt(c) * gamma[c], then the activation. |x| is the
// length over the channels of a pixel.
//
// Each pixel is normalised by itself, without statistics of the image. So the kernel runs on one
// band at a time, before the band is read. A pixel of y may hold more frames than a pixel of x. One
// invocation: one pixel of one frame.

//#parts storage activation relu

const WORKGROUP: u32 = 64u;    // invocations per workgroup
const ACTIVATION: u32 = 1u;    // after the norm: 0 none, 1 SiLU, 2 ReLU
alias Stored = vec4<f32>;      // x and y as kept in memory

struct Params {
    pixels: u32,     // pixels of this band
    channels4: u32,  // channels / 4; padding channels are zero
    frames: u32,     // frames of a pixel of x
    x_offset: u32,   // first element of the band in x
    y_offset: u32,   // first element of the band in y
    y_pixel4: u32,   // elements from pixel to pixel of y
    root: f32,       // sqrt(c)
    least: f32,      // least length of a pixel
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<Stored>;               // [pixels, frames, c / 4]
@group(0) @binding(2) var<storage, read> gamma: array<vec4<f32>>;        // [c / 4]
@group(0) @binding(3) var<storage, read_write> y: array<Stored>;         // [pixels of the band, y_pixel4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let index = global_id.y * workgroups.x * WORKGROUP + global_id.x;
    if (index >= params.pixels * params.frames) {
        return;
    }
    let source = params.x_offset + index * params.channels4;
    let target_index = params.y_offset + index / params.frames * params.y_pixel4 + index % params.frames * params.channels4;
    var squares = vec4<f32>(0.0);
    for (var k = 0u; k < params.channels4; k++) {
        let value = load_stored(x[source + k]);
        squares = fma(value, value, squares);
    }
    let factor = params.root / max(sqrt(squares.x + squares.y + squares.z + squares.w), params.least);
    for (var k = 0u; k < params.channels4; k++) {
        let value = load_stored(x[source + k]) * factor * gamma[k];
        y[target_index + k] = store_stored(activate(value));
    }
}
