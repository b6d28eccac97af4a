//! The blending rule of SeedVR2 (`tiled_decode` of numz/ComfyUI-SeedVR2_VideoUpscaler). Each tile
//! is weighted; its weights fall along half a cosine towards its neighbours. The weighted sum is
//! divided by the sum of the weights.

use std::ops::Range;

use super::Planes;
use super::grid::Tile;
use crate::tensor::Size;

/// The least divisor: a smaller sum of weights counts as this.
const LEAST_COUNT: f32 = 1e-6;

/// The sums for the rows of pixels that the current row of tiles covers.
#[derive(Debug)]
pub(super) struct Cosine {
    /// The rising weights, 0 to 1, over the pixels that neighbours share.
    ramp: Vec<f32>,
    /// The sum of weighted tiles, in the rows of pixels from the start to the end of the current
    /// row of tiles.
    sum: Planes,
    /// The sum of the row weights so far, for each row of `sum`. A pixel's weight is the product of
    /// its row weight and its column weight. So the sum over all tiles is the product of the two
    /// sums.
    row_weights: Vec<f32>,
    /// The sum of the column weights of the tiles in this row, for each column.
    column_weights: Vec<f32>,
}

impl Cosine {
    pub(super) fn new(overlap: u32) -> Self {
        let sum = Planes::zero(Size { width: 0, height: 0 }, 0);
        Self { ramp: ramp(overlap), sum, row_weights: Vec::new(), column_weights: Vec::new() }
    }

    /// Adds a tile.
    pub(super) fn add(&mut self, tile: &Planes, place: &Tile, whole: Size) {
        let rows = weights(&self.ramp, &place.rows, whole.height);
        let columns = weights(&self.ramp, &place.columns, whole.width);
        if place.columns.start == 0 {
            self.extend(place, whole, tile.channels());
            self.row_weights.iter_mut().zip(&rows).for_each(|(sum, weight)| *sum += weight);
        }
        let (left, width) = (place.columns.start as usize, columns.len());
        self.column_weights[left..][..width].iter_mut().zip(&columns).for_each(|(sum, weight)| *sum += weight);
        for channel in 0..tile.channels() {
            for (y, row_weight) in rows.iter().enumerate() {
                let target = &mut self.sum.row_mut(channel, y)[left..][..width];
                let values = tile.row(channel, y).iter().zip(&columns);
                target.iter_mut().zip(values).for_each(|(sum, (value, weight))| *sum += value * row_weight * weight);
            }
        }
    }

    /// Ends a row of tiles. Returns the pixels of `rows`, which are finished; those below wait for
    /// the next row of tiles.
    pub(super) fn finish(&mut self, rows: &Range<u32>) -> Planes {
        let (width, height) = (self.sum.size().width, rows.end - rows.start);
        let rest = Size { width, height: self.sum.size().height - height };
        let waiting = self.sum.part((0, height), rest);
        let mut band = std::mem::replace(&mut self.sum, waiting).part((0, 0), Size { width, height });
        let row_weights: Vec<f32> = self.row_weights.drain(..height as usize).collect();
        for channel in 0..band.channels() {
            for (y, row_weight) in row_weights.iter().enumerate() {
                let values = band.row_mut(channel, y).iter_mut().zip(&self.column_weights);
                values.for_each(|(value, weight)| *value /= (row_weight * weight).max(LEAST_COUNT));
            }
        }
        band
    }

    /// Begins a row of tiles: adds room for its rows of pixels below those that wait.
    fn extend(&mut self, place: &Tile, whole: Size, channels: usize) {
        let height = place.rows.end - place.rows.start;
        let mut sum = Planes::zero(Size { width: whole.width, height }, channels);
        sum.put((0, 0), &self.sum);
        self.sum = sum;
        self.row_weights.resize(height as usize, 0.0);
        self.column_weights = vec![0.0; whole.width as usize];
    }
}

/// Returns half a cosine from 0 to 1, both included, over `length` pixels.
fn ramp(length: u32) -> Vec<f32> {
    let steps = f64::from(length.saturating_sub(1).max(1));
    #[expect(clippy::cast_possible_truncation, reason = "0 to 1; rounded to f32")]
    let value = |at: u32| (0.5 - 0.5 * libm::cos(std::f64::consts::PI * f64::from(at) / steps)) as f32;
    (0..length).map(value).collect()
}

/// Returns the weights along one axis of a tile that covers the pixels `span` of `extent`. They
/// fall only towards neighbours. In a tile shorter than two overlaps, the falling weights replace
/// the rising ones.
fn weights(ramp: &[f32], span: &Range<u32>, extent: u32) -> Vec<f32> {
    let length = (span.end - span.start) as usize;
    let faded = ramp.len().min(length.saturating_sub(1));
    let mut weights = vec![1.0; length];
    if span.start > 0 {
        weights[..faded].copy_from_slice(&ramp[..faded]);
    }
    if span.end < extent {
        let falling = ramp[..faded].iter().map(|weight| 1.0 - weight);
        weights[length - faded..].iter_mut().zip(falling).for_each(|(weight, falling)| *weight = falling);
    }
    weights
}
