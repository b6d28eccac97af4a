//! What comes before a decode or an encode: a device is opened, and a model is loaded, with a bar for its weights.

use std::sync::Arc;

use clap::Args;
use wgvae::{Checkpoint, Gpu, GpuOptions, LoadOptions, Preparing, Result, Vae};

use super::DecodeLimits;
use super::stderr::{Phase, timed};
use super::tuned::tuned;

/// On which device, and with which kernels.
#[derive(Debug, Args)]
pub(super) struct DeviceArgs {
    /// Adapter to use: part of its name, or its index in `wgvae adapters`
    #[arg(long, value_name = "NAME|INDEX")]
    adapter: Option<String>,
    /// Take the kernels of the rules, none that were measured on the adapter, and measure none
    #[arg(long)]
    no_tune: bool,
}

/// Opens a device on the adapter that is wanted, or on the best one, with the kernels that were measured on it.
pub(super) async fn open_device(device: &DeviceArgs, limits: DecodeLimits) -> Result<Gpu> {
    let options = GpuOptions {
        adapter: device.adapter.clone(),
        webgpu_default_limits: limits == DecodeLimits::WebgpuDefault,
        ..GpuOptions::default()
    };
    let gpu = timed("open device", Gpu::request(&options)).await?;
    Ok(if device.no_tune { gpu } else { tuned(gpu).await })
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
