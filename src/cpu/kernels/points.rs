//! Memory of the 36 points of Winograd's algorithm, split among tasks.

use crate::kernels::winograd::POINTS;

pub(super) const ALL: usize = POINTS as usize;

/// Splits `values`, which hold 36 points of `point` floats each, into parts of `part` floats of
/// each point. The last part may be smaller.
pub(super) fn parts(values: &mut [f32], point: usize, part: usize) -> Vec<[&mut [f32]; ALL]> {
    let mut points: Vec<_> = values.chunks_mut(point).take(ALL).map(|values| values.chunks_mut(part)).collect();
    let next = |_| std::array::from_fn(|index| points[index].next().unwrap_or_default());
    (0..point.div_ceil(part)).map(next).collect()
}
