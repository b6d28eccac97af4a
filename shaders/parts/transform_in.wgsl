// transform_in: one side of B^T d B, for Winograd F(4x4, 3x3): Lavin and Gray, "Fast Algorithms for
// Convolutional Neural Networks", 2015, with points 0, +-a, +-b, infinity; a = 1/sqrt(2) and
// b = sqrt(2). Transforms the channels of one `alias Lane` together.
//
//       | 1   0  -5/2  0   1   0 |
//       | 0  -b  -2    a   1   0 |    Rows 1 and 2, and rows 3 and 4, differ in the sign of the odd
// B^T = | 0   b  -2   -a   1   0 |    columns: the sums of even and of odd columns are shared.
//       | 0  -a  -1/2  b   1   0 |
//       | 0   a  -1/2 -b   1   0 |
//       | 0   1   0  -5/2  0   1 |

const IN_A: f32 = 0.7071067811865476;
const IN_B: f32 = 1.4142135623730951;

// Factor at which v is stored, see HALVES.
const V_SCALE: f32 = select(1.0, 0.03125, HALVES);

fn transform_in(d0: Lane, d1: Lane, d2: Lane, d3: Lane, d4: Lane, d5: Lane) -> array<Lane, 6> {
    let near_even = d4 - 2.0 * d2;
    let near_odd = IN_A * d3 - IN_B * d1;
    let far_even = d4 - 0.5 * d2;
    let far_odd = IN_B * d3 - IN_A * d1;
    return array<Lane, 6>(
        d0 - 2.5 * d2 + d4,
        near_even + near_odd,
        near_even - near_odd,
        far_even + far_odd,
        far_even - far_odd,
        d1 - 2.5 * d3 + d5,
    );
}
