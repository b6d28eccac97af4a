// ceiling: nothing but fused multiply-adds, in as many independent chains as hide their latency. What the adapter can do at most.

@group(0) @binding(0) var<storage, read_write> data: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>) {
    let seed = data[global_id.x];
    let factor = vec4<f32>(0.999) + seed * 1e-6;
    var a = seed;
    var b = seed + vec4<f32>(1.0);
    var c = seed + vec4<f32>(2.0);
    var d = seed + vec4<f32>(3.0);
    for (var i = 0u; i < 1024u; i++) {
        a = fma(a, factor, seed);
        b = fma(b, factor, seed);
        c = fma(c, factor, seed);
        d = fma(d, factor, seed);
        a = fma(a, factor, seed);
        b = fma(b, factor, seed);
        c = fma(c, factor, seed);
        d = fma(d, factor, seed);
    }
    data[global_id.x] = a + b + c + d;
}
