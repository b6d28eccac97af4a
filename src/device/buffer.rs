//! A weight in the memory of a device.

#[cfg(not(target_arch = "wasm32"))]
use std::sync::Arc;

use super::Device;
#[cfg(not(target_arch = "wasm32"))]
use crate::cpu::CpuBuffer;
use crate::error::Result;
use crate::gpu::GpuBuffer;

/// A buffer in the memory of a device.
#[derive(Debug)]
pub(crate) enum DeviceBuffer {
    Gpu(GpuBuffer),
    /// Prepared plans hold it, too.
    #[cfg(not(target_arch = "wasm32"))]
    Cpu(Arc<CpuBuffer>),
}

impl DeviceBuffer {
    /// Creates a buffer that holds `data`.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the device has too little memory or is lost.
    pub(crate) async fn with_data(device: &Device, name: &str, data: &[u8]) -> Result<Self> {
        Ok(match device {
            Device::Gpu(gpu) => Self::Gpu(GpuBuffer::with_data(gpu, name, data).await?),
            #[cfg(not(target_arch = "wasm32"))]
            Device::Cpu(cpu) => Self::Cpu(Arc::new(CpuBuffer::with_data(cpu, name, data)?)),
        })
    }
}
