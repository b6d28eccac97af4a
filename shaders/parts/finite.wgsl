// is_finite: true for a number that is neither infinite nor NaN, found by its bits. Compilers may
// assume that no value is infinite, and then drop a comparison.

fn is_finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}
