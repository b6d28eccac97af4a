// planes_in: y[h][w][t][c] = factor[k] * x[t][k][h / P][w / P] + offset[k]. If SQUASH, that value
// becomes 3 tanh(. / 3). Padding channels are zero.
//
// Converts an image, or the latents of a diffusion model, from planar f32 to the network's layout
// and range. If the input holds squares of P by P pixels in its channels,
// k = c channel_step + (P (h mod P) + w mod P) place_step. Otherwise P is 1 and k = c. If UNPACKED,
// the input has the pixels of y, x[t][c][h][w], and the factors of k. One invocation: four channels
// of one frame of one pixel.

//#parts storage

const WORKGROUP: u32 = 64u;   // invocations per workgroup
const PATCH: u32 = 1u;        // side P of a square
const SQUASH: bool = false;   // apply 3 tanh(. / 3)
const UNPACKED: bool = false; // x has the pixels of y
alias Stored = vec4<f32>;     // four channels as kept in memory

struct Params {
    pixels: u32,     // h * w of this chunk, which begins with a row that P divides
    width: u32,      // w
    channels: u32,   // channels of y, not padded
    channels4: u32,  // channels of y / 4, rounded up
    plane: u32,      // pixels of one channel of x, which has the rows of this chunk alone
    x_width: u32,    // pixels of a row of x
    frames: u32,     // frames of x and y
    channel_step: u32, // elements from the factor of one channel to the next
    place_step: u32,   // elements from the factor of one place in a square to the next
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;                  // [frames, c P^2, h / P, w / P], or [frames, c, h, w]
@group(0) @binding(2) var<storage, read> factor_offset: array<f32>;      // [2, c P^2]: factor, then offset
@group(0) @binding(3) var<storage, read_write> y: array<Stored>;         // [h, w, frames, c / 4]

fn channel_of(frame: u32, channel: u32, row: u32, column: u32) -> f32 {
    if (channel >= params.channels) {
        return 0.0;
    }
    let place = row % PATCH * PATCH + column % PATCH;
    let source = channel * params.channel_step + place * params.place_step;
    let planes = params.channels * PATCH * PATCH;
    var index = (frame * planes + source) * params.plane + row / PATCH * params.x_width + column / PATCH;
    if (UNPACKED) {
        index = (frame * params.channels + channel) * params.plane + row * params.x_width + column;
    }
    let scaled = fma(x[index], factor_offset[source], factor_offset[planes + source]);
    if (SQUASH) {
        // Beyond 30 the hyperbolic tangent is 1 in f32, and some compilers make NaN of much larger
        // arguments. NaN itself must stay.
        let bounded = select(clamp(scaled, -30.0, 30.0), scaled, (bitcast<u32>(scaled) & 0x7fffffffu) > 0x7f800000u);
        return 3.0 * tanh(bounded / 3.0);
    }
    return scaled;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>) {
    let index = global_id.x;
    if (index >= params.pixels * params.frames * params.channels4) {
        return;
    }
    let frame = index / params.channels4 % params.frames;
    let pixel = index / params.channels4 / params.frames;
    let channel = index % params.channels4 * 4u;
    let row = pixel / params.width;
    let column = pixel % params.width;
    y[index] = store_stored(vec4<f32>(
        channel_of(frame, channel, row, column),
        channel_of(frame, channel + 1u, row, column),
        channel_of(frame, channel + 2u, row, column),
        channel_of(frame, channel + 3u, row, column),
    ));
}
