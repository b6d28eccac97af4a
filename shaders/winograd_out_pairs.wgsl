// winograd_out_pairs: the same result as `winograd_out`, to the bit. An invocation takes one tile
// and two channels, because GPUs need many invocations with few registers.
//
// One workgroup: a run of tiles, TILES at a time, and 64 / TILES pairs of channels. Neighbouring
// invocations, and then neighbouring workgroups, have neighbouring channels: together they use
// whole cache lines.

//#parts storage_pair relu finite transform_out winograd_out_params

const WORKGROUP: u32 = 64u;         // invocations per workgroup
const TILES: u32 = 8u;              // tiles of one workgroup at a time
const PAIRS: u32 = 8u;              // pairs of channels of one workgroup
alias Pair = vec2<f32>;             // two channels of the output as kept in memory
alias Transformed = vec2<f32>;      // two channels of m as kept in memory
alias Lane = vec2<f32>;             // channels of one invocation

@group(0) @binding(1) var<storage, read> m: array<Transformed>;              // [36, tiles, t, c / 2]
@group(0) @binding(2) var<storage, read> bias: array<vec2<f32>>;             // [c / 2]
@group(0) @binding(3) var<storage, read_write> y: array<Pair>;               // [rows, w, t, c / 2]
@group(0) @binding(4) var<storage, read_write> moments: array<vec2<f32>>;    // [runs, t, c / 4, 3, 2]: count, mean, M2

var<workgroup> pivots: array<vec2<f32>, PAIRS>;          // first pixel of the run
var<workgroup> tile_sums: array<vec4<f32>, WORKGROUP>;   // for each tile: sum, and sum of squares, of the differences to the pivot

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup_id: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let slot = local_index / PAIRS;
    let pair = local_index % PAIRS;
    let pairs = params.channels4 * 2u;
    let channel = workgroup_id.x * PAIRS + pair;
    let run = workgroup_id.y;
    let tile_row = run / params.runs_x;
    let first = run % params.runs_x * params.run;
    let last = min(first + params.run, params.tiles_x);
    let batch = params.tiles * pairs;
    let image_y = params.y0 + tile_row * 4u;
    // Invocations beyond the run or the channels compute the last ones again, and store nothing.
    let near_channel = min(channel, pairs - 1u);
    let added = bias[near_channel % (params.bias4 * 2u)];

    var count = 0.0;
    var sum = vec2<f32>(0.0);
    var squares = vec2<f32>(0.0);
    for (var tile0 = first; tile0 < last; tile0 += TILES) {
        let tile_x = min(tile0 + slot, last - 1u);
        let stores = tile0 + slot < last && channel < pairs;
        let image_x = (params.tile_x0 + tile_x) * 4u;
        let source = (tile_row * params.tiles_x + tile_x) * pairs + near_channel;
        var half_done: array<array<Lane, 4>, 6>;
        for (var x = 0u; x < 6u; x++) { //#unroll
            half_done[x] = transform_out(
                Lane(m[x * batch + source]),
                Lane(m[(6u + x) * batch + source]),
                Lane(m[(12u + x) * batch + source]),
                Lane(m[(18u + x) * batch + source]),
                Lane(m[(24u + x) * batch + source]),
                Lane(m[(30u + x) * batch + source]),
            );
        }
        // All old values of y are read before any is written: a compiler may not change the order
        // of a read and a write.
        var values: array<array<Lane, 4>, 4>;
        for (var row = 0u; row < 4u; row++) { //#unroll
            let transformed = transform_out(half_done[0][row], half_done[1][row], half_done[2][row], half_done[3][row], half_done[4][row], half_done[5][row]);
            for (var column = 0u; column < 4u; column++) { //#unroll
                var value = fma(transformed[column], vec2<f32>(params.scale), added);
                if (ACCUMULATE) {
                    let near_y = min(image_y + row, params.height - 1u);
                    let near_x = min(image_x + column, params.width - 1u);
                    value += load_pair(y[(u32(i32(near_y) - params.y_row0) * params.width + near_x) * pairs + near_channel]);
                }
                if (RELU) {
                    value = relu(value.xyxy).xy;
                }
                values[row][column] = value;
            }
        }
        if (MOMENTS) {
            if (tile0 == first) {
                if (slot == 0u) {
                    pivots[pair] = values[0][0];
                }
                workgroupBarrier();
            }
        }
        var tile_sum = vec2<f32>(0.0);
        var tile_squares = vec2<f32>(0.0);
        for (var row = 0u; row < 4u; row++) { //#unroll
            for (var column = 0u; column < 4u; column++) { //#unroll
                if (image_y + row < params.height && image_x + column < params.width) {
                    if (stores) {
                        y[(u32(i32(image_y + row) - params.y_row0) * params.width + image_x + column) * pairs + channel] = store_pair(values[row][column]);
                    }
                    if (MOMENTS) {
                        let difference = values[row][column] - pivots[pair];
                        tile_sum += difference;
                        tile_squares = fma(difference, difference, tile_squares);
                    }
                }
            }
        }
        if (MOMENTS) {
            tile_sums[local_index] = vec4<f32>(tile_sum, tile_squares);
            workgroupBarrier();
            let rows = min(4u, params.height - image_y);
            for (var tile = tile0; tile < min(tile0 + TILES, last); tile++) {
                let sums = tile_sums[(tile - tile0) * PAIRS + pair];
                sum += sums.xy;
                squares += sums.zw;
                count += f32(rows * min(4u, params.width - (params.tile_x0 + tile) * 4u));
            }
            workgroupBarrier();
        }
    }
    if (MOMENTS && slot == 0u && channel < pairs) {
        let target_index = ((params.moments_offset + run) * params.channels4 + channel / 2u) * 6u + channel % 2u;
        let divisor = max(count, 1.0);
        moments[target_index] = vec2<f32>(count);
        moments[target_index + 2u] = pivots[pair] + sum / divisor;
        moments[target_index + 4u] = relu((squares - sum * sum / divisor).xyxy).xy;
    }
}
