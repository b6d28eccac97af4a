// storage_packed: four halves in `alias Stored = vec2<u32>`. Uses `packed`.

fn load_stored(element: Stored) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(element.x), unpack2x16float(element.y));
}

fn store_stored(value: vec4<f32>) -> Stored {
    return pack_halves(value);
}
