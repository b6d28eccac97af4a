// storage_pair: two stored channels <-> vec2<f32>, where the hardware has the type.
// Serves `alias Pair`, vec2<f32> or vec2<f16>. `storage_pair_packed` is its twin for two halves
// packed in a u32.

fn load_pair(element: Pair) -> vec2<f32> {
    return vec2<f32>(element);
}

fn store_pair(value: vec2<f32>) -> Pair {
    return Pair(value);
}
