//! Vectors of neighbouring channels, and functions of them.
//!
//! Everything between `Arch::dispatch` and an instruction must be inlined. A function that is not
//! inlined has no vector instructions, and passes vectors through memory. So these functions are
//! `inline(always)`, and kernels use loops where closures, `array::from_fn` and `array::map` would
//! read better.

use pulp::{Arch, Simd, WithSimd};

use super::stored::Stored;
use crate::kernels::Variant;

/// Runs `work` with the vectors of `arch`.
#[cfg(not(target_arch = "wasm32"))]
#[inline(always)]
pub(super) fn dispatch<W: WithSimd>(arch: Arch, work: W) -> W::Output {
    arch.dispatch(work)
}

/// Runs `work` with vectors and fused multiply-adds, which `xtask-bindgen` splits, as not every
/// browser has them: decision 028. Another copy of the kernels, for processors without vectors,
/// would only make the module larger. The work is a function of its own: within its caller it would
/// be slower by a third, as engines compile small functions best.
#[cfg(target_arch = "wasm32")]
#[inline(never)]
pub(super) fn dispatch<W: WithSimd>(arch: Arch, work: W) -> W::Output {
    match arch {
        Arch::RelaxedSimd(simd) => Simd::vectorize(simd, work),
        _ => unreachable!("the module has vectors"),
    }
}

/// Returns the lanes of a vector.
pub(super) fn count(arch: Arch) -> usize {
    struct Lanes;
    impl WithSimd for Lanes {
        type Output = usize;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            S::F32_LANES
        }
    }
    dispatch(arch, Lanes)
}

/// Loads `count` channels from `at` on, at most a whole vector. Missing lanes are zero.
#[inline(always)]
pub(super) fn load<S: Simd, E: Stored>(simd: S, values: &[E], at: usize, count: usize) -> S::f32s {
    E::load(simd, values, at, count)
}

/// Stores `count` channels from `at` on, at most a whole vector.
#[inline(always)]
pub(super) fn store<S: Simd, E: Stored>(simd: S, values: &mut [E], at: usize, count: usize, vector: S::f32s) {
    E::store(simd, values, at, count, vector);
}

/// Returns factor * x.
#[inline(always)]
pub(super) fn times<S: Simd>(simd: S, factor: f32, x: S::f32s) -> S::f32s {
    simd.mul_f32s(simd.splat_f32s(factor), x)
}

/// Returns sum + factor * x.
#[inline(always)]
pub(super) fn plus<S: Simd>(simd: S, sum: S::f32s, factor: f32, x: S::f32s) -> S::f32s {
    simd.mul_add_e_f32s(simd.splat_f32s(factor), x, sum)
}

/// Returns row `row` of columns of equal height.
#[inline(always)]
pub(super) fn across<T: Copy, const COLUMNS: usize, const ROWS: usize>(
    columns: &[[T; ROWS]; COLUMNS],
    row: usize,
) -> [T; COLUMNS] {
    let mut values = [columns[0][0]; COLUMNS];
    for (value, column) in values.iter_mut().zip(columns) {
        *value = column[row];
    }
    values
}

/// Returns e^x. Results below 1e-38 and above 1e38 are cut off, and NaN may become either.
///
/// x = n ln 2 + r, |r| <= ln 2 / 2: e^x = 2^n e^r, with the Taylor series of e^r to r^7, whose next
/// term is 5e-9.
#[inline(always)]
pub(super) fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // Added to a number, it leaves the number's integer in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const SERIES: [f32; 7] = [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    const MANTISSA_BITS: u32 = 23;
    let x = simd.max_f32s(simd.min_f32s(x, simd.splat_f32s(87.5)), simd.splat_f32s(-87.0));
    let shifted = plus(simd, simd.splat_f32s(ROUND), std::f32::consts::LOG2_E, x);
    let n = simd.sub_f32s(shifted, simd.splat_f32s(ROUND));
    let r = plus(simd, plus(simd, x, -LN_2_HIGH, n), -LN_2_LOW, n);
    let mut sum = simd.splat_f32s(1.0 / 5040.0);
    for term in SERIES {
        sum = simd.mul_add_e_f32s(sum, r, simd.splat_f32s(term));
    }
    let bits = simd.wrapping_dyn_shl_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(MANTISSA_BITS));
    simd.transmute_f32s_u32s(simd.add_u32s(simd.transmute_u32s_f32s(sum), bits))
}

/// The function after a norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activate {
    None,
    Silu,
    Relu,
}

impl Activate {
    /// Returns the function that `ACTIVATION` of a kernel names.
    pub(super) fn of(variant: &Variant) -> Self {
        match variant.number("ACTIVATION") {
            1 => Self::Silu,
            2 => Self::Relu,
            _ => Self::None,
        }
    }

    #[inline(always)]
    pub(super) fn apply<S: Simd>(self, simd: S, x: S::f32s) -> S::f32s {
        match self {
            Self::None => x,
            Self::Silu => {
                let power = exp(simd, simd.neg_f32s(x));
                simd.div_f32s(x, simd.add_f32s(simd.splat_f32s(1.0), power))
            }
            Self::Relu => relu(simd, x),
        }
    }
}

/// Returns max(x, 0). NaN stays NaN.
pub(super) fn at_least_zero(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

/// Returns max(x, 0). A value that is not finite stays: an overflow must not pass for a picture.
#[inline(always)]
pub(super) fn relu<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let zero = simd.splat_f32s(0.0);
    let infinite = simd.less_than_f32s(x, simd.splat_f32s(f32::MIN));
    // A comparison with NaN is false.
    simd.select_f32s(simd.less_than_f32s(x, zero), simd.select_f32s(infinite, x, zero), x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::architectures;

    /// Applies a function to values.
    struct Apply<'a>(Activate, &'a mut [f32]);

    impl WithSimd for Apply<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Self(activate, values) = self;
            for start in (0..values.len()).step_by(S::F32_LANES) {
                let count = S::F32_LANES.min(values.len() - start);
                let value = activate.apply(simd, load(simd, values, start, count));
                store(simd, values, start, count, value);
            }
        }
    }

    #[test]
    fn values_that_are_not_finite_stay() {
        for arch in architectures() {
            for activate in [Activate::None, Activate::Relu, Activate::Silu] {
                let mut values = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -1.0, 1.0];
                dispatch(arch, Apply(activate, &mut values));
                let finite = values.map(f32::is_finite);
                assert_eq!(finite, [false, false, false, true, true], "{activate:?} {arch:?}: {values:?}");
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "rounded to compare")]
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    #[test]
    fn powers_agree_with_the_library() {
        let values: Vec<f32> = (-400..400).map(|step| step as f32 * 0.21).collect();
        let wanted: Vec<f32> = values.iter().map(|value| value / (1.0 + (-f64::from(*value)).exp()) as f32).collect();
        for arch in architectures() {
            let mut found = values.clone();
            dispatch(arch, Apply(Activate::Silu, &mut found));
            for (found, wanted) in found.iter().zip(&wanted) {
                assert!((found - wanted).abs() <= 2e-6 * wanted.abs().max(1e-30), "{arch:?}: {found}, not {wanted}");
            }
        }
    }
}
