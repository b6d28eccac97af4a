// winograd_in: v = B^T d B of 6x6 input tiles, for Winograd F(4x4, 3x3), points 0, +-1/sqrt(2),
// +-sqrt(2), infinity.
//
// d is the input that the convolution reads; `border` has the pixels beyond. If NORMALIZE, it
// is group-normalised; if ACTIVATION, activated. If SHIFT is 1, it is doubled in size, by nearest
// neighbour or, if SHUFFLE, from four times the channels. Tiles step by 4 pixels. The channels of
// all frames follow one another in x and in v, and v may hold more than this launch writes. One
// invocation: four channels of one tile. One workgroup: 16 neighbouring tiles by 16 channels, so
// that its reads (channels together) and its writes (tiles together) are contiguous.

//#parts storage activation relu finite transform_in winograd_in_params border

const WORKGROUP: u32 = 64u;       // invocations per workgroup
const WORKGROUP_TILES: u32 = 16u; // tiles of one workgroup
alias Stored = vec4<f32>;         // the input as kept in memory
alias Transformed = vec4<f32>;    // v as kept in memory
alias Lane = vec4<f32>;           // channels of one invocation

@group(0) @binding(1) var<storage, read> x: array<Stored>;               // [rows, w, t, c / 4], 4 c if SHUFFLE
@group(0) @binding(2) var<storage, read> norm: array<vec4<f32>>;         // [t, c / 4, 2]: scale, shift
@group(0) @binding(3) var<storage, read_write> v: array<Transformed>;    // [36, v_channels4, tiles]

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup_id: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let tile = workgroup_id.x * WORKGROUP_TILES + local_index % WORKGROUP_TILES;
    let channel = workgroup_id.y * (WORKGROUP / WORKGROUP_TILES) + local_index / WORKGROUP_TILES;
    if (tile >= params.tiles || channel >= params.channels4) {
        return;
    }
    let image_y = i32(params.y0 + tile / params.tiles_x * 4u) - 1;
    let image_x = i32((params.tile_x0 + tile % params.tiles_x) * 4u) - 1;

    var scale = vec4<f32>(1.0);
    var shift = vec4<f32>(0.0);
    if (NORMALIZE) {
        scale = norm[channel * 2u];
        shift = norm[channel * 2u + 1u];
    }

    // If SHUFFLE, a frame of x holds four of d.
    let shuffled = channel / params.frame4 * 4u * params.frame4 + channel % params.frame4;

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
            var index = pixel * params.channels4 + channel;
            if (SHUFFLE) {
                index = pixel * 4u * params.channels4 + (u32(inside_y & 1) * 2u + u32(inside_x & 1)) * params.frame4 + shuffled;
            }
            var value = load_stored(x[index]);
            if (NORMALIZE) {
                value = fma(value, scale, shift);
            }
            d[row] = select(vec4<f32>(0.0), activate(value), column_inside && is_inside(py, i32(params.height)));
        }
        half_done[column] = transform_in(d[0], d[1], d[2], d[3], d[4], d[5]);
    }
    let batch = params.tiles * params.v_channels4;
    let target_index = (params.v_channel0 + channel) * params.tiles + tile;
    for (var y = 0u; y < 6u; y++) { //#unroll
        let row = transform_in(half_done[0][y], half_done[1][y], half_done[2][y], half_done[3][y], half_done[4][y], half_done[5][y]);
        for (var x = 0u; x < 6u; x++) { //#unroll
            v[(y * 6u + x) * batch + target_index] = Transformed(row[x] * V_SCALE);
        }
    }
}
