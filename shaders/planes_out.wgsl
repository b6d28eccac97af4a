// planes_out: y[t][c][h][w] = factor * x[h][w][t][c] + offset. If CLAMP, cut off at -1 and 1. The
// result is planar f32, before any rounding.
//
// One invocation: four channels of one frame of one pixel.

//#parts finite

const WORKGROUP: u32 = 64u;  // invocations per workgroup
const CLAMP: bool = false;   // cut off at -1 and 1

struct Params {
    pixels: u32,     // h * w of this chunk
    channels: u32,   // channels, not padded
    channels4: u32,  // channels / 4, rounded up
    frames: u32,     // frames of x and y
    factor: f32,     // factor of the network's result
    offset: f32,     // summand of the network's result
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;        // [h, w, frames, c / 4]
@group(0) @binding(2) var<storage, read_write> y: array<f32>;        // [frames, c, h, w]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let index = global_id.y * workgroups.x * WORKGROUP + global_id.x;
    let vec4s = params.frames * params.channels4;
    if (index >= params.pixels * vec4s) {
        return;
    }
    // Neighbouring invocations take neighbouring pixels, so that their stores are contiguous.
    let pixel = index % params.pixels;
    let frame = index / params.pixels / params.channels4;
    let channel4 = index / params.pixels % params.channels4;
    var value = fma(x[pixel * vec4s + frame * params.channels4 + channel4], vec4<f32>(params.factor), vec4<f32>(params.offset));
    if (CLAMP) {
        // A value that is not finite stays: an overflow must not pass for a colour.
        value = select(value, clamp(value, vec4<f32>(-1.0), vec4<f32>(1.0)), are_finite(value));
    }
    for (var lane = 0u; lane < 4u; lane++) {
        if (channel4 * 4u + lane < params.channels) {
            y[(frame * params.channels + channel4 * 4u + lane) * params.pixels + pixel] = value[lane];
        }
    }
}
