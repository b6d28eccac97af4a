// finite: which numbers are neither infinite nor NaN, found by their bits. Compilers may assume
// that no value is infinite, and then drop a comparison.

fn are_finite(x: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7f800000u)) != vec4<u32>(0x7f800000u);
}

fn is_finite(x: f32) -> bool {
    return are_finite(vec4<f32>(x)).x;
}
