// storage_packed: four halves in `alias Stored = vec2<u32>`, for devices without `shader-f16`.
// The pack built-ins are core WGSL; values beyond 65504 are undefined there, so they are clamped first.

const STORED_MAX: f32 = 65504.0;

fn load_stored(element: Stored) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(element.x), unpack2x16float(element.y));
}

fn store_stored(value: vec4<f32>) -> Stored {
    let finite = clamp(value, vec4<f32>(-STORED_MAX), vec4<f32>(STORED_MAX));
    return Stored(pack2x16float(finite.xy), pack2x16float(finite.zw));
}
