// storage_pair: converts between `alias Pair`, vec2<f32> or vec2<f16>, and vec2<f32>, if the
// hardware has the type. `storage_pair_packed` is its twin for two halves packed in a u32.

fn load_pair(element: Pair) -> vec2<f32> {
    return vec2<f32>(element);
}

fn store_pair(value: vec2<f32>) -> Pair {
    return Pair(value);
}
