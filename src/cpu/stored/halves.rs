//! Vectors of halves. Arithmetic on their bits converts them, because pulp has no conversion.

use half::f16;
use half::slice::HalfFloatSliceExt;
use pulp::Simd;

use super::Stored;

/// Most lanes of a vector.
const LANES: usize = 16;

impl Stored for f16 {
    #[inline(always)]
    fn get(self) -> f32 {
        self.to_f32_const()
    }

    #[inline(always)]
    fn of(value: f32) -> Self {
        Self::from_f32_const(value)
    }

    #[inline(always)]
    fn floats(_: &[Self]) -> Option<&[f32]> {
        None
    }

    fn widen(values: &[Self], to: &mut [f32]) {
        values[..to.len()].convert_to_f32_slice(to);
    }

    #[inline(always)]
    fn load<S: Simd>(simd: S, values: &[Self], at: usize, count: usize) -> S::f32s {
        let mut bits = [0; LANES];
        if count >= S::F32_LANES {
            for (bits, value) in bits.iter_mut().zip(&values[at..at + S::F32_LANES]) {
                *bits = u32::from(value.to_bits());
            }
        } else {
            for (bits, value) in bits.iter_mut().zip(&values[at..at + count]) {
                *bits = u32::from(value.to_bits());
            }
        }
        wide(simd, S::as_simd_u32s(&bits).0[0])
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the upper half is zero")]
    fn store<S: Simd>(simd: S, values: &mut [Self], at: usize, count: usize, vector: S::f32s) {
        let mut bits = [0; LANES];
        S::as_mut_simd_u32s(&mut bits).0[0] = narrow(simd, vector);
        if count >= S::F32_LANES {
            for (value, bits) in values[at..at + S::F32_LANES].iter_mut().zip(bits) {
                *value = Self::from_bits(bits as u16);
            }
        } else {
            for (value, bits) in values[at..at + count].iter_mut().zip(bits) {
                *value = Self::from_bits(bits as u16);
            }
        }
    }
}

/// The bit of the sign, and the bits of infinity.
const SIGN: u32 = 1 << 31;
const INFINITE: u32 = 0xff << 23;

/// Places from the mantissa of a half to that of an f32, and the difference of their exponents.
const SHIFT: u32 = 13;
const EXPONENTS: u32 = 127 - 15;

/// Returns the f32 of halves in the lower 16 bits.
///
/// The half's exponent and mantissa, moved to their places in an f32, are the number times 2^-112:
/// a product with 2^112 is exact, and makes normal numbers of subnormal ones.
#[inline(always)]
fn wide<S: Simd>(simd: S, bits: S::u32s) -> S::f32s {
    const HALF_INFINITE: u32 = 0x7c00;
    let magnitude = simd.and_u32s(bits, simd.splat_u32s(0x7fff));
    let moved = simd.wrapping_dyn_shl_u32s(magnitude, simd.splat_u32s(SHIFT));
    let factor = simd.splat_f32s(f32::from_bits((127 + EXPONENTS) << 23));
    let finite = simd.transmute_u32s_f32s(simd.mul_f32s(simd.transmute_f32s_u32s(moved), factor));
    let special = simd.or_u32s(moved, simd.splat_u32s(INFINITE));
    let is_finite = simd.less_than_u32s(magnitude, simd.splat_u32s(HALF_INFINITE));
    let sign = simd.wrapping_dyn_shl_u32s(simd.and_u32s(bits, simd.splat_u32s(0x8000)), simd.splat_u32s(16));
    simd.transmute_f32s_u32s(simd.or_u32s(simd.select_u32s(is_finite, finite, special), sign))
}

/// Returns the nearest halves, ties to even, in the lower 16 bits.
#[inline(always)]
fn narrow<S: Simd>(simd: S, values: S::f32s) -> S::u32s {
    // The smallest normal half, the smallest number that rounds to infinity, and a quiet NaN.
    const NORMAL: u32 = (EXPONENTS + 1) << 23;
    const TOO_LARGE: u32 = 0x477f_f000;
    const NAN: u32 = 0x7e00;
    let bits = simd.transmute_u32s_f32s(values);
    let magnitude = simd.and_u32s(bits, simd.splat_u32s(!SIGN));
    // Half of the last place less one, and one more if the place before is odd: ties become even.
    let odd = simd.and_u32s(simd.wrapping_dyn_shr_u32s(magnitude, simd.splat_u32s(SHIFT)), simd.splat_u32s(1));
    let rounded = simd.add_u32s(simd.add_u32s(magnitude, odd), simd.splat_u32s((1 << (SHIFT - 1)) - 1));
    let normal =
        simd.wrapping_dyn_shr_u32s(simd.sub_u32s(rounded, simd.splat_u32s(EXPONENTS << 23)), simd.splat_u32s(SHIFT));
    // The last place of 1/2 is that of a subnormal half, so a sum with 1/2 rounds to it.
    let half = simd.splat_f32s(0.5);
    let sum = simd.add_f32s(simd.transmute_f32s_u32s(magnitude), half);
    let subnormal = simd.sub_u32s(simd.transmute_u32s_f32s(sum), simd.transmute_u32s_f32s(half));
    let is_subnormal = simd.less_than_u32s(magnitude, simd.splat_u32s(NORMAL));
    let finite = simd.select_u32s(is_subnormal, subnormal, normal);
    let is_number = simd.less_than_u32s(magnitude, simd.splat_u32s(INFINITE + 1));
    let special = simd.select_u32s(is_number, simd.splat_u32s(0x7c00), simd.splat_u32s(NAN));
    let fits = simd.less_than_u32s(magnitude, simd.splat_u32s(TOO_LARGE));
    let sign = simd.wrapping_dyn_shr_u32s(simd.and_u32s(bits, simd.splat_u32s(SIGN)), simd.splat_u32s(16));
    simd.or_u32s(simd.select_u32s(fits, finite, special), sign)
}

#[cfg(test)]
mod tests {
    use pulp::WithSimd;

    use super::*;
    use crate::cpu::architectures;
    use crate::cpu::lanes::dispatch;

    /// Loads halves and stores them as they are, and as f32.
    struct Copy<'a>(&'a [f16], &'a mut [f16], &'a mut [f32]);

    impl WithSimd for Copy<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Self(from, halves, floats) = self;
            for at in (0..from.len()).step_by(S::F32_LANES) {
                let count = S::F32_LANES.min(from.len() - at);
                let vector = f16::load(simd, from, at, count);
                f16::store(simd, halves, at, count, vector);
                f32::store(simd, floats, at, count, vector);
            }
        }
    }

    /// Stores f32 as halves.
    struct Round<'a>(&'a [f32], &'a mut [f16]);

    impl WithSimd for Round<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            for at in (0..self.0.len()).step_by(S::F32_LANES) {
                let count = S::F32_LANES.min(self.0.len() - at);
                f16::store(simd, self.1, at, count, f32::load(simd, self.0, at, count));
            }
        }
    }

    #[test]
    fn every_half_comes_back() {
        // The last is missing, so that the last vector is not whole.
        let all: Vec<f16> = (0..u16::MAX).map(f16::from_bits).collect();
        for arch in architectures() {
            let (mut halves, mut floats) = (vec![f16::ZERO; all.len()], vec![0.0; all.len()]);
            dispatch(arch, Copy(&all, &mut halves, &mut floats));
            for ((half, float), wanted) in halves.iter().zip(&floats).zip(&all) {
                if wanted.is_nan() {
                    assert!(half.is_nan() && float.is_nan(), "{wanted:?} {arch:?}");
                } else {
                    assert_eq!(half.to_bits(), wanted.to_bits(), "{arch:?}");
                    assert_eq!(float.to_bits(), wanted.to_f32().to_bits(), "{arch:?}");
                }
            }
        }
    }

    #[test]
    fn numbers_become_the_nearest_half() {
        // Between neighbouring halves: the middle, and its neighbours.
        let middles = (0..0x7c00_u16).map(|bits| {
            let [low, high] = [bits, bits + 1].map(|bits| f64::from(f16::from_bits(bits).to_f32()));
            #[expect(clippy::cast_possible_truncation, reason = "the middle is an f32")]
            let middle = (low + high.min(65_536.0)) as f32 / 2.0;
            middle
        });
        let values: Vec<f32> = middles
            .flat_map(|middle| [middle, middle.next_up(), middle.next_down()])
            .flat_map(|value| [value, -value])
            .chain([f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE, 1e-45, 0.0, -0.0])
            .collect();
        for arch in architectures() {
            let mut found = vec![f16::ZERO; values.len()];
            dispatch(arch, Round(&values, &mut found));
            for (found, value) in found.iter().zip(&values) {
                assert_eq!(found.to_bits(), f16::from_f32_const(*value).to_bits(), "{value:e} {arch:?}");
                assert_eq!(found.to_bits(), f16::of(*value).to_bits(), "{value:e}");
            }
        }
    }
}
