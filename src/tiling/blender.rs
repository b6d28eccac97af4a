//! Takes the decoded tiles of an image one by one and gives its rows as soon as no later tile can
//! change them.

use std::ops::Range;

use super::cosine::Cosine;
use super::grid::Place;
use super::linear::Linear;
use super::{BlendRule, Grid, Planes};
use crate::tensor::Size;

/// Rows of the image that are finished.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    /// Rows of pixels.
    pub rows: Range<u32>,
    /// Their content, as wide as the image.
    pub pixels: Planes,
}

/// Makes an image of its tiles. Keeps, of the tiles so far, only what later ones blend with.
#[derive(Debug)]
pub struct Blender {
    grid: Grid,
    /// Pixels along one side of a latent.
    factor: u32,
    rule: Rule,
    /// Tiles so far.
    taken: usize,
}

#[derive(Debug)]
enum Rule {
    Linear(Linear),
    Cosine(Cosine),
}

impl Blender {
    /// For the tiles of `grid`, whose latents become `factor` pixels a side each.
    pub fn new(grid: &Grid, factor: u32) -> Self {
        let overlap = grid.blend().overlap() * factor;
        let rule = match grid.blend().rule() {
            BlendRule::Linear => Rule::Linear(Linear::new(overlap, grid.columns().len())),
            BlendRule::Cosine => Rule::Cosine(Cosine::new(overlap)),
        };
        Self { grid: grid.clone(), factor, rule, taken: 0 }
    }

    /// Takes the next tile, row by row. After the last of a row of tiles, the rows of pixels down
    /// to the next row of tiles are finished.
    pub fn add(&mut self, tile: Planes) -> Option<Band> {
        let columns = self.grid.columns().len();
        let (row, column) = (self.taken / columns, self.taken % columns);
        let (place, whole, rows) = (self.place(row, column), self.whole(), self.finished_by(row));
        assert_eq!(tile.size(), place.size(), "the size of tile {} of {}", self.taken + 1, self.grid.count());
        self.taken += 1;
        let is_last = column + 1 == columns;
        match &mut self.rule {
            Rule::Linear(linear) => linear.add(tile, &place, whole, &rows),
            Rule::Cosine(cosine) => cosine.add(&tile, &place, whole),
        }
        if !is_last {
            return None;
        }
        let pixels = match &mut self.rule {
            Rule::Linear(linear) => linear.finish(),
            Rule::Cosine(cosine) => cosine.finish(&rows),
        };
        Some(Band { rows, pixels })
    }

    /// The tile's place in pixels.
    fn place(&self, row: usize, column: usize) -> Place {
        let pixels = |span: &Range<u32>| span.start * self.factor..span.end * self.factor;
        Place { columns: pixels(&self.grid.columns()[column]), rows: pixels(&self.grid.rows()[row]) }
    }

    /// The image's size in pixels.
    fn whole(&self) -> Size {
        let latents = self.grid.latents();
        Size { width: latents.width * self.factor, height: latents.height * self.factor }
    }

    /// The rows of pixels that are finished with row `row` of the tiles: down to the start of the
    /// next.
    fn finished_by(&self, row: usize) -> Range<u32> {
        let start = |row: usize| self.grid.rows().get(row).map_or(self.grid.latents().height, |span| span.start);
        start(row) * self.factor..start(row + 1) * self.factor
    }
}
