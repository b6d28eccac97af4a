// transform_out: one side of A^T m A, for Winograd F(4x4, 3x3), points as in `transform_in`.
// Transforms the channels of one `alias Lane` together. Row i has the powers i of the points.
//
//       | 1   1    1    1    1   0 |
// A^T = | 0   a   -a    b   -b   0 |
//       | 0   1/2  1/2  2    2   0 |
//       | 0   a^3 -a^3  b^3 -b^3 1 |

const OUT_A: f32 = 0.7071067811865476;
const OUT_B: f32 = 1.4142135623730951;
const OUT_A3: f32 = 0.3535533905932738; // OUT_A^3
const OUT_B3: f32 = 2.8284271247461903; // OUT_B^3

fn transform_out(m0: Lane, m1: Lane, m2: Lane, m3: Lane, m4: Lane, m5: Lane) -> array<Lane, 4> {
    let near_sum = m1 + m2;
    let near_difference = m1 - m2;
    let far_sum = m3 + m4;
    let far_difference = m3 - m4;
    return array<Lane, 4>(
        m0 + near_sum + far_sum,
        OUT_A * near_difference + OUT_B * far_difference,
        0.5 * near_sum + 2.0 * far_sum,
        OUT_A3 * near_difference + OUT_B3 * far_difference + m5,
    );
}
