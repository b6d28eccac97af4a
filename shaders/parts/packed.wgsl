// packed: converts four numbers to halves in two u32, for devices without `shader-f16`. WGSL leaves
// the direction in which `pack2x16float` rounds to the driver, and its result undefined beyond
// 65504. It also lets compilers assume that every float is finite. So the conversion works on bits:
// it rounds to the nearest half, ties to even, to infinity beyond the largest, and NaN stays NaN.

fn pack_halves(value: vec4<f32>) -> vec2<u32> {
    let bits = bitcast<vec4<u32>>(value);
    let magnitude = bits & vec4<u32>(0x7fffffffu);
    // Adds half of the last place less one, and one more if that place is odd. The constant also
    // has the difference of the exponents, -112 << 23. 0x7c00 is infinity.
    let rounded = magnitude + ((magnitude >> vec4<u32>(13u)) & vec4<u32>(1u)) + vec4<u32>(0xc8000fffu);
    let normal = min(rounded >> vec4<u32>(13u), vec4<u32>(0x7c00u));
    // The last place of 1/2 is that of a subnormal half, so a sum with 1/2 rounds to it.
    let subnormal = bitcast<vec4<u32>>(bitcast<vec4<f32>>(magnitude) + 0.5) - vec4<u32>(0x3f000000u);
    // From 2^-14 on halves are normal. Bits beyond those of infinity are NaN's.
    let number = select(normal, subnormal, magnitude < vec4<u32>(0x38800000u));
    let halves = select(number, vec4<u32>(0x7e00u), magnitude > vec4<u32>(0x7f800000u))
        | ((bits >> vec4<u32>(16u)) & vec4<u32>(0x8000u));
    return halves.xz | (halves.yw << vec2<u32>(16u));
}
