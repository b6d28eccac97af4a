//! Tiled decodes as other tools do them: the positions of tiles, and the blending of their pixels
//! into one image.
//!
//! Use this only to reproduce those tools. A tile's group norms and attention see that tile alone,
//! so tiles differ in tone, and blending hides the seams but not the difference. For a decode in
//! little memory, use a memory budget, which does not change the result. This module decodes
//! nothing itself.

mod blender;
mod cosine;
mod grid;
mod kind;
mod linear;
mod planes;

#[doc(hidden)]
pub use self::blender::{Band, Blender};
pub use self::grid::{Grid, Tile};
pub use self::kind::TilingKind;
#[doc(hidden)]
pub use self::planes::Planes;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::model::config::{AutoencoderConfig, LatentSpace};
use crate::tensor::Size;

/// The most latents along a side of a tile. A larger tile is taken for a mistake.
const MAX_TILE: u32 = 1 << 16;
/// The side of SeedVR2's tiles in pixels, the default of its node for ComfyUI
/// (numz/ComfyUI-SeedVR2_VideoUpscaler).
const SEEDVR2_TILE_PIXELS: u32 = 1024;

/// The way that an image is divided: decoded whole, in tiles, or by an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tiling {
    /// The whole image at once: the model's own result.
    #[default]
    Exact,
    /// Overlapping tiles, each decoded by itself and blended with its neighbours. Not the model's
    /// own result.
    Blend(Blend),
    /// The whole image at once, with group norms that are measured on a smaller copy of the
    /// latents. Takes one pass and has no seams, but its tones differ a little from the model's
    /// own. The idea comes from A1111's "fast" tiled VAE.
    Estimate,
}

/// The larger side of the copy that an estimate measures, in latents. For most models this is 512
/// pixels, which is enough for norms.
const MEASURED_SIDE: u32 = 64;

impl Tiling {
    /// Returns the tiles of an image of `latents`, or `None` if it is decoded whole: it fits one
    /// tile, or the tiling has no tiles.
    pub fn grid(self, latents: Size) -> Option<Grid> {
        match self {
            Self::Exact | Self::Estimate => None,
            Self::Blend(blend) if latents.width.max(latents.height) <= blend.tile => None,
            Self::Blend(blend) => Some(Grid::new(blend, latents)),
        }
    }

    /// Returns the size, in latents, of the copy that an estimate measures. `None` if the norms are
    /// those of the image itself: it is no larger than the copy, or the tiling is another.
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

/// The rule by which overlapping pixels of tiles are blended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlendRule {
    /// The rule of diffusers' `AutoencoderKL.tiled_decode`: linear weights, in place, first with
    /// the tile above and then with the tile to the left.
    Linear,
    /// The rule of SeedVR2's `tiled_decode` in numz/ComfyUI-SeedVR2_VideoUpscaler: tiles are
    /// weighted along half a cosine, summed, and divided by the sum of the weights.
    Cosine,
}

/// Square tiles of one size, and the rule that blends them. Lengths are in latents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "UncheckedBlend")]
pub struct Blend {
    rule: BlendRule,
    tile: u32,
    overlap: u32,
}

/// A [`Blend`] as it is read, before [`Blend::new`] has checked its lengths.
#[derive(Deserialize)]
struct UncheckedBlend {
    rule: BlendRule,
    tile: u32,
    overlap: u32,
}

impl TryFrom<UncheckedBlend> for Blend {
    type Error = Error;

    fn try_from(UncheckedBlend { rule, tile, overlap }: UncheckedBlend) -> Result<Self> {
        Self::new(rule, tile, overlap)
    }
}

impl Blend {
    /// Makes tiles of `tile` latents a side. Neighbouring tiles share `overlap` latents.
    ///
    /// # Errors
    /// [`Error::Input`] if `tile` is 0 or more than 65536, or if `overlap` is not smaller than
    /// `tile`.
    pub fn new(rule: BlendRule, tile: u32, overlap: u32) -> Result<Self> {
        if tile == 0 || tile > MAX_TILE {
            return Err(Error::input(TILE_SIZE, format!("1 to {MAX_TILE} latents"), format!("{tile} latents")));
        }
        if overlap >= tile {
            let expected = format!("less than the tile's {tile} latents");
            return Err(Error::input(TILE_OVERLAP, expected, format!("{overlap} latents")));
        }
        Ok(Self { rule, tile, overlap })
    }

    /// Returns the tiles that the tool behind `rule` would use for a model. `tile_pixels` and
    /// `overlap_pixels` replace its lengths.
    ///
    /// diffusers: `sample_size` pixels of the model's configuration, with a quarter as overlap, or
    /// an eighth for LTX-2 and `AutoencoderDC`.
    /// SeedVR2: 1024 pixels, with an eighth as overlap.
    ///
    /// # Errors
    /// [`Error::Input`] as for [`Self::new`]; for lengths that are not a multiple of a latent's
    /// pixels; and for a tile whose latents cannot be divided by four, or eight, for which
    /// diffusers returns an image of another size. [`Error::Config`] if the model has no usable
    /// `sample_size`.
    pub fn for_model(
        rule: BlendRule,
        config: &AutoencoderConfig,
        tile_pixels: Option<u32>,
        overlap_pixels: Option<u32>,
    ) -> Result<Self> {
        config.validate()?;
        let factor = config.decoded_factor(LatentSpace::Vae);
        let overlaps = config.network.facts().overlaps;
        let tile = match (tile_pixels, rule) {
            (Some(pixels), _) => in_latents(TILE_SIZE, pixels, factor)?,
            (None, BlendRule::Linear) => tile_of_diffusers(config)?,
            (None, BlendRule::Cosine) => (SEEDVR2_TILE_PIXELS / factor).max(1),
        };
        let overlap = match (overlap_pixels, rule) {
            (Some(0), _) => 0,
            (Some(pixels), _) => in_latents(TILE_OVERLAP, pixels, factor)?,
            (None, BlendRule::Linear) if tile.is_multiple_of(overlaps) => tile / overlaps,
            (None, BlendRule::Linear) => {
                let step = u64::from(overlaps) * u64::from(factor);
                let expected = format!("a multiple of {step} pixels, as 1/{overlaps} of a tile overlaps");
                let pixels = u64::from(tile) * u64::from(factor);
                return Err(Error::input(TILE_SIZE, expected, format!("{pixels} pixels without an overlap")));
            }
            (None, BlendRule::Cosine) => tile / 8,
        };
        Self::new(rule, tile, overlap)
    }

    /// Returns the rule that blends overlapping pixels.
    pub fn rule(self) -> BlendRule {
        self.rule
    }

    /// Returns the side of a tile in latents. Tiles at the right and at the bottom may be smaller.
    pub fn tile(self) -> u32 {
        self.tile
    }

    /// Returns the latents that neighbouring tiles share.
    pub fn overlap(self) -> u32 {
        self.overlap
    }

    /// Returns the latents from the start of a tile to that of the next.
    fn stride(self) -> u32 {
        self.tile - self.overlap
    }
}

/// The name of a tile's side in errors.
const TILE_SIZE: &str = "tile size";
/// The name of the overlap in errors.
const TILE_OVERLAP: &str = "tile overlap";

/// Returns diffusers' `tile_latent_min_size`, in latents.
fn tile_of_diffusers(config: &AutoencoderConfig) -> Result<u32> {
    let factor = config.spatial_factor();
    match config.sample_size {
        Some(pixels) if pixels > 0 && pixels.is_multiple_of(factor) => Ok(pixels / factor),
        found => Err(Error::Config {
            field: "sample_size".to_owned(),
            expected: format!(
                "a multiple of {factor} pixels for the side of a tile; pass a tile size instead (tile_size), or the family"
            ),
            found: found.map_or("no value".to_owned(), |pixels| pixels.to_string()),
        }),
    }
}

/// Converts pixels to latents of `factor` pixels a side each.
fn in_latents(what: &str, pixels: u32, factor: u32) -> Result<u32> {
    if pixels > 0 && pixels.is_multiple_of(factor) {
        return Ok(pixels / factor);
    }
    Err(Error::input(what, format!("a multiple of {factor} pixels, the side of a latent"), format!("{pixels} pixels")))
}
