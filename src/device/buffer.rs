//! A weight in the memory of a device.

use std::future::ready;
use std::sync::Arc;

use super::{Device, Work};
use crate::cpu::CpuBuffer;
use crate::execution::{HasCores, HasGpus};
use crate::gpu::GpuBuffer;

/// A buffer in the memory of a device.
#[derive(Debug)]
pub(crate) enum DeviceBuffer {
    Gpu(HasGpus, GpuBuffer),
    /// Prepared plans hold it, too.
    Cpu(HasCores, Arc<CpuBuffer>),
}

impl DeviceBuffer {
    /// Creates a buffer that holds `data`.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the device has too little memory or is lost.
    pub(crate) fn with_data<'a>(device: &'a Device, name: &'a str, data: &'a [u8]) -> Work<'a, Self> {
        match device {
            Device::Gpu(gpu) => {
                Box::pin(async move { Ok(Self::Gpu(gpu.here, GpuBuffer::with_data(gpu, name, data).await?)) })
            }
            Device::Cpu(cpu) => {
                let made = CpuBuffer::with_data(cpu, name, data);
                Box::pin(ready(made.map(|buffer| Self::Cpu(cpu.here, Arc::new(buffer)))))
            }
        }
    }
}
