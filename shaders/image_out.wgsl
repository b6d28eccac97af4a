// image_out: converts the network's image to RGBA8 for display.
//
// RGBA8 (or BGRA8) = round(clamp(x * 0.5 + 0.5, 0, 1) * 255), half to even, as in diffusers'
// VaeImageProcessor.postprocess, with x = factor * input + offset. The fourth channel is alpha if
// ALPHA, else alpha is 255. A pixel with a value that is not finite becomes NOT_FINITE: the host
// then returns an error. A transparent pixel that would be NOT_FINITE by itself gets one level more
// of green. Rows may be longer than the image is wide, as textures require. Frames are stacked from
// top to bottom. One invocation: one pixel of one frame.

//#parts finite

const WORKGROUP: u32 = 64u;  // invocations per workgroup
const BGRA: bool = false;    // BGRA8 instead of RGBA8
const ALPHA: bool = false;   // the fourth channel of x is alpha

// Equal in RGBA8 and BGRA8. `image_check` and src/vae/pixels.rs look for it.
const NOT_FINITE: u32 = 0x00fe01feu;

struct Params {
    pixels: u32,  // h * w of this chunk
    width: u32,   // w
    stride: u32,  // pixels from one row of y to the next
    frames: u32,  // frames of x and y
    factor: f32,  // factor of the network's result
    offset: f32,  // summand of the network's result
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;        // [h, w, frames]: r, g, b, alpha or unused
@group(0) @binding(2) var<storage, read_write> y: array<u32>;        // [frames, h, stride] RGBA8

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>) {
    let index = global_id.x;
    if (index >= params.pixels * params.frames) {
        return;
    }
    // Neighbouring invocations take neighbouring pixels, so that their stores are contiguous.
    let source = index % params.pixels * params.frames + index / params.pixels;
    var color = fma(x[source], vec4<f32>(params.factor), vec4<f32>(params.offset));
    if (!ALPHA) {
        color.w = 1.0;
    }
    let level = vec4<u32>(round(clamp(fma(color, vec4<f32>(0.5), vec4<f32>(0.5)), vec4<f32>(0.0), vec4<f32>(1.0)) * 255.0));
    var pixel = select(level.x, level.z, BGRA) | (level.y << 8u) | (select(level.z, level.x, BGRA) << 16u) | (level.w << 24u);
    if (pixel == NOT_FINITE) {
        pixel += 0x100u;
    }
    y[index / params.width * params.stride + index % params.width] = select(NOT_FINITE, pixel, all(are_finite(color)));
}
