//! Devices and inputs that the caller made.

use wasm_bindgen::JsValue;

use super::{ForeignBuffer, adopt};
use crate::error::Result;
use crate::gpu::{Gpu, GpuOptions, Input, Opened, adapter};

impl Gpu {
    /// Uses a `GPUDevice` that the caller made and goes on using, with the features and limits that
    /// it has. Never destroys it. `gpu`: see [`GpuOptions::gpu`].
    ///
    /// # Errors
    /// [`Error::Device`] if `device` is no `GPUDevice`, or too small for any plan.
    pub async fn adopt(device: &JsValue, gpu: Option<JsValue>) -> Result<Self> {
        let here = Self::check()?;
        let options = GpuOptions { gpu, ..GpuOptions::default() };
        let adapter = adapter::choose(&options).await?;
        let (device, queue) = adopt(&adapter, &wgpu::DeviceDescriptor::default(), device).await?;
        let report = adapter::of_device(adapter::report(&adapter), &device, &options);
        adapter::check(&report.name, &report.limits)?;
        Ok(Self::of(Opened { device, queue, report, adopted: true, here }, None))
    }
}

impl<'a> Input<'a> {
    /// Makes the input from image `index` of several in the caller's buffer, of `bytes` each.
    pub(crate) fn foreign(buffer: &'a ForeignBuffer, index: u32, bytes: u64) -> Self {
        Self::Foreign { buffer, at: u64::from(index) * bytes, bytes }
    }
}
