// pixel_norm_apply: y = x / max(sqrt(|x|^2 + eps), least) * sqrt(c) * gamma[c] + beta[c], then the
// activation. |x| is the length over the channels of a pixel. If SUM, the result is added to y.
//
// Each pixel is normalised by itself, without statistics of the image. So the kernel runs on one
// band at a time, before the band is read. A pixel of y may hold more frames than a pixel of x.
//
// LANES invocations take one pixel of one frame: one on CPU drivers; four on GPUs, which then load
// neighbouring channels together. Four sums are added in the same order either way.

//#parts storage activation relu finite

const WORKGROUP: u32 = 64u;    // invocations per workgroup
const LANES: u32 = 4u;         // invocations of a pixel: 1 or 4
const SUMS: u32 = 1u;          // sums of an invocation: 4 / LANES
const ACTIVATION: u32 = 1u;    // after the norm: 0 none, 1 SiLU, 2 ReLU
const HAS_BETA: bool = false;  // add beta
const SUM: bool = false;       // add to y
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
    eps: f32,        // added to its square
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<Stored>;               // [pixels, frames, c / 4]
@group(0) @binding(2) var<storage, read> gamma: array<vec4<f32>>;        // [c / 4]
@group(0) @binding(3) var<storage, read> beta: array<vec4<f32>>;         // [c / 4]
@group(0) @binding(4) var<storage, read_write> y: array<Stored>;         // [pixels of the band, y_pixel4]

var<workgroup> partial_sums: array<vec4<f32>, WORKGROUP>;                // one for each invocation

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    let workgroup = workgroup_id.y * workgroups.x + workgroup_id.x;
    let index = workgroup * (WORKGROUP / LANES) + local_index / LANES;
    let lane = local_index % LANES;
    let is_pixel = index < params.pixels * params.frames;
    let source = params.x_offset + index * params.channels4;
    var sums: array<vec4<f32>, 4>;
    if (is_pixel) {
        for (var k = 0u; k < params.channels4; k += 4u) {
            for (var i = 0u; i < SUMS; i++) { //#unroll
                if (k + i + lane < params.channels4) {
                    let value = load_stored(x[source + k + i + lane]);
                    sums[i] = fma(value, value, sums[i]);
                }
            }
        }
    }
    if (LANES == 4u) {
        partial_sums[local_index] = sums[0];
        workgroupBarrier();
        for (var i = 0u; i < 4u; i++) { //#unroll
            sums[i] = partial_sums[local_index - lane + i];
        }
    }
    if (!is_pixel) {
        return;
    }
    let squares = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    let square = squares.x + squares.y + squares.z + squares.w + params.eps;
    // An infinite length would make every value zero: an overflow must stay visible.
    let factor = select(square, params.root / max(sqrt(square), params.least), is_finite(square));
    let target_index = params.y_offset + index / params.frames * params.y_pixel4 + index % params.frames * params.channels4;
    for (var k = lane; k < params.channels4; k += LANES) {
        var value = load_stored(x[source + k]) * factor * gamma[k];
        if (HAS_BETA) {
            value += beta[k];
        }
        value = activate(value);
        if (SUM) {
            value += load_stored(y[target_index + k]);
        }
        y[target_index + k] = store_stored(value);
    }
}
