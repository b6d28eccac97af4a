//! Options of decodes and encodes from JavaScript, which checks that they fit together. One
//! structure for both, because the code to read another would add to the download of a page.

use serde::Deserialize;
use wasm_bindgen::JsValue;

use super::tiles::WebTiling;
use super::{Result, from_js};
use crate::model::config::AutoencoderConfig;
use crate::plan::{ChannelOrder, Output};
use crate::tensor::Bytes;
use crate::vae::{DecodeOptions, EncodeOptions, Parking, PixelFormat};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WebOptions {
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
    tiling: WebTiling,
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
        let tiling = self.tiling.of_model(config, self.tile_size, self.tile_overlap)?;
        let Self { memory_budget, least_memory, parking, clip_latents, .. } = *self;
        Ok(DecodeOptions { memory_budget, least_memory, parking, tiling, clip_latents, profile: false })
    }

    /// Converts to the crate's options for an encode.
    pub(super) fn encode(&self) -> EncodeOptions {
        let Self { memory_budget, least_memory, parking, clip_latents, .. } = *self;
        EncodeOptions { memory_budget, least_memory, parking, clip_latents, profile: false }
    }

    /// Returns the form of an image.
    pub(super) fn image(&self) -> Output {
        match self.output {
            WebOutput::Rgba8 => Output::Rgba8,
            WebOutput::Raw => Output::Raw,
            _ => Output::Picture(self.format),
        }
    }

    /// Returns the kind of the frames of a clip, which JavaScript draws itself.
    pub(super) fn frames(&self) -> PixelFormat {
        if self.output == WebOutput::Raw { PixelFormat::Raw } else { PixelFormat::Rgba8 }
    }
}
