// winograd_in_pairs: the same result as `winograd_in`, to the bit, with channels together in v. An
// invocation takes one tile and two channels, because many GPUs have no registers for 36 times four
// channels.
//
// One workgroup: 4 neighbouring tiles by 16 pairs of channels. Neighbouring invocations, and then
// neighbouring workgroups, have neighbouring channels: together they use whole cache lines.

//#parts storage_pair activation relu finite transform_in winograd_in_params border

const WORKGROUP: u32 = 64u;       // invocations per workgroup
const PAIRS: u32 = 16u;           // pairs of channels of one workgroup
alias Pair = vec2<f32>;           // two channels of the input as kept in memory
alias Transformed = vec2<f32>;    // two channels of v as kept in memory
alias Lane = vec2<f32>;           // channels of one invocation

@group(0) @binding(1) var<storage, read> x: array<Pair>;                 // [rows, w, t, c / 2], 4 c if SHUFFLE
@group(0) @binding(2) var<storage, read> norm: array<vec2<f32>>;         // [t, c / 4, 2, 2]: scale, shift
@group(0) @binding(3) var<storage, read_write> v: array<Transformed>;    // [36, tiles, v_channels4 * 2]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup_id: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let tile = workgroup_id.y * (WORKGROUP / PAIRS) + local_index / PAIRS;
    let channel = workgroup_id.x * PAIRS + local_index % PAIRS;
    let pairs = params.channels4 * 2u;
    if (tile >= params.tiles || channel >= pairs) {
        return;
    }
    let image_y = i32(params.y0 + tile / params.tiles_x * 4u) - 1;
    let image_x = i32((params.tile_x0 + tile % params.tiles_x) * 4u) - 1;

    var scale = vec2<f32>(1.0);
    var shift = vec2<f32>(0.0);
    if (NORMALIZE) {
        let entry = channel / 2u * 4u + channel % 2u;
        scale = norm[entry];
        shift = norm[entry + 2u];
    }

    // If SHUFFLE, a frame of x holds four of d.
    let frame = params.frame4 * 2u;
    let shuffled = channel / frame * 4u * frame + channel % frame;

    var half_done: array<array<Lane, 6>, 6>;
    for (var column = 0; column < 6; column++) { //#unroll
        let px = image_x + column;
        let column_inside = is_inside(px, i32(params.width));
        let inside_x = read_at(px, i32(params.width));
        var d: array<Lane, 6>;
        for (var row = 0; row < 6; row++) { //#unroll
            let py = image_y + row;
            let inside_y = read_at(py, i32(params.height));
            let x_row = place_of(inside_y >> SHIFT, params.x_row0, i32(params.height) >> SHIFT);
            let pixel = u32(x_row * i32(params.x_width) + (inside_x >> SHIFT));
            var index = pixel * pairs + channel;
            if (SHUFFLE) {
                index = pixel * 4u * pairs + (u32(inside_y & 1) * 2u + u32(inside_x & 1)) * frame + shuffled;
            }
            var value = load_pair(x[index]);
            if (NORMALIZE) {
                value = fma(value, scale, shift);
            }
            d[row] = select(vec2<f32>(0.0), activate(value.xyxy).xy, column_inside && is_inside(py, i32(params.height)));
        }
        half_done[column] = transform_in(d[0], d[1], d[2], d[3], d[4], d[5]);
    }
    let row_pairs = params.v_channels4 * 2u;
    let batch = params.tiles * row_pairs;
    let target_index = tile * row_pairs + params.v_channel0 * 2u + channel;
    for (var y = 0u; y < 6u; y++) { //#unroll
        let row = transform_in(half_done[0][y], half_done[1][y], half_done[2][y], half_done[3][y], half_done[4][y], half_done[5][y]);
        for (var x = 0u; x < 6u; x++) { //#unroll
            v[(y * 6u + x) * batch + target_index] = Transformed(row[x] * V_SCALE);
        }
    }
}
