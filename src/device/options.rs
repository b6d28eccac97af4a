//! Options that choose a device.

use super::{Cpu, CpuOptions, Device, adapters};
use crate::error::{Error, Result};
use crate::gpu::{Gpu, GpuOptions};
use crate::limits::DeviceKind;

/// The kind of device to open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum DeviceChoice {
    /// An adapter, if the machine has a GPU or if an option needs shaders; else its own cores.
    #[default]
    Auto,
    /// An adapter: the best one, which may be a CPU driver, or the one that is named.
    Gpu,
    /// The machine's own cores, without a driver.
    Cpu,
}

crate::named!(DeviceChoice, "device": Auto = "auto", Gpu = "gpu", Cpu = "cpu");

/// Options that choose a device; see [`Device::open`].
#[derive(Debug, Clone, Default)]
pub struct DeviceOptions {
    /// The kind of device.
    pub choice: DeviceChoice,
    /// The name of another option that only shaders can fulfil, such as `precision fast`, for the
    /// error if the choice is the CPU.
    pub shaders: Option<&'static str>,
    /// Options of the adapter. If they name one, or ask for matrix units or WebGPU's default
    /// limits, they need shaders, too.
    pub gpu: GpuOptions,
    /// Options of the machine's own cores. A GPU that [`DeviceChoice::Auto`] finds does not use
    /// them.
    pub cpu: CpuOptions,
}

impl DeviceOptions {
    /// Returns the name of an option that only shaders can fulfil, if there is one.
    fn needs_shaders(&self) -> Option<&'static str> {
        let GpuOptions { adapter, matrix_units, webgpu_default_limits, .. } = &self.gpu;
        let named = adapter.as_ref().map(|_| "the name of an adapter");
        let units = matrix_units.then_some("matrix units");
        self.shaders.or(named).or(units).or(webgpu_default_limits.then_some("WebGPU's default limits"))
    }
}

impl Device {
    /// Opens the device that `options` choose.
    ///
    /// # Errors
    /// [`Error::Input`] if the choice is the CPU and an option needs shaders, or if the choice or
    /// an option asks for a GPU and there is a number of threads; see also [`Gpu::request`] and
    /// [`Cpu::new`].
    pub async fn open(options: &DeviceOptions) -> Result<Self> {
        let shaders = options.needs_shaders();
        let cores = match (options.choice, shaders) {
            (DeviceChoice::Cpu, Some(option)) => {
                return Err(Error::input("device cpu", "no option that needs shaders", option));
            }
            (DeviceChoice::Gpu, _) | (DeviceChoice::Auto, Some(_)) if options.cpu.threads.is_some() => {
                let found = shaders.unwrap_or("device gpu");
                return Err(Error::input("threads", "use with device cpu, and no option for a GPU", found));
            }
            (DeviceChoice::Cpu, None) => true,
            (DeviceChoice::Gpu, _) | (DeviceChoice::Auto, Some(_)) => false,
            (DeviceChoice::Auto, None) => !has_gpu().await,
        };
        if cores { Cpu::new(&options.cpu).map(Self::Cpu) } else { Gpu::request(&options.gpu).await.map(Self::Gpu) }
    }
}

/// True if the machine has a GPU: an adapter that is no CPU driver.
async fn has_gpu() -> bool {
    let adapters = adapters(None).await.unwrap_or_default();
    adapters.iter().any(|(_, adapter)| adapter.limits.kind == DeviceKind::Gpu)
}
