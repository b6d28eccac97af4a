// output: converts between vec4<f32> and `alias Output`, vec4<f32> or vec4<f16>.

fn load_output(element: Output) -> vec4<f32> {
    return vec4<f32>(element);
}

fn store_output(value: vec4<f32>) -> Output {
    return Output(value);
}
