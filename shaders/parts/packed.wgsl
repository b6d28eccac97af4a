// packed: converts four numbers to halves in two u32, for devices without `shader-f16`. WGSL leaves
// `pack2x16float` undefined beyond 65504, and lets compilers assume that every float is finite. So
// the conversion works on bits. Values that round to more than 65504 become infinity, and NaN stays
// NaN, as in the hardware's own halves.

const LARGEST_HALF: u32 = 0x477fe000u;  // bits of 65504.0: as a half 0x7bff
const BEYOND_HALVES: u32 = 0x477ff000u; // bits of 65520.0, from which on IEEE rounds to infinity: as a half 0x7c00
const INFINITY: u32 = 0x7f800000u;      // bits of infinity; the bits of NaN are larger

fn pack_halves(value: vec4<f32>) -> vec2<u32> {
    let bits = bitcast<vec4<u32>>(value);
    let magnitude = bits & vec4<u32>(0x7fffffffu);
    let finite = bitcast<vec4<f32>>((bits ^ magnitude) | min(magnitude, vec4<u32>(LARGEST_HALF)));
    // Distance above the largest half: infinity is the next number, NaN is further up.
    let above = select(vec4<u32>(0u), vec4<u32>(1u), magnitude >= vec4<u32>(BEYOND_HALVES))
        + select(vec4<u32>(0u), vec4<u32>(0x200u), magnitude > vec4<u32>(INFINITY));
    return vec2<u32>(
        pack2x16float(finite.xy) + (above.x | (above.y << 16u)),
        pack2x16float(finite.zw) + (above.z | (above.w << 16u)),
    );
}
