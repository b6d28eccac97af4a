// output_packed: four halves in `alias Output = vec2<u32>`, for devices without `shader-f16`.

const OUTPUT_MAX: f32 = 65504.0;

fn load_output(element: Output) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(element.x), unpack2x16float(element.y));
}

fn store_output(value: vec4<f32>) -> Output {
    let finite = clamp(value, vec4<f32>(-OUTPUT_MAX), vec4<f32>(OUTPUT_MAX));
    return Output(pack2x16float(finite.xy), pack2x16float(finite.zw));
}
