//! Native programs: all adapters of the machine, threads that compile and poll, and host memory
//! that the process owns.

mod compiling;
mod foreign;
mod host_bytes;
mod polling;
mod scopes;

use std::sync::Arc;

pub(in crate::gpu) use self::compiling::compile_all;
pub use self::foreign::ForeignBuffer;
pub use self::host_bytes::HostBytes;
pub(in crate::gpu) use self::polling::Poller;
pub(in crate::gpu) use self::scopes::Scopes;
use crate::execution::AdapterReport;
use crate::gpu::options::{GpuOptions, NO_ADAPTER_ADVICE};

/// Returns all adapters, the best first.
pub(in crate::gpu) async fn enumerate(GpuOptions { low_power, .. }: &GpuOptions) -> Vec<wgpu::Adapter> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let mut adapters = instance.enumerate_adapters(wgpu::Backends::PRIMARY).await;
    adapters.sort_by_key(|adapter| rank(adapter.get_info().device_type, *low_power));
    adapters
}

fn rank(device_type: wgpu::DeviceType, low_power: bool) -> u32 {
    match device_type {
        wgpu::DeviceType::DiscreteGpu => u32::from(low_power),
        wgpu::DeviceType::IntegratedGpu => u32::from(!low_power),
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    }
}

impl GpuOptions {
    pub(in crate::gpu) fn wants_matrix_units(&self) -> bool {
        self.matrix_units
    }
}

/// Returns advice for a machine without any adapter.
pub(in crate::gpu) fn no_adapter_advice() -> &'static str {
    NO_ADAPTER_ADVICE
}

/// Returns the report as it is: natively all facts are known from the start.
pub(in crate::gpu) fn as_named(report: AdapterReport, _: &wgpu::Device) -> AdapterReport {
    report
}

/// Requests a device.
pub(in crate::gpu) fn request_device(
    adapter: &wgpu::Adapter,
    descriptor: &wgpu::DeviceDescriptor<'_>,
) -> impl Future<Output = std::result::Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError>> {
    adapter.request_device(descriptor)
}

/// Calls `keep` with the message of every error that no scope catches.
pub(in crate::gpu) fn on_uncaptured_error(device: &wgpu::Device, keep: impl Fn(String) + Send + Sync + 'static) {
    device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| keep(error.to_string())));
}

/// Does nothing: dropping the last handle of a device destroys it.
pub(in crate::gpu) fn drop_device(_: &wgpu::Device) {}
