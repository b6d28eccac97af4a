// winograd_in: v = B^T d B of 6x6 input tiles, for Winograd F(4x4, 3x3), points 0, +-1/sqrt(2),
// +-sqrt(2), infinity.
//
// d is the input that the convolution reads; `border` has the pixels beyond. If NORMALIZE, it
// is group-normalised; if ACTIVATION, activated. If SHIFT is 1, it is doubled in size, by nearest
// neighbour or, if SHUFFLE, from four times the channels. Tiles step by 4 pixels. The channels of
// all frames follow one another in x and in v, and v may hold more than this launch writes. One
// invocation: four channels of one tile. One workgroup: 16 neighbouring tiles by 16 channels, so
// that its reads (channels together) and its writes (tiles together) are contiguous.

//#parts storage activation relu finite transform_in winograd_in_params winograd_tile border

const WORKGROUP: u32 = 64u;       // invocations per workgroup
const WORKGROUP_TILES: u32 = 16u; // tiles of one workgroup
const LANES4: u32 = 1u;           // lanes of four channels
alias Stored = vec4<f32>;         // the input as kept in memory
alias Transformed = vec4<f32>;    // v as kept in memory
alias Lane = vec4<f32>;           // channels of one invocation

@group(0) @binding(1) var<storage, read> x: array<Stored>;               // [rows, w, t, c / 4], 4 c if SHUFFLE
@group(0) @binding(2) var<storage, read> norm: array<vec4<f32>>;         // [t, c / 4, 2]: scale, shift
@group(0) @binding(3) var<storage, read_write> v: array<Transformed>;    // [36, v_channels4, tiles]

fn load_lane(index: u32) -> Lane {
    return load_stored(x[index]);
}

fn activate_lane(value: Lane) -> Lane {
    return activate(value);
}

fn store_point(goal: u32, point: u32, value: Lane) {
    v[point * (params.tiles * params.v_channels4) + goal] = Transformed(value);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup_id: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let tile = workgroup_id.x * WORKGROUP_TILES + local_index % WORKGROUP_TILES;
    let channel = workgroup_id.y * (WORKGROUP / WORKGROUP_TILES) + local_index / WORKGROUP_TILES;
    if (tile >= params.tiles || channel >= params.channels4) {
        return;
    }
    var scale = vec4<f32>(1.0);
    var shift = vec4<f32>(0.0);
    if (NORMALIZE) {
        scale = norm[channel * 2u];
        shift = norm[channel * 2u + 1u];
    }
    transform_tile(tile, channel, scale, shift, (params.v_channel0 + channel) * params.tiles + tile);
}
