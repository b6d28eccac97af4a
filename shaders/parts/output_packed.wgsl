// output_packed: four halves in `alias Output = vec2<u32>`. Uses `packed`.

fn load_output(element: Output) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(element.x), unpack2x16float(element.y));
}

fn store_output(value: vec4<f32>) -> Output {
    return pack_halves(value);
}
