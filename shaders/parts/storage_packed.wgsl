// storage_packed: four halves in `alias Stored = vec2<u32>`, for devices without `shader-f16`.
// WGSL leaves `pack2x16float` undefined beyond 65504, and lets compilers assume that every float is
// finite. So the conversion works on bits. Values that round to more than 65504 become infinity,
// and NaN stays NaN, as in the hardware's own halves.

const STORED_LARGEST: u32 = 0x477fe000u;  // bits of 65504.0: as a half 0x7bff
const STORED_BEYOND: u32 = 0x477ff000u;   // bits of 65520.0, from which on IEEE rounds to infinity: as a half 0x7c00
const STORED_INFINITY: u32 = 0x7f800000u; // bits of infinity; the bits of NaN are larger

fn load_stored(element: Stored) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(element.x), unpack2x16float(element.y));
}

fn store_stored(value: vec4<f32>) -> Stored {
    let bits = bitcast<vec4<u32>>(value);
    let magnitude = bits & vec4<u32>(0x7fffffffu);
    let finite = bitcast<vec4<f32>>((bits ^ magnitude) | min(magnitude, vec4<u32>(STORED_LARGEST)));
    // Distance above the largest half: infinity is the next number, NaN is further up.
    let above = select(vec4<u32>(0u), vec4<u32>(1u), magnitude >= vec4<u32>(STORED_BEYOND))
        + select(vec4<u32>(0u), vec4<u32>(0x200u), magnitude > vec4<u32>(STORED_INFINITY));
    return Stored(
        pack2x16float(finite.xy) + (above.x | (above.y << 16u)),
        pack2x16float(finite.zw) + (above.z | (above.w << 16u)),
    );
}
