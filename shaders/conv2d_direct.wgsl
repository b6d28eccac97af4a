// conv2d_direct: y = relu?(3x3 convolution of x, stride 1, padding 1 as in `border`,
// + bias). Register tile over pixels of a row.
//
// For convolutions where Winograd does not pay: few input or output channels. With taps in time,
// frame t of y is made of frames t to t + TAPS_T - 1 of x. One invocation: TILE_X neighbouring
// pixels of one frame by 4 * TILE_N output channels. Neighbouring workgroups have the same pixels,
// so that these are still in a cache for all their channels and frames.

//#parts storage output relu finite border

const WORKGROUP: u32 = 64u;       // invocations per workgroup
const TILE_X: u32 = 4u;           // pixels of a row per invocation
const TILE_N: u32 = 1u;           // vec4 output channels per invocation
const TILE_X_HALO: u32 = 6u;      // TILE_X + 2
const TAPS_T: u32 = 1u;           // taps in time
const SHIFT: u32 = 0u;            // 1: the input is half the size of the image (nearest neighbour)
const RELU: bool = false;         // max(y, 0)
alias Stored = vec4<f32>;         // x and w as kept in memory
alias Output = vec4<f32>;         // y as kept in memory

struct Params {
    spans: u32,      // groups of TILE_X pixels in a row
    rows: u32,       // image rows of this band
    y0: u32,         // first image row of this band
    width: u32,      // image width (after doubling), pixels
    height: u32,     // image height (after doubling), pixels
    x_width: u32,    // width of x, pixels
    x_row0: i32,     // image row (before doubling) that x starts with
    y_row0: i32,     // image row that y starts with
    c_in4: u32,      // input channels / 4
    c_out4: u32,     // output channels / 4
    frames_in: u32,  // frames of x, at least frames + TAPS_T - 1
    frames: u32,     // frames of y; the first is made of the first frames of x
    scale: f32,      // factor of the product
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<Stored>;               // [rows, w, frames_in, c_in / 4]
@group(0) @binding(2) var<storage, read> w: array<Stored>;               // [TAPS_T, 3, 3, c_in, c_out / 4]
@group(0) @binding(3) var<storage, read> bias: array<vec4<f32>>;         // [c_out / 4]
@group(0) @binding(4) var<storage, read_write> y: array<Output>;         // [rows, w, frames, c_out / 4]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup_id: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let span = workgroup_id.y * WORKGROUP + local_index;
    if (span >= params.spans * params.rows) {
        return;
    }
    let image_y = i32(params.y0 + span / params.spans);
    let image_x = i32(span % params.spans * TILE_X);
    let blocks = (params.c_out4 + TILE_N - 1u) / TILE_N;
    let column0 = workgroup_id.x % blocks * TILE_N;
    let frame = workgroup_id.x / blocks;
    let x_pixel4 = params.frames_in * params.c_in4;
    // A last block that is only partly there reads its last column again. Its results are not
    // stored.
    let last_column = min(TILE_N, params.c_out4 - column0) - 1u;

    var acc: array<vec4<f32>, TILE_X * TILE_N>;
    for (var dt = 0u; dt < TAPS_T; dt++) {
        for (var ky = 0u; ky < 3u; ky++) {
            let py = image_y + i32(ky) - 1;
            if (is_inside(py, i32(params.height))) {
                let x_row = place_of(read_at(py, i32(params.height)) >> SHIFT, params.x_row0, i32(params.height) >> SHIFT);
                let row = x_row * i32(params.x_width);
                var source: array<u32, TILE_X_HALO>;
                var inside: array<bool, TILE_X_HALO>;
                for (var i = 0u; i < TILE_X_HALO; i++) { //#unroll
                    let px = image_x + i32(i) - 1;
                    inside[i] = is_inside(px, i32(params.width));
                    source[i] = u32(row + (read_at(px, i32(params.width)) >> SHIFT)) * x_pixel4 + (frame + dt) * params.c_in4;
                }
                for (var k = 0u; k < params.c_in4; k++) {
                    var pixels: array<vec4<f32>, TILE_X_HALO>;
                    for (var i = 0u; i < TILE_X_HALO; i++) { //#unroll
                        pixels[i] = select(vec4<f32>(0.0), load_stored(x[source[i] + k]), inside[i]);
                    }
                    for (var kx = 0u; kx < 3u; kx++) { //#unroll
                        let w_index = (((dt * 3u + ky) * 3u + kx) * params.c_in4 + k) * 4u * params.c_out4 + column0;
                        for (var s = 0u; s < 4u; s++) { //#unroll
                            for (var j = 0u; j < TILE_N; j++) { //#unroll
                                let weight = load_stored(w[w_index + s * params.c_out4 + min(j, last_column)]);
                                for (var i = 0u; i < TILE_X; i++) { //#unroll
                                    acc[i * TILE_N + j] = fma(vec4<f32>(pixels[i + kx][s]), weight, acc[i * TILE_N + j]);
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    let y_row = u32(image_y - params.y_row0) * params.width;
    for (var i = 0u; i < TILE_X; i++) { //#unroll
        let px = u32(image_x) + i;
        if (px < params.width) {
            for (var j = 0u; j < TILE_N; j++) { //#unroll
                let column = column0 + j;
                if (column < params.c_out4) {
                    var value = fma(acc[i * TILE_N + j], vec4<f32>(params.scale), bias[column]);
                    if (RELU) {
                        value = relu(value);
                    }
                    y[((y_row + px) * params.frames + frame) * params.c_out4 + column] = store_output(value);
                }
            }
        }
    }
}
