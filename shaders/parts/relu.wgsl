// relu: max(x, 0). A value that is not finite stays as it is, found by its bits. max(NaN, 0) may be
// 0, and an overflow would then pass for a picture.

fn relu(x: vec4<f32>) -> vec4<f32> {
    let infinite = (bitcast<vec4<u32>>(x) & vec4<u32>(0x7f800000u)) == vec4<u32>(0x7f800000u);
    return select(max(x, vec4<f32>(0.0)), x, infinite);
}
