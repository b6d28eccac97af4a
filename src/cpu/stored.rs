//! Numbers as plans store them: f32, or halves. Kernels compute in f32.

mod halves;

use pulp::Simd;

/// A stored number. Vectors of them are read and written as f32.
pub(super) trait Stored: bytemuck::Pod + Send + Sync {
    /// Returns the number as f32.
    fn get(self) -> f32;

    /// Returns the nearest number of this type.
    fn of(value: f32) -> Self;

    /// Returns `values`, if they are f32.
    fn floats(values: &[Self]) -> Option<&[f32]>;

    /// Copies as many values as `to` has.
    fn widen(values: &[Self], to: &mut [f32]);

    /// Loads `count` channels from `at` on, at most a whole vector. Missing lanes are zero.
    fn load<S: Simd>(simd: S, values: &[Self], at: usize, count: usize) -> S::f32s;

    /// Stores `count` channels from `at` on, at most a whole vector.
    fn store<S: Simd>(simd: S, values: &mut [Self], at: usize, count: usize, vector: S::f32s);
}

/// Returns `values` as f32: as they are, or a copy in `space`.
pub(super) fn floats<'a, E: Stored>(values: &'a [E], space: &'a mut Vec<f32>) -> &'a [f32] {
    E::floats(values).unwrap_or_else(|| {
        space.resize(values.len(), 0.0);
        E::widen(values, space);
        space
    })
}

impl Stored for f32 {
    #[inline(always)]
    fn get(self) -> f32 {
        self
    }

    #[inline(always)]
    fn of(value: f32) -> Self {
        value
    }

    #[inline(always)]
    fn floats(values: &[Self]) -> Option<&[f32]> {
        Some(values)
    }

    fn widen(values: &[Self], to: &mut [f32]) {
        to.copy_from_slice(&values[..to.len()]);
    }

    #[inline(always)]
    fn load<S: Simd>(simd: S, values: &[Self], at: usize, count: usize) -> S::f32s {
        if count >= S::F32_LANES {
            S::as_simd_f32s(&values[at..at + S::F32_LANES]).0[0]
        } else {
            simd.partial_load_f32s(&values[at..at + count])
        }
    }

    #[inline(always)]
    fn store<S: Simd>(simd: S, values: &mut [Self], at: usize, count: usize, vector: S::f32s) {
        if count >= S::F32_LANES {
            S::as_mut_simd_f32s(&mut values[at..at + S::F32_LANES]).0[0] = vector;
        } else {
            simd.partial_store_f32s(&mut values[at..at + count], vector);
        }
    }
}
