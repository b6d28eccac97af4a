// ceiling: nothing but fused multiply-adds, in as many independent chains as hide their latency.
// What the adapter can do at most. 64 are written out for each turn of the loop: a short loop
// measures the loop.

@group(0) @binding(0) var<storage, read_write> data: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>) {
    let seed = data[global_id.x];
    let factor = vec4<f32>(0.999) + seed * 1e-6;
    var a = seed + vec4<f32>(0.0);
    var b = seed + vec4<f32>(1.0);
    var c = seed + vec4<f32>(2.0);
    var d = seed + vec4<f32>(3.0);
    var e = seed + vec4<f32>(4.0);
    var f = seed + vec4<f32>(5.0);
    var g = seed + vec4<f32>(6.0);
    var h = seed + vec4<f32>(7.0);
    for (var i = 0u; i < 128u; i++) {
        a = fma(a, factor, seed);
        b = fma(b, factor, seed);
        c = fma(c, factor, seed);
        d = fma(d, factor, seed);
        e = fma(e, factor, seed);
        f = fma(f, factor, seed);
        g = fma(g, factor, seed);
        h = fma(h, factor, seed);
        a = fma(a, factor, seed);
        b = fma(b, factor, seed);
        c = fma(c, factor, seed);
        d = fma(d, factor, seed);
        e = fma(e, factor, seed);
        f = fma(f, factor, seed);
        g = fma(g, factor, seed);
        h = fma(h, factor, seed);
        a = fma(a, factor, seed);
        b = fma(b, factor, seed);
        c = fma(c, factor, seed);
        d = fma(d, factor, seed);
        e = fma(e, factor, seed);
        f = fma(f, factor, seed);
        g = fma(g, factor, seed);
        h = fma(h, factor, seed);
        a = fma(a, factor, seed);
        b = fma(b, factor, seed);
        c = fma(c, factor, seed);
        d = fma(d, factor, seed);
        e = fma(e, factor, seed);
        f = fma(f, factor, seed);
        g = fma(g, factor, seed);
        h = fma(h, factor, seed);
        a = fma(a, factor, seed);
        b = fma(b, factor, seed);
        c = fma(c, factor, seed);
        d = fma(d, factor, seed);
        e = fma(e, factor, seed);
        f = fma(f, factor, seed);
        g = fma(g, factor, seed);
        h = fma(h, factor, seed);
        a = fma(a, factor, seed);
        b = fma(b, factor, seed);
        c = fma(c, factor, seed);
        d = fma(d, factor, seed);
        e = fma(e, factor, seed);
        f = fma(f, factor, seed);
        g = fma(g, factor, seed);
        h = fma(h, factor, seed);
        a = fma(a, factor, seed);
        b = fma(b, factor, seed);
        c = fma(c, factor, seed);
        d = fma(d, factor, seed);
        e = fma(e, factor, seed);
        f = fma(f, factor, seed);
        g = fma(g, factor, seed);
        h = fma(h, factor, seed);
        a = fma(a, factor, seed);
        b = fma(b, factor, seed);
        c = fma(c, factor, seed);
        d = fma(d, factor, seed);
        e = fma(e, factor, seed);
        f = fma(f, factor, seed);
        g = fma(g, factor, seed);
        h = fma(h, factor, seed);
    }
    data[global_id.x] = a + b + c + d + e + f + g + h;
}
