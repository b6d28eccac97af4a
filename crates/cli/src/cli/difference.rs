//! Difference between two decoded images, in numbers and as a picture.

use wgvae::Size;
use wgvae::quality::psnr;

/// Largest level of an 8-bit channel.
const LEVELS: f64 = 255.0;
/// Level that shows no difference.
const MIDDLE: f64 = 128.0;

/// Difference of an image from the exact one, in levels of 0 to 255. Both are clamped but not
/// rounded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Difference {
    /// Largest absolute difference in any channel of any pixel.
    pub(super) max: f64,
    /// Mean absolute difference.
    pub(super) mean: f64,
    /// Peak signal-to-noise ratio in dB; `None` for equal images.
    pub(super) psnr: Option<f64>,
}

/// Measures `image` against `exact`, both `[c, h, w]` with values of about -1 to 1.
pub(super) fn measure(image: &[f32], exact: &[f32]) -> Difference {
    let (mut max, mut sum, mut squares) = (0.0_f64, 0.0, 0.0);
    for (&value, &wanted) in image.iter().zip(exact) {
        let difference = (level(value) - level(wanted)).abs();
        max = max.max(difference);
        sum += difference;
        squares += difference * difference;
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of pixels")]
    let count = image.len() as f64;
    let psnr = (squares > 0.0).then(|| psnr(squares, image.len()));
    Difference { max, mean: sum / count, psnr }
}

/// Draws the difference of the colours as RGB8 `[h, w, 3]` of `size` pixels. Mid grey means that
/// `image` and `exact` are equal; where `image` is lighter, so is the picture, by `amplify` times
/// the difference.
pub(super) fn picture(image: &[f32], exact: &[f32], size: Size, amplify: u32) -> Vec<u8> {
    let plane = size.width as usize * size.height as usize;
    let pixel = |index: usize| {
        [0, 1, 2].map(|channel| {
            let at = channel * plane + index;
            let difference = level(image[at]) - level(exact[at]);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
            let shown = (MIDDLE + difference * f64::from(amplify)).round().clamp(0.0, LEVELS) as u8;
            shown
        })
    };
    (0..plane).flat_map(pixel).collect()
}

/// Converts a value of -1 to 1 to a level of 0 to 255, not rounded.
fn level(value: f32) -> f64 {
    (f64::from(value) * 0.5 + 0.5).clamp(0.0, 1.0) * LEVELS
}
