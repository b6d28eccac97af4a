//! One block of keys of a streaming softmax, row by row.

use pulp::{Simd, WithSimd};

use crate::cpu::call::{Call, at, at4};
use crate::cpu::lanes::{dispatch, exp, load, store};
use crate::cpu::parallel::*;
use crate::cpu::stored::Stored;
use crate::kernels::attention::SoftmaxParams;

const LOWEST: f32 = -3.0e38;

/// The scores of one query.
struct Query<'a, 'p, E> {
    p: SoftmaxParams,
    /// `[keys]`.
    scores: &'a [f32],
    /// `[row]`: zero after the last key.
    probabilities: &'p mut [E],
    /// Largest score so far, and the sum of the probabilities.
    state: &'p mut [f32; 2],
    /// Factor of everything that was added up before.
    row_factor: &'p mut f32,
}

pub(super) fn run<E: Stored>(mut call: Call<'_>) {
    let p: SoftmaxParams = call.params();
    let arch = call.arch;
    let queries = at(call.workgroups[0]);
    let [scores, probabilities, state, row_factors] = call.take();
    let scores = scores.read::<f32>().par_chunks(at4(p.row));
    let probabilities = probabilities.write::<E>().par_chunks_mut(at4(p.row));
    let state = state.write::<f32>().as_chunks_mut::<2>().0.par_iter_mut();
    let rows = scores.zip(probabilities).zip(state.zip(row_factors.write::<f32>())).take(queries);
    rows.for_each(|((scores, probabilities), (state, row_factor))| {
        dispatch(arch, Query { p, scores: &scores[..at(p.keys)], probabilities, state, row_factor });
    });
}

impl<E: Stored> WithSimd for Query<'_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { p, scores, probabilities, state, row_factor } = self;
        let [max_before, sum_before] = if p.first == 1 { [LOWEST, 0.0] } else { *state };
        let scale = simd.splat_f32s(p.scale);
        let (vectors, rest) = S::as_simd_f32s(scores);
        let mut highest = simd.splat_f32s(LOWEST);
        for vector in vectors {
            highest = simd.max_f32s(highest, simd.mul_f32s(*vector, scale));
        }
        let mut maximum = simd.reduce_max_f32s(highest).max(max_before);
        for value in rest {
            maximum = maximum.max(value * p.scale);
        }
        let maxima = simd.splat_f32s(maximum);
        let mut sum = simd.splat_f32s(0.0);
        // 0, or NaN if a score is not finite, which `exp` would hide.
        let mut finite = simd.splat_f32s(0.0);
        for start in (0..scores.len()).step_by(S::F32_LANES) {
            let count = S::F32_LANES.min(scores.len() - start);
            let value = simd.sub_f32s(simd.mul_f32s(load(simd, scores, start, count), scale), maxima);
            finite = simd.add_f32s(finite, simd.sub_f32s(value, value));
            store(simd, probabilities, start, count, exp(simd, value));
            sum = simd.add_f32s(sum, load(simd, probabilities, start, count));
        }
        probabilities[scores.len()..scores.len().next_multiple_of(4)].fill(E::zeroed());
        let sum = simd.reduce_sum_f32s(sum) + simd.reduce_sum_f32s(finite);
        *row_factor = if p.first == 1 { 0.0 } else { (max_before - maximum).exp() };
        *state = [maximum, sum_before.mul_add(*row_factor, sum)];
    }
}
