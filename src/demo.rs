//! The embedded model and latents of `wgvae demo`, and what `wgvae selftest` compares them with.
//! Made by `tools/demo_model`.

use wgvae::{Checkpoint, MemorySource, Result};

const CONFIG: &str = include_str!("../assets/demo/model/config.json");
const WEIGHTS: &[u8] = include_bytes!("../assets/demo/model/diffusion_pytorch_model.safetensors");
const LATENTS: &[u8] = include_bytes!("../assets/demo/latents.safetensors");
const SELFTEST: &[u8] = include_bytes!("../assets/demo/selftest.safetensors");

/// The embedded model: a small `AutoencoderKL` with 16 latent channels.
pub(crate) async fn checkpoint() -> Result<Checkpoint> {
    Checkpoint::from_source(Box::new(MemorySource::new("embedded model", WEIGHTS)), Some(CONFIG)).await
}

/// A small part of them and what diffusers makes of it in f32: a .safetensors file with `latents`
/// `[1, 16, 16, 16]` and, stored as halves and not clamped, `image` `[1, 3, 128, 128]`.
pub(crate) fn selftest() -> MemorySource {
    MemorySource::new("embedded self-test", SELFTEST)
}

/// The embedded latents: a .safetensors file with one tensor, `latents` `[1, 16, 64, 64]`.
pub(crate) fn latents() -> MemorySource {
    MemorySource::new("embedded latents", LATENTS)
}
