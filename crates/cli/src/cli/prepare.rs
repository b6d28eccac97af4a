//! Preparation of a decode or an encode: opens a device and loads a model, with a progress bar for
//! its weights.

use std::sync::Arc;

use clap::Args;
use wgvae::device::{CpuOptions, DeviceChoice, DeviceOptions};
use wgvae::report::Preparing;
use wgvae::{
    Bytes, Checkpoint, DecodeOptions, Device, EncodeOptions, Error, GpuOptions, LoadOptions, Named, Parking, Precision,
    Result, Tiling, Vae,
};

use super::stderr::{Phase, timed};
use super::tuned::tuned;
use super::{DecodeLimits, by_name};

/// Options that choose the device and its kernels.
#[derive(Debug, Args)]
pub(super) struct DeviceArgs {
    /// Device to use; gpu: the best adapter, which may be a CPU driver; cpu: this machine's own
    /// cores; auto: a GPU if there is one, else the cores
    ///
    /// auto takes an adapter, too, if --adapter names one or if another option needs shaders:
    /// --precision fast, --matrix-units, --limits webgpu-default.
    #[arg(long, value_parser = by_name::<DeviceChoice>(), default_value = "auto")]
    device: DeviceChoice,
    /// With the cores of this machine: number of threads, at most 1024 [default: one for each
    /// core]; a GPU that auto finds does not use it
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Adapter to use: part of its name, or its index in `wgvae adapters`
    #[arg(long, value_name = "NAME|INDEX")]
    adapter: Option<String>,
    /// Use the kernels that rules choose, not those that `wgvae tune` measured
    #[arg(long)]
    no_tune: bool,
}

/// Options for the element type, the matrix units and the limits of the device.
#[derive(Debug, Args)]
pub(super) struct ElementArgs {
    /// Element type of weights and activations; auto: f16 on a GPU, f32 on a CPU; fast: f16
    /// with less memory traffic and a few times its error
    #[arg(long, value_parser = by_name::<Precision>(), default_value = "auto")]
    pub(super) precision: Precision,
    /// With --precision fast: multiply on the GPU's matrix units (experimental); fails if the GPU
    /// has none
    ///
    /// All products of a decode or an encode use them.
    #[arg(long)]
    matrix_units: bool,
    /// Limits to use: the device's own, or WebGPU's defaults, which every WebGPU browser has
    #[arg(long, value_enum, default_value_t = DecodeLimits::Device)]
    limits: DecodeLimits,
}

/// Options for the memory that a run may take.
#[derive(Debug, Args)]
pub(super) struct BudgetArgs {
    /// Most memory of the device to use, such as 512MiB; the result stays the same to the bit, the
    /// time does not
    #[arg(long, value_name = "BYTES", value_parser = super::parse_bytes)]
    memory_budget: Option<Bytes>,
    /// Take less memory and more time, for TAESD, Qwen-Image, Wan and their like; no effect on
    /// other models
    #[arg(long)]
    least_memory: bool,
    /// Move data that exceeds the budget to host memory; auto: not on devices that share the host's
    /// memory. The CPU has no other memory, and moves nothing
    #[arg(long, value_parser = by_name::<Parking>(), default_value = "auto")]
    parking: Parking,
}

impl BudgetArgs {
    /// Returns the options of a decode in `tiling`, which measures stages if `profile`.
    pub(super) fn decode(&self, tiling: Tiling, profile: bool) -> DecodeOptions {
        let (memory_budget, parking) = (self.memory_budget, self.parking);
        DecodeOptions {
            profile,
            memory_budget,
            least_memory: self.least_memory,
            parking,
            tiling,
            ..DecodeOptions::default()
        }
    }

    /// Returns the options of an encode, which measures stages if `profile`.
    pub(super) fn encode(&self, profile: bool) -> EncodeOptions {
        let (memory_budget, parking) = (self.memory_budget, self.parking);
        EncodeOptions { profile, memory_budget, least_memory: self.least_memory, parking, ..EncodeOptions::default() }
    }
}

impl ElementArgs {
    /// Defaults for commands without these options.
    pub(super) const AUTO: Self =
        Self { precision: Precision::Auto, matrix_units: false, limits: DecodeLimits::Device };

    /// Returns the option that only shaders can fulfil, if any.
    fn needs_shaders(&self) -> Result<Option<&'static str>> {
        let precision = (self.precision == Precision::Fast).then_some("--precision fast");
        let limits = (self.limits == DecodeLimits::WebgpuDefault).then_some("--limits webgpu-default");
        Ok(self.matrix_units()?.then_some("--matrix-units").or(precision).or(limits))
    }

    /// Returns true if the device must be opened with matrix units, which only `fast` uses.
    fn matrix_units(&self) -> Result<bool> {
        if self.matrix_units && self.precision != Precision::Fast {
            let found = format!("--precision {}", self.precision.name());
            return Err(Error::input("--matrix-units", "use with --precision fast", found));
        }
        Ok(self.matrix_units)
    }
}

/// Opens the device that the options ask for: an adapter, with the kernels that were measured on
/// it, or the machine's own cores.
pub(super) async fn open_device(device: &DeviceArgs, elements: &ElementArgs) -> Result<Device> {
    let named = device.adapter.as_ref().map(|_| "--adapter");
    let options = DeviceOptions {
        choice: device.device,
        shaders: named.or(elements.needs_shaders()?),
        gpu: GpuOptions {
            adapter: device.adapter.clone(),
            webgpu_default_limits: elements.limits == DecodeLimits::WebgpuDefault,
            matrix_units: elements.matrix_units()?,
            ..GpuOptions::default()
        },
        cpu: CpuOptions { threads: device.threads, ..CpuOptions::default() },
    };
    Ok(match timed("open device", Device::open(&options)).await? {
        Device::Gpu(gpu) if !device.no_tune => Device::Gpu(tuned(gpu)),
        opened => opened,
    })
}

/// Loads the weights that `options` ask for, with a progress bar.
pub(super) async fn load(device: &Device, checkpoint: &Checkpoint, options: LoadOptions) -> Result<Vae> {
    let phase = Phase::of_bytes("load");
    let bar = phase.bar();
    device.watch(Some(Arc::new(move |now: Preparing<'_>| {
        if let Preparing::Weights { done, total, tensor } = now {
            bar.show(done.0, total.0, tensor);
        }
    })));
    let loaded = Vae::load(device, checkpoint, options).await;
    device.watch(None);
    let vae = loaded?;
    phase.end();
    Ok(vae)
}
