// border: the rows and columns that a 3x3 filter sees one pixel beyond the image: zeros, the pixels
// on the other side of the first or last, copies of these, or the pixels at the opposite side.

const BEYOND: u32 = 0u;           // 0 zeros, 1 mirrored, 2 copies of the first or last, 3 the opposite side

// Returns the row or column that is read at `position`, of `extent`.
fn read_at(position: i32, extent: i32) -> i32 {
    if (BEYOND == 1u && position == -1) {
        return min(1, extent - 1);
    }
    if (BEYOND == 1u && position == extent) {
        return max(extent - 2, 0);
    }
    if (BEYOND == 3u && position == -1) {
        return extent - 1;
    }
    if (BEYOND == 3u && position == extent) {
        return 0;
    }
    return clamp(position, 0, extent - 1);
}

// True inside the image, and on a border that is not zero.
fn is_inside(position: i32, extent: i32) -> bool {
    let beyond = i32(BEYOND != 0u);
    return position >= -beyond && position < extent + beyond;
}

// Returns the place of `row` in rows that begin with `row0` of `rows`. The first row follows the
// last if the opposite side is seen.
fn place_of(row: i32, row0: i32, rows: i32) -> i32 {
    if (BEYOND == 3u) {
        return (row - row0 + rows) % rows;
    }
    return row - row0;
}
