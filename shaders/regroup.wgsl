// regroup: y = scale * means or copies of the channels of x, at a size that differs by the factor
// `side` and with another number of frames. If SUM, y keeps its old value as a summand.
//
// A channel of the larger tensor has `places` numbers: side * side pixels of several frames, which
// are one frame of the smaller tensor. Frames come first in their order, then rows, then columns.
// The larger tensor lacks its first `missing` frames: means take zeros or the first frame for them,
// and nothing is copied to them.
// The places of one channel follow one another, or if BY_PLACE the channels of one place. A mean
// takes `count` successive numbers of x. A copy gives each number of x to `count` successive
// numbers of y, or all numbers to y `count` times.
// One invocation: four channels of one frame of one pixel of y.

//#parts storage output relu finite

const WORKGROUP: u32 = 64u;    // invocations per workgroup
const COPIES: bool = false;    // copies, instead of means
const BY_PLACE: bool = false;  // the channels of one place are neighbours
const SUM: bool = false;       // add to y
const RELU: bool = false;      // cut off below 0, before the sum
alias Stored = vec4<f32>;      // x as kept in memory
alias Output = vec4<f32>;      // y as kept in memory

struct Params {
    pixels: u32,       // pixels of y
    width: u32,        // columns of y
    frames: u32,       // frames of y
    channels: u32,     // channels of y, not padded
    channels4: u32,    // channels of y / 4, rounded up
    x_width: u32,      // columns of x
    x_frames: u32,     // frames of x
    x_channels4: u32,  // channels of x / 4, rounded up
    x_offset: u32,     // first element of x; its row belongs to the first row of y
    y_offset: u32,     // first element of y, at the first place of a channel
    y_row: u32,        // elements from one row of y to the next
    side: u32,         // factor between the sizes: 1, 2 or 4
    column_step: u32,  // places from column to column: 1, or `side` if columns come before rows
    places: u32,       // places of a channel
    missing: u32,      // frames that the larger tensor does not have in front
    repeats_first: u32,  // 1 if missing frames are copies of the first, else 0
    tiled: u32,        // 1 if copies of a number are apart, else 0
    count: u32,        // numbers of a mean, or copies of a number
    scale: f32,        // factor of the result
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<Stored>;               // [h, w, t, c / 4]
@group(0) @binding(2) var<storage, read_write> y: array<Output>;         // [h, w, t, c / 4]

fn channel_of_x(row: u32, column: u32, frame: u32, channel: u32) -> f32 {
    let pixel = (row * params.x_width + column) * params.x_frames + frame;
    return load_stored(x[params.x_offset + pixel * params.x_channels4 + channel / 4u])[channel % 4u];
}

fn copied(row: u32, column: u32, frame: u32, channel: u32) -> f32 {
    let side = params.side;
    let frames = params.places / (side * side);
    let at = frame + params.missing;
    let pixel = row % side * (side / params.column_step) + column % side * params.column_step;
    let place = at % frames * side * side + pixel;
    let number = select(channel * params.places + place, place * params.channels + channel, BY_PLACE);
    let tiled = number % (params.channels * params.places / params.count);
    return channel_of_x(row / side, column / side, at / frames, select(number / params.count, tiled, params.tiled == 1u));
}

fn mean(row: u32, column: u32, frame: u32, channel: u32) -> f32 {
    let side = params.side;
    let frames = params.places / (side * side);
    let x_channels = params.channels * params.count / params.places;
    var sum = 0.0;
    for (var number = channel * params.count; number < (channel + 1u) * params.count; number++) {
        let place = select(number % params.places, number / x_channels, BY_PLACE);
        let at = frame * frames + place / (side * side);
        if (at >= params.missing || params.repeats_first == 1u) {
            let down = place / (side / params.column_step) % side;
            let right = place / params.column_step % side;
            let source = select(number / params.places, number % x_channels, BY_PLACE);
            sum += channel_of_x(row * side + down, column * side + right, max(at, params.missing) - params.missing, source);
        }
    }
    return sum / f32(params.count);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let index = global_id.y * workgroups.x * WORKGROUP + global_id.x;
    if (index >= params.pixels * params.frames * params.channels4) {
        return;
    }
    let frame = index / params.channels4 % params.frames;
    let pixel = index / (params.channels4 * params.frames);
    let row = pixel / params.width;
    let column = pixel % params.width;
    var value = vec4<f32>(0.0);
    for (var i = 0u; i < 4u; i++) {
        let channel = index % params.channels4 * 4u + i;
        if (channel < params.channels) {
            if (COPIES) {
                value[i] = copied(row, column, frame, channel);
            } else {
                value[i] = mean(row, column, frame, channel);
            }
        }
    }
    value *= params.scale;
    if (RELU) {
        value = relu(value);
    }
    let target_index = params.y_offset + row * params.y_row + index % (params.width * params.frames * params.channels4);
    if (SUM) {
        value += load_output(y[target_index]);
    }
    y[target_index] = store_output(value);
}
