//! Tilings for JavaScript: by name, with lengths in pixels.

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::model::config::AutoencoderConfig;
use crate::tiling::{Blend, BlendRule, Tiling};

/// The way that a picture is divided for a decode.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WebTiling {
    /// The whole picture at once.
    #[default]
    Exact,
    /// Tiles that are blended as in diffusers' `AutoencoderKL`.
    Blend,
    /// Tiles that are blended as in `SeedVR2`'s node for `ComfyUI`.
    Cosine,
    /// The whole picture with the norms of a smaller copy.
    Estimate,
}

impl WebTiling {
    /// Converts to the crate's tiling for a model of `config`. `tile_size` and `tile_overlap`, in
    /// pixels, replace the lengths of the other tool.
    ///
    /// # Errors
    /// See [`Blend::for_model`]; [`Error::Input`] for lengths of tiles with a tiling that has none.
    pub(super) fn of_model(
        self,
        config: &AutoencoderConfig,
        tile_size: Option<u32>,
        tile_overlap: Option<u32>,
    ) -> Result<Tiling> {
        let whole = |tiling| match [("tileSize", tile_size), ("tileOverlap", tile_overlap)].iter().find_map(given) {
            None => Ok(tiling),
            Some((what, pixels)) => Err(Error::input(
                what.to_owned(),
                "tiling blend or cosine with it",
                format!("{pixels} with another tiling"),
            )),
        };
        let blend = |rule| Blend::for_model(rule, config, tile_size, tile_overlap).map(Tiling::Blend);
        match self {
            Self::Exact => whole(Tiling::Exact),
            Self::Estimate => whole(Tiling::Estimate),
            Self::Blend => blend(BlendRule::Linear),
            Self::Cosine => blend(BlendRule::Cosine),
        }
    }
}

fn given((name, pixels): &(&'static str, Option<u32>)) -> Option<(&'static str, u32)> {
    pixels.map(|pixels| (*name, pixels))
}
