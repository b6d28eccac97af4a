// storage_pair_packed: two halves in `alias Pair = u32`. Uses `packed`.

fn load_pair(element: Pair) -> vec2<f32> {
    return unpack2x16float(element);
}

fn store_pair(value: vec2<f32>) -> Pair {
    return pack_halves(value.xyxy).x;
}
