//! The blending rule of diffusers (`AutoencoderKL.tiled_decode`, `blend_v`, `blend_h`). It works in
//! place: a tile is blended with neighbours that are already blended themselves, first with the
//! tile above and then with the tile to the left.

use std::ops::Range;

use super::Planes;
use super::grid::Tile;
use crate::tensor::Size;

/// The edges of blended tiles that the next tile and the next row of tiles need.
#[derive(Debug)]
pub(super) struct Linear {
    /// The pixels over which tiles are blended.
    extent: u32,
    /// The last `extent` rows of each tile of the row above, blended. Those of this row replace
    /// them one by one.
    above: Vec<Option<Planes>>,
    /// The last `extent` columns of the tile to the left, blended.
    left: Option<Planes>,
    /// The number of tiles added in this row.
    column: usize,
    band: Option<Planes>,
}

impl Linear {
    pub(super) fn new(extent: u32, columns: usize) -> Self {
        Self { extent, above: vec![None; columns], left: None, column: 0, band: None }
    }

    /// Blends a tile with its neighbours. Writes the part that is kept, up to where the next tiles
    /// start, into the band of `rows`.
    pub(super) fn add(&mut self, mut tile: Planes, place: &Tile, whole: Size, rows: &Range<u32>) {
        let size = tile.size();
        if let Some(above) = &self.above[self.column] {
            blend_down(above, &mut tile);
        }
        if let Some(left) = &self.left {
            blend_right(left, &mut tile);
        }
        let (strip, edge) = (self.extent.min(size.height), self.extent.min(size.width));
        let below = tile.part((0, size.height - strip), Size { width: size.width, height: strip });
        self.above[self.column] = Some(below);
        self.left = Some(tile.part((size.width - edge, 0), Size { width: edge, height: size.height }));
        self.column += 1;

        let height = rows.end - rows.start;
        let size_of_band = Size { width: whole.width, height };
        let band = self.band.get_or_insert_with(|| Planes::zero(size_of_band, tile.channels()));
        // The next tile starts where the kept part of this one ends, and overwrites all pixels from
        // there on.
        band.put((place.columns.start, 0), &tile.part((0, 0), Size { width: size.width, height }));
    }

    /// Ends a row of tiles, and returns its finished pixels.
    pub(super) fn finish(&mut self) -> Planes {
        self.column = 0;
        self.left = None;
        self.band.take().unwrap_or_else(|| Planes::zero(Size { width: 0, height: 0 }, 0))
    }
}

/// Returns the weights of the old and the new tile over `extent` pixels. Those of the new tile are
/// 0, 1/extent, and so on. They are computed in f64, as Python does.
fn weights(extent: usize) -> impl Iterator<Item = (f32, f32)> {
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "small numbers; rounded to f32")]
    (0..extent).map(move |at| {
        let weight = at as f64 / extent as f64;
        ((1.0 - weight) as f32, weight as f32)
    })
}

/// Blends the first rows of `tile` with the last rows of `above`, which is as wide.
fn blend_down(above: &Planes, tile: &mut Planes) {
    let extent = above.size().height.min(tile.size().height) as usize;
    let first = above.size().height as usize - extent;
    for (y, (old, new)) in weights(extent).enumerate() {
        for channel in 0..tile.channels() {
            let row = tile.row_mut(channel, y).iter_mut().zip(above.row(channel, first + y));
            row.for_each(|(value, above)| *value = *above * old + *value * new);
        }
    }
}

/// Blends the first columns of `tile` with the last columns of `left`, which is as high.
fn blend_right(left: &Planes, tile: &mut Planes) {
    let extent = left.size().width.min(tile.size().width) as usize;
    let first = left.size().width as usize - extent;
    let weights: Vec<(f32, f32)> = weights(extent).collect();
    for channel in 0..tile.channels() {
        for y in 0..tile.size().height as usize {
            let row = tile.row_mut(channel, y).iter_mut().zip(&left.row(channel, y)[first..]);
            row.zip(&weights).for_each(|((value, left), (old, new))| *value = *left * old + *value * new);
        }
    }
}
