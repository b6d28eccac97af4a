//! Pictures of 8-bit levels, as `image_out` makes them from a network's image.

/// The pixel of a value that is not finite, as bytes. It is the same in RGBA8 and BGRA8. No other
/// pixel becomes it: a transparent one that would gets one level more of green.
pub const NOT_FINITE: [u8; 4] = [254, 1, 254, 0];

/// Converts red, green, blue and opacity, -1 to 1, to levels: `round(clamp(x / 2 + 1/2) * 255)`,
/// half to even, as in diffusers' `VaeImageProcessor.postprocess`. [`NOT_FINITE`] if a value is not
/// finite.
pub fn rgba8(color: [f32; 4]) -> [u8; 4] {
    if !color.iter().all(|value| value.is_finite()) {
        return NOT_FINITE;
    }
    match color.map(level) {
        NOT_FINITE => [254, 2, 254, 0],
        levels => levels,
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
fn level(value: f32) -> u8 {
    (value.mul_add(0.5, 0.5).clamp(0.0, 1.0) * 255.0).round_ties_even() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_finite_color_looks_like_one_that_is_not() {
        let level = |level: u8| f32::from(level) / 127.5 - 1.0;
        assert_eq!(rgba8(NOT_FINITE.map(level)), [254, 2, 254, 0]);
        assert_eq!(rgba8([0.0, 0.0, 0.0, f32::INFINITY]), NOT_FINITE);
        assert_eq!(rgba8([-3.0, 0.0, 1.0, 0.5]), [0, 128, 255, 191]);
    }
}
