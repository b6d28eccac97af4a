// group_norm_apply: y = x * scale[c] + shift[c], then the activation.
//
// For readers that cannot normalise as they load: direct convolutions and linear layers. Runs on
// one band at a time. A pixel of y may hold more frames than a pixel of x. One invocation: four
// channels of one frame of one pixel.

//#parts storage activation relu finite

const WORKGROUP: u32 = 64u;    // invocations per workgroup
const ACTIVATION: u32 = 1u;    // after the norm: 0 none, 1 SiLU, 2 ReLU
alias Stored = vec4<f32>;      // x and y as kept in memory

struct Params {
    elements: u32,   // pixels of this band * channels / 4
    channels4: u32,  // channels / 4, all frames
    x_offset: u32,   // first element of the band in x
    y_offset: u32,   // first element of the band in y
    y_pixel4: u32,   // elements from pixel to pixel of y
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<Stored>;               // [pixels, t, c / 4]
@group(0) @binding(2) var<storage, read> norm: array<vec4<f32>>;         // [t, c / 4, 2]: scale, shift
@group(0) @binding(3) var<storage, read_write> y: array<Stored>;         // [pixels of the band, y_pixel4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let index = global_id.y * workgroups.x * WORKGROUP + global_id.x;
    if (index >= params.elements) {
        return;
    }
    let channel = index % params.channels4;
    let value = fma(load_stored(x[params.x_offset + index]), norm[channel * 2u], norm[channel * 2u + 1u]);
    y[params.y_offset + index / params.channels4 * params.y_pixel4 + channel] = store_stored(activate(value));
}
