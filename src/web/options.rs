//! Options of decodes, encodes and their plans from JavaScript, which checks that they fit
//! together. One structure for all, because the code to read another would add to the download of a
//! page.

use serde::Deserialize;
use wasm_bindgen::JsValue;

use super::{Result, from_js};
use crate::direction::Direction;
use crate::model::config::{AutoencoderConfig, LatentSpace};
use crate::plan::{ChannelOrder, Output};
use crate::tensor::{Bytes, Size};
use crate::tiling::TilingKind;
use crate::vae::{DecodeOptions, EncodeOptions, Frames, Parking, Request};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WebOptions {
    /// The direction of a job to plan or to begin.
    direction: Direction,
    /// Its kind.
    frames: Frames,
    /// Its input: latents to decode, or pixels to encode.
    width: u32,
    height: u32,
    pub(super) output: WebOutput,
    memory_budget: Option<Bytes>,
    least_memory: bool,
    parking: Parking,
    /// The most latents of a clip.
    clip_latents: Option<u32>,
    /// The target time of a submission, milliseconds.
    pub(super) submission_target: Option<f64>,
    pub(super) index: u32,
    /// The channel order of a canvas.
    format: ChannelOrder,
    tiling: TilingKind,
    /// The side of a tile, pixels.
    tile_size: Option<u32>,
    /// The overlap of tiles, pixels.
    tile_overlap: Option<u32>,
    /// The seed of a random sample.
    pub(super) seed: u64,
    /// True to get the VAE's own latents. `None`: as the model was loaded.
    pub(super) unscaled: Option<bool>,
}

/// The form of a result.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum WebOutput {
    /// A picture on the device, or the most likely latents.
    #[default]
    #[serde(alias = "canvas", alias = "mode")]
    Usual,
    /// RGBA bytes, `[h, w, 4]`.
    Rgba8,
    /// Floats, `[c, h, w]`.
    Raw,
    /// Latents drawn at random.
    Sample,
    /// The distribution of latents.
    Moments,
}

impl WebOptions {
    pub(super) fn read(value: &JsValue) -> Result<Self> {
        from_js("options", value)
    }

    /// Converts to the crate's options for a decode by a model of `config`.
    pub(super) fn decode(&self, config: &AutoencoderConfig) -> Result<DecodeOptions> {
        let tiling = self.tiling.for_model(config, self.tile_size, self.tile_overlap)?;
        let Self { memory_budget, least_memory, parking, clip_latents, .. } = *self;
        Ok(DecodeOptions { memory_budget, least_memory, parking, tiling, clip_latents, profile: false })
    }

    /// Converts to the crate's options for an encode.
    pub(super) fn encode(&self) -> EncodeOptions {
        let Self { memory_budget, least_memory, parking, clip_latents, .. } = *self;
        EncodeOptions { memory_budget, least_memory, parking, clip_latents, profile: false }
    }

    /// Returns the request to plan or to begin. Latents that are decoded are in `space`.
    pub(super) fn request(&self, config: &AutoencoderConfig, space: LatentSpace) -> Result<Request> {
        let Self { frames, width, height, .. } = *self;
        let size = Size { width, height };
        let request = match (self.direction, frames) {
            (Direction::Encode, _) => self.encode().request(size),
            (Direction::Decode, Frames::Image) => {
                // No picture in tiles stays on the device.
                let tiles = matches!(self.tiling, TilingKind::Blend | TilingKind::Cosine);
                let output = if tiles && self.image().stays() { Output::Rgba8 } else { self.image() };
                self.decode(config)?.request(size, space, output)
            }
            // JavaScript draws the frames of a clip itself.
            (Direction::Decode, Frames::Clip) => {
                let output = if self.output == WebOutput::Raw { Output::Raw } else { Output::Rgba8 };
                self.decode(config)?.request(size, space, output)
            }
        };
        Ok(Request { frames, ..request })
    }

    /// Returns the form of an image.
    pub(super) fn image(&self) -> Output {
        match self.output {
            WebOutput::Rgba8 => Output::Rgba8,
            WebOutput::Raw => Output::Raw,
            _ => Output::Picture(self.format),
        }
    }
}
