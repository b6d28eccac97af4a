//! The rows and columns that a 3x3 filter sees beyond the image.

/// Returns the row or column that is read at `position` of `extent`. `None` if it is zero there.
#[inline(always)]
pub(super) fn read_at(position: i64, extent: u32, mirror: bool) -> Option<i64> {
    let extent = i64::from(extent);
    match position {
        -1 if mirror => Some(1.min(extent - 1)),
        _ if mirror && position == extent => Some((extent - 2).max(0)),
        _ => (0..extent).contains(&position).then_some(position),
    }
}
