//! Takes the decoded tiles of an image one by one, and returns its rows as soon as no later tile
//! can change them.

use std::ops::Range;

use super::cosine::Cosine;
use super::grid::Tile;
use super::linear::Linear;
use super::{BlendRule, Grid, Planes};
use crate::tensor::Size;

/// Finished rows of an image.
#[derive(Debug, Clone, PartialEq)]
pub struct Band {
    /// The rows of pixels.
    pub rows: Range<u32>,
    /// The pixels of these rows, as wide as the image.
    pub pixels: Planes,
}

/// Blends tiles into an image. Keeps only the pixels that later tiles blend with.
#[derive(Debug)]
pub struct Blender {
    grid: Grid,
    /// The pixels along one side of a latent.
    factor: u32,
    rule: Rule,
    /// The number of tiles added so far.
    taken: usize,
}

#[derive(Debug)]
enum Rule {
    Linear(Linear),
    Cosine(Cosine),
}

impl Blender {
    /// Makes a blender for the tiles of `grid`. Each latent becomes `factor` by `factor` pixels.
    pub fn new(grid: &Grid, factor: u32) -> Self {
        let overlap = grid.blend().overlap() * factor;
        let rule = match grid.blend().rule() {
            BlendRule::Linear => Rule::Linear(Linear::new(overlap, grid.columns().len())),
            BlendRule::Cosine => Rule::Cosine(Cosine::new(overlap)),
        };
        Self { grid: grid.clone(), factor, rule, taken: 0 }
    }

    /// Adds the next tile; tiles come row by row. After the last tile of a row, returns the rows of
    /// pixels that are finished: those down to the next row of tiles.
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

    /// Returns the tile's position in pixels.
    fn place(&self, row: usize, column: usize) -> Tile {
        let pixels = |span: &Range<u32>| span.start * self.factor..span.end * self.factor;
        Tile { columns: pixels(&self.grid.columns()[column]), rows: pixels(&self.grid.rows()[row]) }
    }

    /// Returns the image's size in pixels.
    fn whole(&self) -> Size {
        let latents = self.grid.latents();
        Size { width: latents.width * self.factor, height: latents.height * self.factor }
    }

    /// Returns the rows of pixels that are finished after row `row` of the tiles: down to the start
    /// of the next.
    fn finished_by(&self, row: usize) -> Range<u32> {
        let start = |row: usize| self.grid.rows().get(row).map_or(self.grid.latents().height, |span| span.start);
        start(row) * self.factor..start(row + 1) * self.factor
    }
}
