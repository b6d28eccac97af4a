// winograd_in_pairs: the same result as `winograd_in`, to the bit, with channels together in v. An
// invocation takes one tile and two channels, because many GPUs have no registers for 36 times four
// channels.
//
// One workgroup: 4 neighbouring tiles by 16 pairs of channels. Neighbouring invocations, and then
// neighbouring workgroups, have neighbouring channels: together they use whole cache lines.

//#parts storage_pair activation relu finite transform_in winograd_in_params winograd_tile border

const WORKGROUP: u32 = 64u;       // invocations per workgroup
const PAIRS: u32 = 16u;           // pairs of channels of one workgroup
const LANES4: u32 = 2u;           // lanes of four channels
alias Pair = vec2<f32>;           // two channels of the input as kept in memory
alias Transformed = vec2<f32>;    // two channels of v as kept in memory
alias Lane = vec2<f32>;           // channels of one invocation

@group(0) @binding(1) var<storage, read> x: array<Pair>;                 // [rows, w, t, c / 2], 4 c if SHUFFLE
@group(0) @binding(2) var<storage, read> norm: array<vec2<f32>>;         // [t, c / 4, 2, 2]: scale, shift
@group(0) @binding(3) var<storage, read_write> v: array<Transformed>;    // [36, tiles, v_channels4 * 2]

fn load_lane(index: u32) -> Lane {
    return load_pair(x[index]);
}

fn activate_lane(value: Lane) -> Lane {
    return activate(value.xyxy).xy;
}

fn store_point(goal: u32, point: u32, value: Lane) {
    v[point * (params.tiles * params.v_channels4 * 2u) + goal] = Transformed(value);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup_id: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let tile = workgroup_id.y * (WORKGROUP / PAIRS) + local_index / PAIRS;
    let channel = workgroup_id.x * PAIRS + local_index % PAIRS;
    if (tile >= params.tiles || channel >= params.channels4 * 2u) {
        return;
    }
    var scale = vec2<f32>(1.0);
    var shift = vec2<f32>(0.0);
    if (NORMALIZE) {
        let entry = channel / 2u * 4u + channel % 2u;
        scale = norm[entry];
        shift = norm[entry + 2u];
    }
    transform_tile(tile, channel, scale, shift, (tile * params.v_channels4 + params.v_channel0) * 2u + channel);
}
