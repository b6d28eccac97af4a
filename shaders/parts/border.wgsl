// border: the rows and columns that a 3x3 filter sees one pixel beyond the image: zeros, or if
// MIRROR the pixels on the other side of the first or last.

const MIRROR: bool = false;       // mirror the image at its borders

// Returns the row or column that is read at `position`, of `extent`.
fn read_at(position: i32, extent: i32) -> i32 {
    if (MIRROR && position == -1) {
        return min(1, extent - 1);
    }
    if (MIRROR && position == extent) {
        return max(extent - 2, 0);
    }
    return clamp(position, 0, extent - 1);
}

// True inside the image, and on its mirrored border.
fn is_inside(position: i32, extent: i32) -> bool {
    let beyond = i32(MIRROR);
    return position >= -beyond && position < extent + beyond;
}
