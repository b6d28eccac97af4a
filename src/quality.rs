//! Measures of how alike two pictures are: PSNR and SSIM, as scikit-image computes them.

use crate::tensor::Size;

/// The highest value of a channel.
const MOST: f64 = 255.0;

/// The number of channels of a pixel.
const CHANNELS: usize = 3;

/// Returns the peak signal-to-noise ratio in dB of `count` values from 0 to 255. `squares` is the
/// sum of their squared differences. Infinite for equal values.
pub fn psnr(squares: f64, count: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a count of values")]
    let count = count as f64;
    10.0 * (MOST * MOST * count / squares).log10()
}

/// Returns the sum of the squared differences of two pictures' values.
///
/// # Panics
/// If their lengths differ.
pub fn squared_differences(left: &[u8], right: &[u8]) -> f64 {
    assert_eq!(left.len(), right.len(), "pictures of different sizes");
    left.iter().zip(right).map(|(&left, &right)| f64::from(left.abs_diff(right)).powi(2)).sum()
}

/// Pixels from a window's middle to its border: 3.5 sigma.
const RADIUS: usize = 5;

/// Pixels of a side of the window.
const WINDOW: usize = 2 * RADIUS + 1;

/// The gaussian window's sigma, pixels.
const SIGMA: f64 = 1.5;

/// Constants that keep the quotients from becoming 0 / 0, for means and for variances: `(0.01 *
/// 255)^2` and `(0.03 * 255)^2`.
const C: [f64; 2] = [(0.01 * MOST) * (0.01 * MOST), (0.03 * MOST) * (0.03 * MOST)];

/// Returns the structural similarity (Wang et al.) of two RGB pictures `[h, w, 3]` of `size`. The
/// window is a gaussian with sigma 1.5 and 11 pixels a side. The result is the mean over the
/// channels and over all windows that lie within the picture; `None` if the picture is smaller than
/// a window.
///
/// # Panics
/// If a picture is not of that size.
pub fn ssim(left: &[u8], right: &[u8], size: Size) -> Option<f64> {
    let (width, height) = (size.width as usize, size.height as usize);
    assert_eq!([left.len(), right.len()], [width * height * CHANNELS; 2], "pictures of another size");
    if width.min(height) < WINDOW {
        return None;
    }
    let window = window();
    // A ring of the moments of the last rows, as many as a window is high. Each row is already
    // summed along its windows.
    let mut rows: Vec<Vec<Moments>> = Vec::new();
    let mut sum = 0.0;
    for row in 0..height {
        let [left, right] = [left, right].map(|picture| &picture[row * width * CHANNELS..][..width * CHANNELS]);
        let across = across(left, right, &window);
        if rows.len() < WINDOW {
            rows.push(across);
        } else {
            rows[row % WINDOW] = across;
        }
        if rows.len() == WINDOW {
            let down = weighted(&window, rows[0].len(), |tap| &rows[(row + 1 + tap) % WINDOW]);
            sum += down.into_iter().map(similarity).sum::<f64>();
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of windows")]
    let count = ((width - 2 * RADIUS) * (height - 2 * RADIUS) * CHANNELS) as f64;
    Some(sum / count)
}

/// The weighted means of `x`, `y`, `x^2`, `y^2` and `x y`.
type Moments = [f64; 5];

/// Returns the weights of a window along one side. Their sum is 1.
fn window() -> [f64; WINDOW] {
    let weights = std::array::from_fn(|tap| {
        let distance = f64::from(u32::try_from(tap.abs_diff(RADIUS)).unwrap_or_default());
        (-0.5 * (distance / SIGMA).powi(2)).exp()
    });
    let sum: f64 = weights.iter().sum();
    weights.map(|weight: f64| weight / sum)
}

/// Returns the moments of each window of a row, `[w - 2 RADIUS, 3]`.
fn across(left: &[u8], right: &[u8], window: &[f64; WINDOW]) -> Vec<Moments> {
    let moments: Vec<Moments> = left
        .iter()
        .zip(right)
        .map(|(&left, &right)| {
            let (x, y) = (f64::from(left), f64::from(right));
            [x, y, x * x, y * y, x * y]
        })
        .collect();
    weighted(window, moments.len() - 2 * RADIUS * CHANNELS, |tap| &moments[tap * CHANNELS..])
}

/// Returns the weighted sum of the taps' moments, for the first `count` moments of each tap.
fn weighted<'a>(window: &[f64; WINDOW], count: usize, tap: impl Fn(usize) -> &'a [Moments]) -> Vec<Moments> {
    let mut sums = vec![Moments::default(); count];
    for (index, weight) in window.iter().enumerate() {
        for (sum, moment) in sums.as_flattened_mut().iter_mut().zip(tap(index).as_flattened()) {
            *sum += weight * moment;
        }
    }
    sums
}

fn similarity([x, y, xx, yy, xy]: Moments) -> f64 {
    let [of_means, of_variances] = C;
    let means = (2.0 * x * y + of_means) / (x * x + y * y + of_means);
    means * (2.0 * (xy - x * y) + of_variances) / ((xx - x * x) + (yy - y * y) + of_variances)
}
