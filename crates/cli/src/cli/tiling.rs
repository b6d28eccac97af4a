//! Options about tiles, and texts that describe tiles.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};
use wgvae::config::AutoencoderConfig;
use wgvae::tiling::TilingKind;
use wgvae::{LatentSpace, Named, Result, Size, Tiling};

/// Returns the parser of tilings that the user names, with their help.
pub(super) fn kinds() -> impl TypedValueParser<Value = TilingKind> {
    let help = |kind| match kind {
        TilingKind::Exact => "Whole image at once: the model's own result",
        TilingKind::Blend => "Tiles blended as diffusers' `AutoencoderKL` does with `enable_tiling`",
        TilingKind::Cosine => "Tiles blended as SeedVR2's node for ComfyUI does",
        TilingKind::Estimate => {
            "Whole image with the group norms of a smaller copy: one pass and no seams, but not the model's own result"
        }
    };
    let names = TilingKind::NAMES.iter().map(|(name, kind)| PossibleValue::new(*name).help(help(*kind)));
    PossibleValuesParser::new(names).try_map(|name| TilingKind::named(&name))
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
    /// Returns the tiling `kind` with these sizes, for a model of `config`.
    ///
    /// # Errors
    /// [`wgvae::Error::Input`], which names the flag, for sizes that make no sense and for any size
    /// with `exact` or `estimate`; [`wgvae::Error::Config`] if the model does not say what its
    /// tiles are.
    pub(super) fn tiling(&self, kind: TilingKind, config: &AutoencoderConfig) -> Result<Tiling> {
        let flag = |what: String| format!("--{}", what.replace(' ', "-"));
        kind.for_model(config, self.tile_size, self.tile_overlap).map_err(|error| error.renamed(flag))
    }

    /// Returns the tiling `kind` as one of several. Unlike [`Self::tiling`], it ignores sizes for
    /// `estimate`, which has no tiles.
    pub(super) fn compared(&self, kind: TilingKind, config: &AutoencoderConfig) -> Result<Tiling> {
        if kind == TilingKind::Estimate { Ok(Tiling::Estimate) } else { self.tiling(kind, config) }
    }
}

/// Returns the facts about the tiles of an image of `latents`, for JSON.
pub(super) fn tiling_json(tiling: Tiling, config: &AutoencoderConfig, latents: Size) -> Value {
    let (name, tiles) = (tiling.kind().name(), tiles(tiling, latents));
    let Tiling::Blend(blend) = tiling else { return json!({ "name": name, "tiles": tiles }) };
    let factor = config.decoded_factor(LatentSpace::Vae);
    json!({
        "name": name,
        "tile_pixels": blend.tile() * factor,
        "overlap_pixels": blend.overlap() * factor,
        "tiles": tiles,
    })
}

/// Returns a text about the tiles; empty if there are none.
pub(super) fn tiles_text(tiling: Tiling, latents: Size) -> String {
    match tiling {
        Tiling::Exact => String::new(),
        Tiling::Estimate => " with estimated norms".to_owned(),
        Tiling::Blend(_) => format!(" in {} tiles ({})", tiles(tiling, latents), tiling.kind().name()),
    }
}

/// Returns the number of tiles of an image of `latents`.
pub(super) fn tiles(tiling: Tiling, latents: Size) -> usize {
    tiling.grid(latents).map_or(1, |grid| grid.count())
}
