//! y = activation(x / max(sqrt(|x|^2 + eps), least) * sqrt(c) * gamma[c] + beta[c]), |x| over the
//! channels of a pixel. Perhaps added to y.

use pulp::{Simd, WithSimd};

use crate::cpu::call::{Call, at, at4};
use crate::cpu::lanes::{Activate, dispatch, load, store};
use crate::cpu::parallel::*;
use crate::cpu::stored::Stored;
use crate::kernels::pixel_norm::PixelNormParams;

/// All frames of one pixel.
struct Pixel<'a, 'y, E> {
    p: PixelNormParams,
    x: &'a [E],
    gamma: &'a [f32],
    /// Empty if the norm has no summands.
    beta: &'a [f32],
    activate: Activate,
    sum: bool,
    y: &'y mut [E],
}

pub(super) fn run<E: Stored>(mut call: Call<'_>) {
    let p: PixelNormParams = call.params();
    let arch = call.arch;
    let (activate, sum, has_beta) =
        (Activate::of(call.variant), call.variant.flag("SUM"), call.variant.flag("HAS_BETA"));
    let [x, gamma, beta, y] = call.take();
    let (gamma, beta) = (gamma.read(), if has_beta { beta.read() } else { &[] });
    let x = x.read::<E>()[at4(p.x_offset)..].par_chunks(at(p.frames) * at4(p.channels4)).take(at(p.pixels));
    let y = y.write::<E>()[at4(p.y_offset)..].par_chunks_mut(at4(p.y_pixel4));
    x.zip(y).for_each(|(x, y)| dispatch(arch, Pixel { p, x, gamma, beta, activate, sum, y }));
}

impl<E: Stored> WithSimd for Pixel<'_, '_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { p, x, gamma, beta, activate, sum, y } = self;
        let channels = at4(p.channels4);
        for (x, y) in x.chunks_exact(channels).zip(y.chunks_mut(channels)) {
            let mut squares = simd.splat_f32s(0.0);
            for channel in (0..channels).step_by(S::F32_LANES) {
                let value = load(simd, x, channel, S::F32_LANES.min(channels - channel));
                squares = simd.mul_add_e_f32s(value, value, squares);
            }
            let length = (simd.reduce_sum_f32s(squares) + p.eps).sqrt();
            // An infinite length would make every value zero: an overflow must stay visible.
            let factor = if length.is_finite() { p.root / length.max(p.least) } else { f32::NAN };
            for channel in (0..channels).step_by(S::F32_LANES) {
                let count = S::F32_LANES.min(channels - channel);
                let value = simd.mul_f32s(load(simd, x, channel, count), simd.splat_f32s(factor));
                let mut value = simd.mul_f32s(value, load(simd, gamma, channel, count));
                if !beta.is_empty() {
                    value = simd.add_f32s(value, load(simd, beta, channel, count));
                }
                value = activate.apply(simd, value);
                if sum {
                    value = simd.add_f32s(value, load(simd, y, channel, count));
                }
                store(simd, y, channel, count, value);
            }
        }
    }
}
