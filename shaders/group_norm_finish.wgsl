// group_norm_finish: merges the moments of all runs and channels of a group. Writes, for each
// channel, scale = weight / sqrt(variance + eps) and shift = bias - mean * scale. The variance is
// biased, as in torch's GroupNorm.
//
// One workgroup: one group of one frame. Merges are pairwise and exact, including the between-run
// term. There are few groups and many runs. So a workgroup has as many invocations as it may, each
// with several reads in flight; otherwise it would wait for memory most of the time.

//#parts moments finite

const WORKGROUP: u32 = 64u;  // invocations per workgroup
const READS: u32 = 4u;       // runs that an invocation reads at once

struct Params {
    runs: u32,                // runs of pixels
    channels: u32,            // channels, not padded
    channels4: u32,           // channels / 4, rounded up
    channels_per_group: u32,  // channels of one group
    frames: u32,              // frames, each with statistics of its own
    eps: f32,                 // added to the variance
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> moments: array<f32>;            // [runs, frames, c / 4, 3, 4]: count, mean, M2
@group(0) @binding(2) var<storage, read> weight: array<f32>;             // [c]
@group(0) @binding(3) var<storage, read> bias: array<f32>;               // [c]
@group(0) @binding(4) var<storage, read_write> norm: array<f32>;         // [frames, c / 4, 2, 4]: scale, shift

// The sums of pairs halve the count.
const_assert countOneBits(WORKGROUP) == 1u;
var<workgroup> partial: array<Moments, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) workgroup_id: vec3<u32>, @builtin(local_invocation_index) local_index: u32) {
    let first_channel = workgroup_id.x * params.channels_per_group;
    let frame = workgroup_id.y;
    var mine = Moments(0.0, 0.0, 0.0);
    let items = params.runs * params.channels_per_group;
    for (var first = local_index; first < items; first += WORKGROUP * READS) {
        var loaded: array<Moments, READS>;
        for (var j = 0u; j < READS; j++) { //#unroll
            let i = min(first + j * WORKGROUP, items - 1u);
            let channel = first_channel + i % params.channels_per_group;
            let run = i / params.channels_per_group;
            let source = ((run * params.frames + frame) * params.channels4 + channel / 4u) * 12u + channel % 4u;
            loaded[j] = Moments(moments[source], moments[source + 4u], moments[source + 8u]);
        }
        for (var j = 0u; j < READS; j++) { //#unroll
            if (first + j * WORKGROUP < items) {
                mine = merge_moments(mine, loaded[j]);
            }
        }
    }
    partial[local_index] = mine;
    for (var stride = WORKGROUP / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if (local_index < stride) {
            partial[local_index] = merge_moments(partial[local_index], partial[local_index + stride]);
        }
    }
    workgroupBarrier();
    let total = partial[0];
    // An infinite variance would make every value the bias: an overflow must stay visible.
    let inverse_deviation = select(total.m2, inverseSqrt(total.m2 / total.count + params.eps), is_finite(total.m2));
    for (var i = local_index; i < params.channels_per_group; i += WORKGROUP) {
        let channel = first_channel + i;
        let scale = weight[channel] * inverse_deviation;
        let target_index = (frame * params.channels4 + channel / 4u) * 8u + channel % 4u;
        norm[target_index] = scale;
        norm[target_index + 4u] = fma(-total.mean, scale, bias[channel]);
    }
    // The padding channels of the last vec4 belong to no group: they must stay zero.
    let channel = params.channels + local_index;
    if (workgroup_id.x == 0u && channel < params.channels4 * 4u) {
        let target_index = (frame * params.channels4 + channel / 4u) * 8u + channel % 4u;
        norm[target_index] = 0.0;
        norm[target_index + 4u] = 0.0;
    }
}
