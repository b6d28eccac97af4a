// image_check: y[check + group] = 1 + the first pixel that is not finite among the group's pixels,
// or 0 if all are finite.
//
// For pictures that stay on the device: `image_out` writes NOT_FINITE for such a pixel, and the
// host reads only these words. One workgroup: one word. An invocation steps over the pixels by the
// number of all invocations.

const WORKGROUP: u32 = 64u;  // invocations per workgroup
const GROUPS: u32 = 64u;     // workgroups

const NOT_FINITE: u32 = 0x00fe01feu;  // as `image_out` has it

struct Params {
    pixels: u32,  // h * w of this chunk, of all frames
    width: u32,   // w
    stride: u32,  // pixels from one row of y to the next
    check: u32,   // first word after the pixels
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;  // [frames, h, stride] RGBA8, then [GROUPS]

var<workgroup> found: array<u32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) workgroup_id: vec3<u32>,
    @builtin(local_invocation_index) local_index: u32,
) {
    var first = 0u;
    for (var pixel = workgroup_id.x * WORKGROUP + local_index; pixel < params.pixels; pixel += GROUPS * WORKGROUP) {
        let color = y[pixel / params.width * params.stride + pixel % params.width];
        if (first == 0u && color == NOT_FINITE) {
            first = pixel + 1u;
        }
    }
    found[local_index] = first;
    workgroupBarrier();
    if (local_index == 0u) {
        for (var other = 1u; other < WORKGROUP; other++) {
            let candidate = found[other];
            if (candidate != 0u && (first == 0u || candidate < first)) {
                first = candidate;
            }
        }
        y[params.check + workgroup_id.x] = first;
    }
}
