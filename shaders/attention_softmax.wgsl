// attention_softmax: one block of keys of a streaming softmax, row by row.
//
// With s the scores of this block times scale: max' = max(max, s), p = exp(s - max'), sum' = sum *
// f + sum(p), f = exp(max - max'). f goes to row_factors: the next product multiplies the
// accumulated values by it. One workgroup: one query.

//#parts storage

const WORKGROUP: u32 = 64u; // invocations per workgroup
alias Stored = vec4<f32>;   // probabilities as kept in memory

const LOWEST: f32 = -3.0e38;

struct Params {
    keys: u32,        // keys of this block
    row: u32,         // vec4 elements between two rows of scores and probabilities
    scale: f32,       // 1 / sqrt(head dimension)
    first: u32,       // 1 for the first block of keys: max and sum start anew
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> scores: array<vec4<f32>>;                 // [queries, row]
@group(0) @binding(2) var<storage, read_write> probabilities: array<Stored>;       // [queries, row]
@group(0) @binding(3) var<storage, read_write> state: array<vec2<f32>>;            // [queries]: max, sum
@group(0) @binding(4) var<storage, read_write> row_factors: array<f32>;            // [queries]

// The sums of pairs halve the count.
const_assert countOneBits(WORKGROUP) == 1u;
var<workgroup> partial: array<f32, WORKGROUP>;

fn score(index: u32, start: u32) -> vec4<f32> {
    let key = vec4<u32>(index * 4u) + vec4<u32>(0u, 1u, 2u, 3u);
    return select(vec4<f32>(LOWEST), scores[start + index] * params.scale, key < vec4<u32>(params.keys));
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup_id: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let query = workgroup_id.x;
    let start = query * params.row;
    let keys4 = (params.keys + 3u) / 4u;
    var before = vec2<f32>(LOWEST, 0.0);
    if (params.first == 0u) {
        before = state[query];
    }

    var highest = vec4<f32>(LOWEST);
    for (var i = local_index; i < keys4; i += WORKGROUP) {
        highest = max(highest, score(i, start));
    }
    partial[local_index] = max(max(highest.x, highest.y), max(highest.z, highest.w));
    for (var stride = WORKGROUP / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if (local_index < stride) {
            partial[local_index] = max(partial[local_index], partial[local_index + stride]);
        }
    }
    workgroupBarrier();
    let maximum = max(before.x, partial[0]);
    workgroupBarrier();

    var sum = vec4<f32>(0.0);
    for (var i = local_index; i < keys4; i += WORKGROUP) {
        // The sum is of the rounded probabilities, which the product will see.
        let kept = store_stored(exp(score(i, start) - vec4<f32>(maximum)));
        probabilities[start + i] = kept;
        sum += load_stored(kept);
    }
    partial[local_index] = sum.x + sum.y + sum.z + sum.w;
    for (var stride = WORKGROUP / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if (local_index < stride) {
            partial[local_index] += partial[local_index + stride];
        }
    }
    if (local_index == 0u) {
        var factor = 0.0;
        if (params.first == 0u) {
            factor = exp(before.x - maximum);
        }
        state[query] = vec2<f32>(maximum, fma(before.y, factor, partial[0]));
        row_factors[query] = factor;
    }
}
