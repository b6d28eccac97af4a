// group_norm_stats: count, mean and M2 of runs of pixels, per channel. group_norm_finish merges
// them.
//
// For tensors whose producer does not write its moments itself.
// One invocation: four channels of one run of pixels.

//#parts storage relu finite

const WORKGROUP: u32 = 64u; // invocations per workgroup
alias Stored = vec4<f32>;   // x as kept in memory

struct Params {
    pixels: u32,         // pixels of this chunk
    run: u32,            // pixels of one run
    runs: u32,           // runs of this chunk
    x_offset: u32,       // first element of the chunk's own rows in x
    channels4: u32,      // channels / 4
    moments_offset: u32, // first run of this chunk in moments
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<Stored>;                   // [pixels, c / 4]
@group(0) @binding(2) var<storage, read_write> moments: array<vec4<f32>>;    // [runs, c / 4, 3]: count, mean, M2

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>) {
    if (global_id.x >= params.runs * params.channels4) {
        return;
    }
    let run = global_id.x / params.channels4;
    let channel = global_id.x % params.channels4;
    let first = run * params.run;
    let last = min(first + params.run, params.pixels);
    // Sums are taken of the difference to the run's first pixel, so that no digits are lost if
    // |mean| >> deviation.
    let pivot = load_stored(x[params.x_offset + first * params.channels4 + channel]);
    var sum = vec4<f32>(0.0);
    var squares = vec4<f32>(0.0);
    for (var pixel = first; pixel < last; pixel++) {
        let difference = load_stored(x[params.x_offset + pixel * params.channels4 + channel]) - pivot;
        sum += difference;
        squares = fma(difference, difference, squares);
    }
    let count = f32(last - first);
    let target_index = ((params.moments_offset + run) * params.channels4 + channel) * 3u;
    moments[target_index] = vec4<f32>(count);
    moments[target_index + 1u] = pivot + sum / count;
    moments[target_index + 2u] = relu(squares - sum * sum / count);
}
