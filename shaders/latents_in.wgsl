// latents_in: y[h][w][c] = x[c][h][w] * factor[c] + offset[c], zero in the padding channels.
//
// Takes the diffusion model's latents as they come (planar f32) to the decoder's layout and range.
// One invocation: four channels of one pixel.

//#parts storage

const WORKGROUP: u32 = 64u; // invocations per workgroup
alias Stored = vec4<f32>;   // four channels as kept in memory

struct Params {
    pixels: u32,     // h * w of this chunk
    channels: u32,   // latent channels, not padded
    channels4: u32,  // channels / 4, rounded up
    plane: u32,      // h * w of the whole latent: distance between two channels of x
    x_offset: u32,   // first pixel of this chunk in x
    y_offset: u32,   // first element of this chunk's own rows in y
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;                  // [c, h, w]
@group(0) @binding(2) var<storage, read> factor_offset: array<f32>;      // [2, c]: factor, then offset
@group(0) @binding(3) var<storage, read_write> y: array<Stored>;         // [h, w, c / 4]

fn latent(channel: u32, pixel: u32) -> f32 {
    if (channel >= params.channels) {
        return 0.0;
    }
    let value = x[channel * params.plane + params.x_offset + pixel];
    return fma(value, factor_offset[channel], factor_offset[params.channels + channel]);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>) {
    let index = global_id.x;
    if (index >= params.pixels * params.channels4) {
        return;
    }
    let pixel = index / params.channels4;
    let channel = index % params.channels4 * 4u;
    let value = vec4<f32>(latent(channel, pixel), latent(channel + 1u, pixel), latent(channel + 2u, pixel), latent(channel + 3u, pixel));
    y[params.y_offset + index] = store_stored(value);
}
