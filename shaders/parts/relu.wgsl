// relu: max(x, 0). A value that is not finite stays as it is: max(NaN, 0) may be 0, and an overflow
// would then pass for a picture. Uses `finite`.

fn relu(x: vec4<f32>) -> vec4<f32> {
    return select(x, max(x, vec4<f32>(0.0)), are_finite(x));
}
