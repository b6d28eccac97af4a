//! Conversion of weights from bytes to f32, and the search for bad values.

use wgvae::files::DType::{BF16, F16, F32};
use wgvae::internals::convert::{first_non_finite, to_bytes, to_f32};

#[test]
fn conversions_are_exact() {
    // Every half is compared bit by bit with the half crate's conversion of single values.
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let halves = to_f32(&all, F16);
    let brains = to_f32(&all, BF16);
    for bits in 0..=u16::MAX {
        let (half, brain) = (half::f16::from_bits(bits), half::bf16::from_bits(bits));
        let same = |left: f32, right: f32| left.to_bits() == right.to_bits() || (left.is_nan() && right.is_nan());
        assert!(same(halves[usize::from(bits)], half.to_f32()), "{bits:#x}");
        assert!(same(brains[usize::from(bits)], brain.to_f32()), "{bits:#x}");
    }
    let values = [1.0, -0.0, f32::MIN_POSITIVE, f32::MAX, 1e-45];
    assert_eq!(to_f32(&to_bytes(&values), F32).bits(), values.to_vec().bits());
    assert_eq!(to_f32(&[0, 0, 128, 63, 7], F32), [1.0]);
    assert!(to_f32(&[], F16).is_empty());
}

/// Conversion to bits, so that zeros of both signs differ.
trait Bits {
    fn bits(&self) -> Vec<u32>;
}

impl Bits for Vec<f32> {
    fn bits(&self) -> Vec<u32> {
        self.iter().map(|value| value.to_bits()).collect()
    }
}

#[test]
fn the_first_bad_value_is_found() {
    let mut values = vec![1.0_f32; 10_000];
    assert_eq!(first_non_finite(&values), None);
    assert_eq!(first_non_finite(&[]), None);
    for index in [9_999, 4_096, 4_095, 0] {
        values[index] = f32::INFINITY;
        assert_eq!(first_non_finite(&values), Some((index, f32::INFINITY)));
    }
}
