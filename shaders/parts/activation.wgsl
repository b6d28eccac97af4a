// activation: SiLU, x * sigmoid(x).

fn silu(x: vec4<f32>) -> vec4<f32> {
    return x / (vec4<f32>(1.0) + exp(-x));
}
