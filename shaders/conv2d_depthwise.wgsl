// conv2d_depthwise: y[c] = bias[c] + scale * sum over the filter's pixels of activate(x[c]) *
// weight[c], for each channel by itself. If GATED, y has half of these channels: the first half,
// each times the SiLU of its partner in the second half and times gate_scale.
//
// Pixels beyond the image are zero. One invocation: four channels of PIXELS neighbouring pixels, so
// that it reads each pixel of x about SIDE times. Neighbouring invocations take neighbouring
// channels.

//#parts storage output activation relu finite

const WORKGROUP: u32 = 64u;    // invocations per workgroup
const SIDE: u32 = 3u;          // side of the filter: 3 or 5
const PIXELS: u32 = 4u;        // neighbouring pixels per invocation
const COLUMNS: u32 = 6u;       // pixels of a row that they see: PIXELS + SIDE - 1
const ACTIVATION: u32 = 0u;    // of x: 0 none, 1 SiLU, 2 ReLU
const GATED: bool = false;     // multiply the first half of the channels with the SiLU of the second
alias Stored = vec4<f32>;      // x as kept in memory
alias Output = vec4<f32>;      // y as kept in memory

struct Params {
    spans: u32,       // runs of PIXELS pixels in a row
    rows: u32,        // rows of this band
    y0: u32,          // first row of the band, of all rows
    width: u32,       // columns of x and y
    height: u32,      // rows of the whole x and y
    x_row0: u32,      // row that x begins with
    y_row0: u32,      // row that y begins with
    x_channels4: u32, // channels of x / 4
    y_channels4: u32, // channels of y / 4
    scale: f32,       // factor of the sums
    gate_scale: f32,  // factor of what the gate returns
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<Stored>;               // [rows, w, c / 4]
@group(0) @binding(2) var<storage, read> weights: array<vec4<f32>>;      // [SIDE, SIDE, c / 4]
@group(0) @binding(3) var<storage, read> bias: array<vec4<f32>>;         // [c / 4]
@group(0) @binding(4) var<storage, read_write> y: array<Output>;         // [rows, w, c / 4]

// Returns four channels of PIXELS pixels of row `row` from `first` on.
fn filtered(row: u32, first: u32, channel: u32) -> array<vec4<f32>, PIXELS> {
    var sums: array<vec4<f32>, PIXELS>;
    for (var dy = 0u; dy < SIDE; dy++) {
        let seen_row = row + dy;
        if (seen_row >= SIDE / 2u && seen_row - SIDE / 2u < params.height) {
            let start = (seen_row - SIDE / 2u - params.x_row0) * params.width;
            var seen: array<vec4<f32>, COLUMNS>;
            for (var i = 0u; i < COLUMNS; i++) { //#unroll
                let column = first + i;
                if (column >= SIDE / 2u && column - SIDE / 2u < params.width) {
                    let pixel = start + column - SIDE / 2u;
                    seen[i] = activate(load_stored(x[pixel * params.x_channels4 + channel]));
                }
            }
            for (var dx = 0u; dx < SIDE; dx++) { //#unroll
                let weight = weights[(dy * SIDE + dx) * params.x_channels4 + channel];
                for (var i = 0u; i < PIXELS; i++) { //#unroll
                    sums[i] = fma(seen[dx + i], weight, sums[i]);
                }
            }
        }
    }
    for (var i = 0u; i < PIXELS; i++) { //#unroll
        sums[i] = sums[i] * params.scale + bias[channel];
    }
    return sums;
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let index = global_id.y * workgroups.x * WORKGROUP + global_id.x;
    if (index >= params.rows * params.spans * params.y_channels4) {
        return;
    }
    let channel = index % params.y_channels4;
    let span = index / params.y_channels4;
    let row = params.y0 + span / params.spans;
    let first = span % params.spans * PIXELS;
    var values = filtered(row, first, channel);
    if (GATED) {
        let gates = filtered(row, first, channel + params.y_channels4);
        for (var i = 0u; i < PIXELS; i++) { //#unroll
            values[i] *= gates[i] / (vec4<f32>(1.0) + exp(-gates[i])) * params.gate_scale;
        }
    }
    for (var i = 0u; i < PIXELS; i++) { //#unroll
        if (first + i < params.width) {
            let pixel = (row - params.y_row0) * params.width + first + i;
            y[pixel * params.y_channels4 + channel] = store_output(values[i]);
        }
    }
}
