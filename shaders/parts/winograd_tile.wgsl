// winograd_tile: reads a tile of 6x6 pixels of d and writes its B^T d B, for one lane of channels.
// Uses `border`, `transform_in`, `winograd_in_params`, and of the kernel: LANES4, lanes of four
// channels, and `load_lane`, `activate_lane` and `store_point`.

// Transforms tile `tile` of lane `channel`. The norm of the lane is `scale` and `shift`. Point i
// goes to index `goal` of batch entry i of v.
fn transform_tile(tile: u32, channel: u32, scale: Lane, shift: Lane, goal: u32) {
    let image_y = i32(params.y0 + tile / params.tiles_x * 4u) - 1;
    let image_x = i32((params.tile_x0 + tile % params.tiles_x) * 4u) - 1;
    let lanes = params.channels4 * LANES4;
    // If SHUFFLE, a frame of x holds four of d.
    let frame = params.frame4 * LANES4;
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
            var index = pixel * lanes + channel;
            if (SHUFFLE) {
                index = pixel * 4u * lanes + (u32(inside_y & 1) * 2u + u32(inside_x & 1)) * frame + shuffled;
            }
            var value = load_lane(index);
            if (NORMALIZE) {
                value = fma(value, scale, shift);
            }
            d[row] = select(Lane(), activate_lane(value), column_inside && is_inside(py, i32(params.height)));
        }
        half_done[column] = transform_in(d[0], d[1], d[2], d[3], d[4], d[5]);
    }
    for (var y = 0u; y < 6u; y++) { //#unroll
        let row = transform_in(half_done[0][y], half_done[1][y], half_done[2][y], half_done[3][y], half_done[4][y], half_done[5][y]);
        for (var x = 0u; x < 6u; x++) { //#unroll
            store_point(goal, y * 6u + x, row[x] * V_SCALE);
        }
    }
}
