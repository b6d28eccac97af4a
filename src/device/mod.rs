//! Devices: a GPU or the host's own cores, their adapters and limits as plain data, their memory,
//! and their errors.

mod buffer;
#[cfg(not(target_arch = "wasm32"))]
mod options;
mod prepared;
mod states;

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;

pub(crate) use self::buffer::DeviceBuffer;
#[cfg(not(target_arch = "wasm32"))]
pub use self::options::{DeviceChoice, DeviceOptions};
pub(crate) use self::prepared::{LoadedWeight, Prepared};
pub(crate) use self::states::ClipStates;
pub use crate::cpu::{Cpu, CpuOptions};
#[cfg(all(target_arch = "wasm32", feature = "threads"))]
pub(crate) use crate::cpu::{break_thread, run_thread, thread_broke};
pub use crate::error::DeviceError;
use crate::error::Result;
pub use crate::execution::{AdapterReport, Ledger};
use crate::execution::{Listener, Preparing};
use crate::gpu::Gpu;
pub use crate::gpu::{GpuBuffer, adapters};
use crate::kernels::choice::KernelChoice;
pub use crate::limits::{DeviceKind, DeviceLimits, MatrixUnits, Vendor};

/// Work on a device. It is boxed where a device is chosen: a module of a browser has one kind of
/// device, and then the compiler drops the code for the other.
pub(crate) type Work<'a, T> = Pin<Box<Working<'a, T>>>;

wasm_not! {
    Send;
    /// A future of such work.
    pub(crate) type Working<'a, T> = dyn Future<Output = Result<T>> + 'a
}

/// A device that can run plans. Cheap to clone; all clones are one device.
///
/// ```no_run
/// # async fn open() -> wgvae::Result<()> {
/// use wgvae::device::{Device, DeviceOptions};
/// use wgvae::{Checkpoint, LoadOptions, Vae};
///
/// let device = Device::open(&DeviceOptions::default()).await?;
/// println!("on {}", device.adapter().name);
/// let checkpoint = Checkpoint::open("sd-vae-ft-mse").await?;
/// let vae = Vae::load(&device, &checkpoint, LoadOptions::default()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub enum Device {
    /// A GPU, or a driver that emulates one.
    Gpu(Gpu),
    /// The host's own cores, without a driver.
    Cpu(Cpu),
}

impl From<&Self> for Device {
    fn from(device: &Self) -> Self {
        device.clone()
    }
}

impl From<Gpu> for Device {
    fn from(gpu: Gpu) -> Self {
        Self::Gpu(gpu)
    }
}

impl From<Cpu> for Device {
    fn from(cpu: Cpu) -> Self {
        Self::Cpu(cpu)
    }
}

impl From<&Gpu> for Device {
    fn from(gpu: &Gpu) -> Self {
        Self::Gpu(gpu.clone())
    }
}

impl From<&Cpu> for Device {
    fn from(cpu: &Cpu) -> Self {
        Self::Cpu(cpu.clone())
    }
}

/// Evaluates an expression for the device of either kind.
macro_rules! either {
    ($self:ident, $device:ident => $value:expr) => {
        match $self {
            Device::Gpu($device) => $value,
            Device::Cpu($device) => $value,
        }
    };
}

impl Device {
    /// Returns the adapter, with the limits and features that the device was opened with.
    pub fn adapter(&self) -> &AdapterReport {
        either!(self, device => device.adapter())
    }

    /// Returns the limits that plans for this device must keep.
    pub fn limits(&self) -> &DeviceLimits {
        either!(self, device => device.limits())
    }

    /// Returns the kernels that plans for this device use.
    #[doc(hidden)]
    pub fn kernels(&self) -> &KernelChoice {
        either!(self, device => device.kernels())
    }

    /// Returns the count of the bytes of all buffers that this crate created on this device.
    pub fn ledger(&self) -> &Ledger {
        either!(self, device => device.ledger())
    }

    /// Returns the bytes that the driver's allocator has handed out, and those that it has
    /// reserved. `None` if it cannot tell, or if there is no driver.
    pub fn allocator_bytes(&self) -> Option<(u64, u64)> {
        self.gpu().and_then(Gpu::allocator_bytes)
    }

    /// Returns the number of pipelines compiled so far, and the time that compiling took.
    pub fn compiled(&self) -> (usize, std::time::Duration) {
        self.gpu().map(Gpu::compiled).unwrap_or_default()
    }

    /// Returns the number of threads of the host that may work for this device.
    pub(crate) fn threads(&self) -> usize {
        match self {
            Self::Gpu(_) if cfg!(target_arch = "wasm32") => 1,
            Self::Gpu(_) => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            Self::Cpu(cpu) => cpu.threads(),
        }
    }

    /// Sets the listener that hears the progress of loading weights and compiling kernels, from now
    /// on. `None` removes it.
    pub fn watch(&self, listener: Option<Arc<Listener>>) {
        either!(self, device => device.watch(listener));
    }

    pub(crate) fn tell(&self, now: Preparing<'_>) {
        either!(self, device => device.tell(now));
    }

    /// Waits until the device has finished all submitted work. Dropped buffers are free then.
    pub(crate) fn idle(&self) -> Work<'_, ()> {
        match self {
            Self::Gpu(gpu) => Box::pin(gpu.idle()),
            Self::Cpu(_) => Box::pin(ready(Ok(()))),
        }
    }

    /// Returns the GPU, if this is one.
    pub fn gpu(&self) -> Option<&Gpu> {
        match self {
            Self::Gpu(gpu) => Some(gpu),
            Self::Cpu(_) => None,
        }
    }
}
