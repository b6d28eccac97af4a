// transform_weights: G w G^T of four 3x3 filters at once, for Winograd F(4x4, 3x3), points as in
// `transform_in`. They round half as much as the textbook points 0, +-1, +-2, at the same cost.
// Uses `load_tap` and `store_point` of the kernel.
//
//     |  1     0     0   |
//     | -2/3  -b/3  -1/3 |
// G = | -2/3   b/3  -1/3 |
//     |  1/6   b/6   1/3 |
//     |  1/6  -b/6   1/3 |
//     |  0     0     1   |

const B: f32 = 1.4142135623730951;

fn transform(x0: vec4<f32>, x1: vec4<f32>, x2: vec4<f32>) -> array<vec4<f32>, 6> {
    let even = x0 * (2.0 / 3.0) + x2 / 3.0;
    let odd = x1 * (B / 3.0);
    let far_even = x0 / 6.0 + x2 / 3.0;
    let far_odd = x1 * (B / 6.0);
    return array<vec4<f32>, 6>(x0, -even - odd, odd - even, far_even + far_odd, far_even - far_odd, x2);
}

// Transforms the filters whose first taps are at `source`. Point i goes to index `goal` of batch
// entry i of u.
fn transform_filters(source: u32, goal: u32) {
    var half_done: array<array<vec4<f32>, 6>, 3>;
    for (var x = 0u; x < 3u; x++) { //#unroll
        half_done[x] = transform(load_tap(source, x), load_tap(source, 3u + x), load_tap(source, 6u + x));
    }
    for (var y = 0u; y < 6u; y++) { //#unroll
        let row = transform(half_done[0][y], half_done[1][y], half_done[2][y]);
        for (var x = 0u; x < 6u; x++) { //#unroll
            store_point(goal, y * 6u + x, row[x]);
        }
    }
}
