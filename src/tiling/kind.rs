//! Tilings as users choose them: by name, with lengths in pixels.

use serde::Deserialize;

use super::{Blend, BlendRule, TILE_OVERLAP, TILE_SIZE, Tiling};
use crate::error::{Error, Result};
use crate::model::config::AutoencoderConfig;
use crate::named::Named;

/// A kind of [`Tiling`], whose tiles have no lengths yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TilingKind {
    /// [`Tiling::Exact`].
    #[default]
    Exact,
    /// [`Tiling::Blend`] with the rule of diffusers.
    Blend,
    /// [`Tiling::Blend`] with the rule of SeedVR2.
    Cosine,
    /// [`Tiling::Estimate`].
    Estimate,
}

crate::named!(TilingKind, "tiling": Exact = "exact", Blend = "blend", Cosine = "cosine", Estimate = "estimate");

impl TilingKind {
    /// Returns the tiling of this kind for a model. `tile_pixels` and `overlap_pixels` replace the
    /// lengths of the tool that the kind reproduces.
    ///
    /// # Errors
    /// See [`Blend::for_model`]; [`Error::Input`] for lengths with a kind that has no tiles.
    pub fn for_model(
        self,
        config: &AutoencoderConfig,
        tile_pixels: Option<u32>,
        overlap_pixels: Option<u32>,
    ) -> Result<Tiling> {
        let rule = match self {
            Self::Blend => BlendRule::Linear,
            Self::Cosine => BlendRule::Cosine,
            Self::Exact | Self::Estimate => {
                for (what, pixels) in [(TILE_SIZE, tile_pixels), (TILE_OVERLAP, overlap_pixels)] {
                    if let Some(pixels) = pixels {
                        let found = format!("{pixels} with tiling {}", self.name());
                        return Err(Error::input(what, "no value, unless tiling is blend or cosine", found));
                    }
                }
                return Ok(if self == Self::Exact { Tiling::Exact } else { Tiling::Estimate });
            }
        };
        Blend::for_model(rule, config, tile_pixels, overlap_pixels).map(Tiling::Blend)
    }
}

impl Tiling {
    /// Returns the kind of this tiling.
    pub fn kind(self) -> TilingKind {
        match self {
            Self::Exact => TilingKind::Exact,
            Self::Estimate => TilingKind::Estimate,
            Self::Blend(blend) => match blend.rule() {
                BlendRule::Linear => TilingKind::Blend,
                BlendRule::Cosine => TilingKind::Cosine,
            },
        }
    }
}
