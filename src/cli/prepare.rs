//! What comes before a decode or an encode: a device is opened, and a model is loaded, with a bar for its weights.

use std::sync::Arc;

use wgvae::{Checkpoint, Gpu, GpuOptions, LoadOptions, Preparing, Result, Vae};

use super::DecodeLimits;
use super::stderr::{Phase, timed};

/// Opens a device on the adapter that is wanted, or on the best one.
pub(super) async fn open_device(adapter: Option<&str>, limits: DecodeLimits) -> Result<Gpu> {
    let options = GpuOptions {
        adapter: adapter.map(str::to_owned),
        webgpu_default_limits: limits == DecodeLimits::WebgpuDefault,
        ..GpuOptions::default()
    };
    timed("open device", Gpu::request(&options)).await
}

/// Loads the weights that `options` ask for.
pub(super) async fn load(gpu: &Gpu, checkpoint: &Checkpoint, options: LoadOptions) -> Result<Vae> {
    let phase = Phase::of_bytes("load");
    let bar = phase.bar();
    gpu.watch(Some(Arc::new(move |now: Preparing<'_>| {
        if let Preparing::Weights { done, total, tensor } = now {
            bar.show(done.0, total.0, tensor);
        }
    })));
    let loaded = Vae::load(gpu, checkpoint, options).await;
    gpu.watch(None);
    let vae = loaded?;
    phase.end();
    Ok(vae)
}
