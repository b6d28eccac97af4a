// winograd_out: y = A^T m A, 4x4 pixels of each tile, for Winograd F(4x4, 3x3), points 0,
// +-1/sqrt(2), +-sqrt(2), infinity.
//
// y = relu?(y_old? + scale * (A^T m A) + bias). If MOMENTS, it also writes the moments of each run
// of tiles, per channel, for the group norm that reads y next. One invocation: four channels of a
// run of neighbouring tiles in one row of tiles.

//#parts storage relu finite transform_out winograd_out_params

const WORKGROUP: u32 = 64u;         // invocations per workgroup
alias Stored = vec4<f32>;           // the output as kept in memory
alias Transformed = vec4<f32>;      // m as kept in memory
alias Lane = vec4<f32>;             // channels of one invocation

@group(0) @binding(1) var<storage, read> m: array<Transformed>;              // [36, tiles, t, c / 4]
@group(0) @binding(2) var<storage, read> bias: array<vec4<f32>>;             // [c / 4]
@group(0) @binding(3) var<storage, read_write> y: array<Stored>;             // [rows, w, t, c / 4]
@group(0) @binding(4) var<storage, read_write> moments: array<vec4<f32>>;    // [runs, t, c / 4, 3]: count, mean, M2

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>) {
    if (global_id.x >= params.runs * params.channels4) {
        return;
    }
    let run = global_id.x / params.channels4;
    let channel = global_id.x % params.channels4;
    let tile_row = run / params.runs_x;
    let first = run % params.runs_x * params.run;
    let last = min(first + params.run, params.tiles_x);
    let batch = params.tiles * params.channels4;
    let added = bias[channel % params.bias4];

    // Sums are taken of the difference to the run's first pixel, so that no digits are lost if
    // |mean| >> deviation. Sums of each tile come first, then their total: the order of
    // `winograd_out_pairs`.
    var count = 0.0;
    var pivot = vec4<f32>(0.0);
    var sum = vec4<f32>(0.0);
    var squares = vec4<f32>(0.0);

    for (var tile_x = first; tile_x < last; tile_x++) {
        let source = (tile_row * params.tiles_x + tile_x) * params.channels4 + channel;
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
        var tile_sum = vec4<f32>(0.0);
        var tile_squares = vec4<f32>(0.0);
        for (var row = 0u; row < 4u; row++) { //#unroll
            let values = transform_out(half_done[0][row], half_done[1][row], half_done[2][row], half_done[3][row], half_done[4][row], half_done[5][row]);
            let image_y = params.y0 + tile_row * 4u + row;
            for (var column = 0u; column < 4u; column++) { //#unroll
                let image_x = (params.tile_x0 + tile_x) * 4u + column;
                if (image_y < params.height && image_x < params.width) {
                    let index = (u32(i32(image_y) - params.y_row0) * params.width + image_x) * params.channels4 + channel;
                    var value = fma(values[column], vec4<f32>(params.scale), added);
                    if (ACCUMULATE) {
                        value += load_stored(y[index]);
                    }
                    if (RELU) {
                        value = relu(value);
                    }
                    y[index] = store_stored(value);
                    if (MOMENTS) {
                        if (count == 0.0) {
                            pivot = value;
                        }
                        let difference = value - pivot;
                        count += 1.0;
                        tile_sum += difference;
                        tile_squares = fma(difference, difference, tile_squares);
                    }
                }
            }
        }
        sum += tile_sum;
        squares += tile_squares;
    }
    if (MOMENTS) {
        let target_index = ((params.moments_offset + run) * params.channels4 + channel) * 3u;
        let divisor = max(count, 1.0);
        moments[target_index] = vec4<f32>(count);
        moments[target_index + 1u] = pivot + sum / divisor;
        moments[target_index + 2u] = relu(squares - sum * sum / divisor);
    }
}
