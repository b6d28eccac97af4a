// activation: the activation function that `const ACTIVATION` selects: 0 none, 1 SiLU, 2 ReLU. Uses
// `relu`.

fn activate(x: vec4<f32>) -> vec4<f32> {
    if (ACTIVATION == 1u) {
        return x / (vec4<f32>(1.0) + exp(-x));
    }
    if (ACTIVATION == 2u) {
        return relu(x);
    }
    return x;
}
