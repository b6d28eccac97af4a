// storage_pair_packed: two halves in `alias Pair = u32`, for devices without `shader-f16`. Overflow
// and NaN are found by their bits: `storage_packed` says why.

const PAIR_LARGEST: u32 = 0x477fe000u;  // bits of 65504.0: as a half 0x7bff
const PAIR_BEYOND: u32 = 0x477ff000u;   // bits of 65520.0, from which on IEEE rounds to infinity: as a half 0x7c00
const PAIR_INFINITY: u32 = 0x7f800000u; // bits of infinity; the bits of NaN are larger

fn load_pair(element: Pair) -> vec2<f32> {
    return unpack2x16float(element);
}

fn store_pair(value: vec2<f32>) -> Pair {
    let bits = bitcast<vec2<u32>>(value);
    let magnitude = bits & vec2<u32>(0x7fffffffu);
    let finite = bitcast<vec2<f32>>((bits ^ magnitude) | min(magnitude, vec2<u32>(PAIR_LARGEST)));
    let above = select(vec2<u32>(0u), vec2<u32>(1u), magnitude >= vec2<u32>(PAIR_BEYOND))
        + select(vec2<u32>(0u), vec2<u32>(0x200u), magnitude > vec2<u32>(PAIR_INFINITY));
    return pack2x16float(finite) + (above.x | (above.y << 16u));
}
