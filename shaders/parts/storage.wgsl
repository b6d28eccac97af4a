// storage: converts between `alias Stored`, vec4<f32> or vec4<f16>, and vec4<f32>, if the hardware
// has the type. `storage_packed` is its twin for halves packed in two u32.

fn load_stored(element: Stored) -> vec4<f32> {
    return vec4<f32>(element);
}

fn store_stored(value: vec4<f32>) -> Stored {
    return Stored(value);
}
