// transform_in: one side of B^T d B, for Winograd F(4x4, 3x3), points 0, +-1/sqrt(2), +-sqrt(2),
// infinity. Transforms the channels of one `alias Lane` together.

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
