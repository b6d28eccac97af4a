//! The positions of an image's tiles. Every tile starts on a grid; the border cuts off those at the
//! right and at the bottom.

use std::ops::Range;

use super::{Blend, BlendRule};
use crate::tensor::Size;

/// A tile, in latents; while tiles are joined, in pixels.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tile {
    /// The columns that it covers.
    pub columns: Range<u32>,
    /// The rows that it covers.
    pub rows: Range<u32>,
}

impl Tile {
    /// Returns the tile's size.
    pub fn size(&self) -> Size {
        Size { width: self.columns.end - self.columns.start, height: self.rows.end - self.rows.start }
    }
}

/// The tiles of an image: every combination of `columns` and `rows`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    blend: Blend,
    latents: Size,
    columns: Vec<Range<u32>>,
    rows: Vec<Range<u32>>,
}

impl Grid {
    pub(super) fn new(blend: Blend, latents: Size) -> Self {
        let (columns, rows) = (spans(blend, latents.width), spans(blend, latents.height));
        Self { blend, latents, columns, rows }
    }

    /// Returns the tiles' size, overlap and blending rule.
    pub fn blend(&self) -> Blend {
        self.blend
    }

    /// Returns the size of the whole image, in latents.
    pub fn latents(&self) -> Size {
        self.latents
    }

    /// Returns the columns of latents that each tile of a row covers, from left to right.
    pub fn columns(&self) -> &[Range<u32>] {
        &self.columns
    }

    /// Returns the rows of latents that each row of tiles covers, from top to bottom.
    pub fn rows(&self) -> &[Range<u32>] {
        &self.rows
    }

    /// Returns the number of tiles.
    pub fn count(&self) -> usize {
        self.columns.len() * self.rows.len()
    }

    /// Returns the tiles, row by row.
    pub fn tiles(&self) -> impl Iterator<Item = Tile> {
        let row = |rows: &Range<u32>| {
            let rows = rows.clone();
            self.columns.iter().map(move |columns| Tile { columns: columns.clone(), rows: rows.clone() })
        };
        self.rows.iter().flat_map(row)
    }

    /// Returns each size of tile, in latents, with its number of tiles. There are at most four
    /// sizes if no more than half a tile overlaps: then only the last tile of a row or column may
    /// be smaller.
    pub fn sizes(&self) -> Vec<(Size, usize)> {
        let (widths, heights) = (lengths(&self.columns), lengths(&self.rows));
        let row = |(height, rows): (u32, usize)| {
            widths.iter().map(move |&(width, columns)| (Size { width, height }, rows * columns))
        };
        heights.into_iter().flat_map(row).collect()
    }
}

/// Returns each length of `spans`, with the number of spans of that length. Spans only become
/// shorter towards the border, so equal ones are neighbours.
fn lengths(spans: &[Range<u32>]) -> Vec<(u32, usize)> {
    let length = |span: &Range<u32>| span.end - span.start;
    spans.chunk_by(|span, next| length(span) == length(next)).map(|equal| (length(&equal[0]), equal.len())).collect()
}

/// Returns the tiles along an axis of `extent` latents. If more than half a tile overlaps, several
/// may end at the border.
fn spans(blend: Blend, extent: u32) -> Vec<Range<u32>> {
    let starts = (0..extent).step_by(blend.stride() as usize);
    let spans = starts.map(|start| start..extent.min(start.saturating_add(blend.tile())));
    match blend.rule() {
        // This keeps spans that lie wholly within the previous one.
        BlendRule::Linear => spans.collect(),
        BlendRule::Cosine => spans.filter(|span| span.start == 0 || span.end - span.start > blend.overlap()).collect(),
    }
}
