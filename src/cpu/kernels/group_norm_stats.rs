//! Count, mean and M2 of runs of pixels, per channel.

use pulp::{Simd, WithSimd};

use crate::cpu::call::{Call, at, at4};
use crate::cpu::lanes::{at_least_zero, dispatch, load, store};
use crate::cpu::parallel::*;
use crate::cpu::stored::Stored;
use crate::kernels::group_norm::StatsParams;

/// One run of pixels.
struct Run<'a, 'm, E> {
    /// `[pixels, c]`.
    x: &'a [E],
    channels: usize,
    /// `[c / 4, 3, 4]`.
    moments: &'m mut [f32],
}

pub(super) fn run<E: Stored>(mut call: Call<'_>) {
    let p: StatsParams = call.params();
    let arch = call.arch;
    let [x, moments] = call.take();
    let channels = at4(p.channels4);
    let x = &x.read::<E>()[at4(p.x_offset)..][..at(p.pixels) * channels];
    let moments = moments.write::<f32>()[at(p.moments_offset) * channels * 3..].par_chunks_mut(channels * 3);
    x.par_chunks(at(p.run) * channels)
        .zip(moments)
        .for_each(|(x, moments)| dispatch(arch, Run { x, channels, moments }));
}

impl<E: Stored> WithSimd for Run<'_, '_, E> {
    type Output = ();

    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "a run has few pixels")]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, channels, moments } = self;
        let count = (x.len() / channels) as f32;
        for channel in (0..channels).step_by(S::F32_LANES) {
            let lanes = S::F32_LANES.min(channels - channel);
            // Sums are taken of the difference to the first pixel, so that no digits are lost if
            // |mean| >> deviation.
            let pivot = load(simd, x, channel, lanes);
            let (mut sum, mut squares) = (simd.splat_f32s(0.0), simd.splat_f32s(0.0));
            for pixel in x.chunks_exact(channels) {
                let difference = simd.sub_f32s(load(simd, pixel, channel, lanes), pivot);
                sum = simd.add_f32s(sum, difference);
                squares = simd.mul_add_e_f32s(difference, difference, squares);
            }
            let mut found = [[0.0; 16]; 3];
            for (found, vector) in found.iter_mut().zip([pivot, sum, squares]) {
                store(simd, found, 0, lanes, vector);
            }
            for lane in 0..lanes {
                let place = (channel + lane) / 4 * 12 + (channel + lane) % 4;
                let [pivot, sum, squares] = found.map(|vector| vector[lane]);
                moments[place] = count;
                moments[place + 4] = pivot + sum / count;
                moments[place + 8] = at_least_zero(squares - sum * sum / count);
            }
        }
    }
}
