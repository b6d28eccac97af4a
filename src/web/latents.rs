//! Latents from JavaScript's arrays, files and GPU buffers, and facts about a model's latents.

use js_sys::Float32Array;
use serde_json::{Value, json};
use wasm_bindgen::prelude::*;

use super::Result;
use super::source::{JsSource, MOST_BYTES, Rejection, Source};
use crate::error::Error;
use crate::io::{StoredSpace, read_latents};
use crate::model::config::{AutoencoderConfig, LatentSpace};
use crate::tensor::{Bytes, HostTensor};
use crate::vae::Latents;

/// Latents of one or more images, `[n, c, h, w]`. Each layer of `[n, c, layers, h, w]` is an image.
#[wasm_bindgen(js_name = Latents)]
#[derive(Debug)]
pub struct WebLatents {
    pub(super) latents: Latents,
}

#[wasm_bindgen(js_class = Latents)]
impl WebLatents {
    /// Copies latents `[n, c, h, w]`, `[c, h, w]` or `[n, c, layers, h, w]` from an array.
    #[wasm_bindgen(js_name = fromArray)]
    pub fn from_array(data: &Float32Array, shape: &[u32]) -> Result<Self> {
        let bytes = u64::from(data.length()) * 4;
        if bytes > MOST_BYTES {
            return Err(Error::HostMemory { what: "latents".to_owned(), needed: Bytes(bytes) }.into());
        }
        let tensor = HostTensor { shape: extents(shape), data: data.to_vec() };
        Ok(Self { latents: Latents::new(tensor)?.in_space(StoredSpace::Unstated) })
    }

    /// Reads latents from a .safetensors, .latent or .npy file.
    #[wasm_bindgen(js_name = fromFile)]
    pub async fn from_file(source: Source) -> Result<Self> {
        let rejection = Rejection::default();
        let source = JsSource::new(source, &rejection);
        let stored = rejection.pass_on(read_latents(&source, None).await)?;
        Ok(Self { latents: Latents::stored(stored)? })
    }

    /// Takes f32 latents from a `GPUBuffer`, from byte `offset` on. The buffer must be on the
    /// device that will decode them.
    #[wasm_bindgen(js_name = onGpu)]
    pub fn on_gpu(buffer: JsValue, offset: f64, shape: &[u32]) -> Result<Self> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an offset; out of range saturates"
        )]
        let offset = offset as u64;
        let latents = Latents::foreign(buffer, offset, &extents(shape))?;
        Ok(Self { latents: latents.in_space(StoredSpace::Unstated) })
    }

    /// Marks the latents as the VAE's own, without the diffusion model's scale, or as scaled.
    pub fn stated(self, unscaled: bool) -> Self {
        Self { latents: self.latents.in_space(LatentSpace::from_unscaled(unscaled)) }
    }

    /// Returns the shape, `[n, c, h, w]`.
    pub fn shape(&self) -> Vec<u32> {
        let size = self.latents.size();
        vec![self.latents.count(), self.latents.channels(), size.height, size.width]
    }
}

pub(super) fn extents(shape: &[u32]) -> Vec<usize> {
    shape.iter().map(|&extent| extent as usize).collect()
}

/// Returns the facts that callers need about a model's images, and its latents in `space`.
pub(super) fn latent_facts(config: &AutoencoderConfig, space: LatentSpace) -> Value {
    json!({
        "in_channels": config.in_channels,
        "out_channels": config.out_channels,
        "has_distribution": config.has_distribution(),
        "latent_channels": config.channels(space),
        "pixels_per_latent": config.latent_factor(space),
        "decoded_pixels_per_latent": config.decoded_factor(space),
        "has_time": config.has_time(),
        "frames_per_latent": config.temporal_factor(),
        "fills_parts": config.fills_parts(),
        "starts": config.starts(),
    })
}
