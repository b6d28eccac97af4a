//! The rows and columns that a 3x3 filter sees beyond the image.

/// Returns the row or column that is read at `position` of `extent`. `None` if it is zero there.
/// `beyond` is the constant of `shaders/parts/border.wgsl`.
#[inline(always)]
pub(super) fn read_at(position: i64, extent: u32, beyond: u32) -> Option<i64> {
    let last = i64::from(extent) - 1;
    match (position, beyond) {
        (-1, 1) => Some(1.min(last)),
        (_, 1) if position == last + 1 => Some((last - 1).max(0)),
        (-1, 3) => Some(last),
        (_, 3) if position == last + 1 => Some(0),
        (_, 2) if (-1..=last + 1).contains(&position) => Some(position.clamp(0, last)),
        _ => (0..=last).contains(&position).then_some(position),
    }
}

/// Returns the place of `row` in rows that begin with `row0` of `rows`; see
/// `shaders/parts/border.wgsl`.
#[inline(always)]
pub(super) fn place_of(row: i64, row0: i32, rows: u32, beyond: u32) -> i64 {
    let place = row - i64::from(row0);
    if beyond == 3 { place.rem_euclid(i64::from(rows)) } else { place }
}
