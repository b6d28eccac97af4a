//! The embedded model and latents of `wgvae demo`, and the reference data of `wgvae selftest`.
//! `tools/demo_model` makes them.

use crate::error::Result;
use crate::io::{Checkpoint, MemorySource};

const CONFIG: &str = include_str!("../assets/demo/model/config.json");
const WEIGHTS: &[u8] = include_bytes!("../assets/demo/model/diffusion_pytorch_model.safetensors");
const LATENTS: &[u8] = include_bytes!("../assets/demo/latents.safetensors");
const SELFTEST: &[u8] = include_bytes!("../assets/demo/selftest.safetensors");

/// Opens the embedded model: a small `AutoencoderKL` with 16 latent channels.
///
/// # Errors
/// See [`Checkpoint::from_source`].
pub async fn checkpoint() -> Result<Checkpoint> {
    Checkpoint::from_source(Box::new(MemorySource::new("embedded model", WEIGHTS)), Some(CONFIG)).await
}

/// Returns the data of the self-test, a .safetensors file: `latents` `[1, 16, 16, 16]`, a small
/// part of the embedded latents, and `image` `[1, 3, 128, 128]`. The image is the f32 result of
/// diffusers, stored as halves and not clamped.
pub fn selftest() -> MemorySource {
    MemorySource::new("embedded self-test", SELFTEST)
}

/// Returns the embedded latents: a .safetensors file with one tensor, `latents` `[1, 16, 64, 64]`.
pub fn latents() -> MemorySource {
    MemorySource::new("embedded latents", LATENTS)
}
