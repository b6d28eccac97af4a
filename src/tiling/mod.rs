//! Decodes in tiles, as other tools do them: where the tiles lie, and how their pixels become one
//! image.
//!
//! Only for people who must reproduce those tools. A tile's group norms and attention see that tile
//! alone, so tiles differ in tone, and blending hides the seams but not the difference. A decode
//! that has to fit little memory is better given a memory budget, which leaves the result as it is.
//! Decodes nothing itself.

mod blender;
mod cosine;
mod grid;
mod linear;
mod planes;

pub use self::blender::{Band, Blender};
pub use self::grid::{Grid, Tile};
pub use self::planes::Planes;

use crate::error::{Error, Result};
use crate::model::config::AutoencoderConfig;
use crate::tensor::Size;

/// Tiles beyond this many latents a side are taken for a mistake.
const MAX_TILE: u32 = 1 << 16;
/// Side in pixels of SeedVR2's tiles, by the default of its node for ComfyUI
/// (numz/ComfyUI-SeedVR2_VideoUpscaler).
const SEEDVR2_TILE_PIXELS: u32 = 1024;

/// Whether an image is decoded whole or in tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Tiling {
    /// Whole: the model's own result.
    #[default]
    Exact,
    /// In overlapping tiles, each decoded by itself and blended with its neighbours. Not the
    /// model's own result.
    Blend(Blend),
    /// Whole, but with the group norms that a smaller copy of the latents measures: in one pass and
    /// without seams, in tones that differ a little from the model's own. The idea is that of
    /// A1111's "fast" tiled VAE.
    Estimate,
}

/// Larger side of the copy that an estimate measures, latents: 512 pixels of most models, and as
/// much as norms need.
const MEASURED_SIDE: u32 = 64;

impl Tiling {
    /// The tiles of an image of `latents`, or `None` where it is decoded whole: it fits one tile,
    /// or the tiling is exact.
    pub fn grid(self, latents: Size) -> Option<Grid> {
        match self {
            Self::Exact | Self::Estimate => None,
            Self::Blend(blend) if latents.width.max(latents.height) <= blend.tile => None,
            Self::Blend(blend) => Some(Grid::new(blend, latents)),
        }
    }

    /// The size of the copy of `latents` that an estimate measures; `None` where norms are the
    /// image's own: it is not larger, or the tiling is another.
    pub fn measured_size(self, latents: Size) -> Option<Size> {
        let larger = latents.width.max(latents.height);
        if self != Self::Estimate || larger <= MEASURED_SIDE {
            return None;
        }
        let scaled = |side: u32| {
            let scaled = (u64::from(side) * u64::from(MEASURED_SIDE)).div_ceil(u64::from(larger));
            u32::try_from(scaled).unwrap_or(MEASURED_SIDE)
        };
        Some(Size { width: scaled(latents.width), height: scaled(latents.height) })
    }
}

/// How the pixels of overlapping tiles become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlendRule {
    /// diffusers' `AutoencoderKL.tiled_decode`: along a straight line, in place, with the neighbour
    /// above and then the one to the left.
    Linear,
    /// SeedVR2's `tiled_decode`, as numz/ComfyUI-SeedVR2_VideoUpscaler has it: tiles weighted along
    /// half a cosine, summed, and divided by the sum of the weights.
    Cosine,
}

/// Square tiles of one size, and how they are blended. Lengths are in latents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Blend {
    rule: BlendRule,
    tile: u32,
    overlap: u32,
}

impl Blend {
    /// Tiles of `tile` latents a side, of which neighbours share `overlap`.
    ///
    /// # Errors
    /// [`Error::Input`] for tiles of no or of absurd size, and for an overlap that is not smaller
    /// than a tile.
    pub fn new(rule: BlendRule, tile: u32, overlap: u32) -> Result<Self> {
        if tile == 0 || tile > MAX_TILE {
            return Err(wrong(TILE_SIZE, format!("1 to {MAX_TILE} latents"), format!("{tile} latents")));
        }
        if overlap >= tile {
            let expected = format!("less than the tile's {tile} latents");
            return Err(wrong(TILE_OVERLAP, expected, format!("{overlap} latents")));
        }
        Ok(Self { rule, tile, overlap })
    }

    /// The tiles that the tool behind `rule` would take for a model, unless other lengths in pixels
    /// are given.
    ///
    /// diffusers: `sample_size` pixels of the model's configuration, of which a quarter overlaps.
    /// SeedVR2: 1024 pixels, of which an eighth overlaps.
    ///
    /// # Errors
    /// [`Error::Input`] as for [`Self::new`], for lengths that are no multiples of a latent's
    /// pixels, and for a tile whose quarter is none: there diffusers gives an image of another
    /// size. [`Error::Config`] when the model has no usable `sample_size`.
    pub fn for_model(
        rule: BlendRule,
        config: &AutoencoderConfig,
        tile_pixels: Option<u32>,
        overlap_pixels: Option<u32>,
    ) -> Result<Self> {
        let factor = config.spatial_factor();
        let tile = match (tile_pixels, rule) {
            (Some(pixels), _) => in_latents(TILE_SIZE, pixels, factor)?,
            (None, BlendRule::Linear) => tile_of_diffusers(config)?,
            (None, BlendRule::Cosine) => (SEEDVR2_TILE_PIXELS / factor).max(1),
        };
        let overlap = match (overlap_pixels, rule) {
            (Some(0), _) => 0,
            (Some(pixels), _) => in_latents(TILE_OVERLAP, pixels, factor)?,
            (None, BlendRule::Linear) if tile.is_multiple_of(4) => tile / 4,
            (None, BlendRule::Linear) => {
                let expected =
                    format!("a multiple of {} pixels, as a quarter of a tile overlaps", 4 * u64::from(factor));
                let pixels = u64::from(tile) * u64::from(factor);
                return Err(wrong(TILE_SIZE, expected, format!("{pixels} pixels and no overlap of their own")));
            }
            (None, BlendRule::Cosine) => tile / 8,
        };
        Self::new(rule, tile, overlap)
    }

    /// How overlapping pixels become one.
    pub fn rule(self) -> BlendRule {
        self.rule
    }

    /// Side of a tile in latents. Those at the right and at the bottom may be smaller.
    pub fn tile(self) -> u32 {
        self.tile
    }

    /// Latents that neighbouring tiles share.
    pub fn overlap(self) -> u32 {
        self.overlap
    }

    /// Latents from the start of a tile to that of the next.
    fn stride(self) -> u32 {
        self.tile - self.overlap
    }
}

/// What errors call a tile's side.
const TILE_SIZE: &str = "tile size";
/// What errors call the overlap.
const TILE_OVERLAP: &str = "tile overlap";

/// diffusers' `tile_latent_min_size`, in latents.
fn tile_of_diffusers(config: &AutoencoderConfig) -> Result<u32> {
    let factor = config.spatial_factor();
    match config.sample_size {
        Some(pixels) if pixels > 0 && pixels.is_multiple_of(factor) => Ok(pixels / factor),
        found => Err(Error::Config {
            field: "sample_size".to_owned(),
            expected: format!("a multiple of {factor} pixels to make tiles of, or a tile size instead"),
            found: found.map_or("nothing that says it".to_owned(), |pixels| pixels.to_string()),
        }),
    }
}

/// Pixels as latents of `factor` pixels a side each.
fn in_latents(what: &str, pixels: u32, factor: u32) -> Result<u32> {
    if pixels > 0 && pixels.is_multiple_of(factor) {
        return Ok(pixels / factor);
    }
    Err(wrong(what, format!("a multiple of {factor} pixels, the side of a latent"), format!("{pixels} pixels")))
}

fn wrong(what: &str, expected: String, found: String) -> Error {
    Error::Input { what: what.to_owned(), expected, found }
}
