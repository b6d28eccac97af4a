//! Options about tiles, and texts that describe tiles.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use wgvae::config::AutoencoderConfig;
use wgvae::tiling::{Blend, BlendRule};
use wgvae::{Error, LatentSpace, Result, Size, Tiling};

/// Tilings that the user can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TilingArg {
    /// Whole image at once: the model's own result
    Exact,
    /// Tiles blended as diffusers' `AutoencoderKL` does with `enable_tiling`
    Blend,
    /// Tiles blended as SeedVR2's node for ComfyUI does
    Cosine,
    /// Whole image with the group norms of a smaller copy: one pass and no seams, but not the
    /// model's own result
    Estimate,
}

impl TilingArg {
    /// Returns the name that the user types.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Blend => "blend",
            Self::Cosine => "cosine",
            Self::Estimate => "estimate",
        }
    }
}

/// Options that set the size of the tiles.
#[derive(Debug, Args)]
pub(super) struct TileArgs {
    /// Side of a tile in pixels of the image [default: blend: the model's `sample_size`; cosine:
    /// 1024]
    #[arg(long, value_name = "PX")]
    tile_size: Option<u32>,
    /// Pixels that neighbouring tiles share [default: blend: a quarter of a tile, for LTX-2 and
    /// DC-AE an eighth; cosine: an eighth]
    #[arg(long, value_name = "PX")]
    tile_overlap: Option<u32>,
}

impl TileArgs {
    /// Returns the tiling `arg` with these sizes, for a model of `config`.
    ///
    /// # Errors
    /// [`Error::Input`], which names the flag, for sizes that make no sense and for any size with
    /// `exact` or `estimate`; [`Error::Config`] if the model does not say what its tiles are.
    pub(super) fn tiling(&self, arg: TilingArg, config: &AutoencoderConfig) -> Result<Tiling> {
        let rule = match arg {
            TilingArg::Exact => return self.none(arg).map(|()| Tiling::Exact),
            TilingArg::Estimate => return self.none(arg).map(|()| Tiling::Estimate),
            TilingArg::Blend => BlendRule::Linear,
            TilingArg::Cosine => BlendRule::Cosine,
        };
        let blend = Blend::for_model(rule, config, self.tile_size, self.tile_overlap);
        blend.map(Tiling::Blend).map_err(|error| match error {
            Error::Input { what, expected, found } => {
                Error::input(format!("--{}", what.replace(' ', "-")), expected, found)
            }
            other => other,
        })
    }

    /// Returns the tiling `arg` as one of several. Unlike [`Self::tiling`], it ignores sizes for
    /// `estimate`, which has no tiles.
    pub(super) fn compared(&self, arg: TilingArg, config: &AutoencoderConfig) -> Result<Tiling> {
        if arg == TilingArg::Estimate { Ok(Tiling::Estimate) } else { self.tiling(arg, config) }
    }

    /// Fails if the user gave a size, because `arg` has no tiles.
    pub(super) fn none(&self, arg: TilingArg) -> Result<()> {
        for (flag, pixels) in [("--tile-size", self.tile_size), ("--tile-overlap", self.tile_overlap)] {
            if let Some(pixels) = pixels {
                return Err(Error::input(
                    flag,
                    "use with --tiling blend or cosine",
                    format!("{pixels} with --tiling {}", arg.name()),
                ));
            }
        }
        Ok(())
    }
}

/// Returns the facts about the tiles of an image of `latents`, for JSON.
pub(super) fn tiling_json(tiling: Tiling, config: &AutoencoderConfig, latents: Size) -> Value {
    let blend = match tiling {
        Tiling::Exact => return json!({ "name": TilingArg::Exact.name(), "tiles": 1 }),
        Tiling::Estimate => return json!({ "name": TilingArg::Estimate.name(), "tiles": 1 }),
        Tiling::Blend(blend) => blend,
    };
    let factor = config.decoded_factor(LatentSpace::Vae);
    json!({
        "name": name_of(blend.rule()).name(),
        "tile_pixels": blend.tile() * factor,
        "overlap_pixels": blend.overlap() * factor,
        "tiles": tiles(tiling, latents),
    })
}

/// Returns a text about the tiles; empty if there are none.
pub(super) fn tiles_text(tiling: Tiling, latents: Size) -> String {
    match tiling {
        Tiling::Exact => String::new(),
        Tiling::Estimate => " with estimated norms".to_owned(),
        Tiling::Blend(blend) => format!(" in {} tiles ({})", tiles(tiling, latents), name_of(blend.rule()).name()),
    }
}

/// Returns the number of tiles of an image of `latents`.
pub(super) fn tiles(tiling: Tiling, latents: Size) -> usize {
    tiling.grid(latents).map_or(1, |grid| grid.count())
}

fn name_of(rule: BlendRule) -> TilingArg {
    match rule {
        BlendRule::Linear => TilingArg::Blend,
        BlendRule::Cosine => TilingArg::Cosine,
    }
}
