// unfold: y[p][t][ky][kx][c] = x[S oy + ky - before][S ox + kx - before][t][c] for output pixel p =
// (oy, ox), zero outside. It writes the pixels of x that a 3x3 filter sees, so that a product with
// the filter is the convolution.
//
// For convolutions that move by more than a pixel: with S = 2, y has 9 / 4 of the elements of x. A
// pixel of y may hold more frames than a pixel of x. One invocation: four channels of one tap of
// one frame of one output pixel.

const WORKGROUP: u32 = 64u;  // invocations per workgroup
const STRIDE: u32 = 2u;      // S: pixels of x from one output to the next
const BEFORE: u32 = 0u;      // rows and columns of zeros before the first of x
alias Stored = vec4<f32>;    // x and y as kept in memory

struct Params {
    pixels: u32,     // output pixels of this band
    first: u32,      // first output pixel of the band, row by row in the whole output
    width: u32,      // columns of the output
    x_width: u32,    // columns of x
    x_height: u32,   // rows of the whole x
    x_row0: u32,     // row that the stored x starts with
    channels4: u32,  // channels / 4
    frames: u32,     // frames of x
    frames_y: u32,   // frames of y
    frame0: u32,     // first frame of y that this launch writes
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<Stored>;               // [rows, w, frames, c / 4]
@group(0) @binding(2) var<storage, read_write> y: array<Stored>;         // [pixels, frames_y, 3, 3, c / 4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let index = global_id.y * workgroups.x * WORKGROUP + global_id.x;
    if (index >= params.pixels * params.frames * 9u * params.channels4) {
        return;
    }
    let channel = index % params.channels4;
    let tap = index / params.channels4 % 9u;
    let band_pixel = index / params.channels4 / 9u / params.frames;
    let frame = index / params.channels4 / 9u % params.frames;
    let pixel = params.first + band_pixel;
    let row = i32(pixel / params.width * STRIDE + tap / 3u) - i32(BEFORE);
    let column = i32(pixel % params.width * STRIDE + tap % 3u) - i32(BEFORE);
    let inside = row >= 0 && row < i32(params.x_height) && column >= 0 && column < i32(params.x_width);
    let source_row = u32(clamp(row, i32(params.x_row0), i32(params.x_height) - 1)) - params.x_row0;
    let source_column = u32(clamp(column, 0, i32(params.x_width) - 1));
    let value = x[((source_row * params.x_width + source_column) * params.frames + frame) * params.channels4 + channel];
    let target_index = ((band_pixel * params.frames_y + params.frame0 + frame) * 9u + tap) * params.channels4 + channel;
    y[target_index] = select(Stored(), value, inside);
}
