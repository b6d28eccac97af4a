//! Options that choose an adapter, and the description of an adapter as plain data.

use serde::Serialize;

use crate::kernels::choice::KernelChoice;
use crate::limits::{DeviceKind, DeviceLimits, MatrixUnits, Vendor};
use crate::tensor::Bytes;

/// Advice for a machine without any adapter.
pub(super) const NO_ADAPTER_ADVICE: &str = "install a driver for the GPU, or a CPU driver (Debian and Ubuntu: apt install mesa-vulkan-drivers libvulkan1); \
                                 VK_DRIVER_FILES, if set, must name a driver that exists";

/// The number of invocations of a quad.
pub(super) const QUAD: u32 = 4;

/// Options that choose an adapter, and the limits and features of its device.
#[derive(Debug, Clone, Default)]
pub struct GpuOptions {
    /// Part of the adapter's name, backend, driver or type, in any case; or its index in the list
    /// that [`crate::device::adapters`] returns. `None` stands for the best adapter.
    pub adapter: Option<String>,
    /// A kind of device and a vendor whose kernels and tiles are used, whatever the adapter is. For
    /// tests and comparisons.
    pub kernels_of: Option<(DeviceKind, Vendor)>,
    /// True to open the device with no more than WebGPU's default limits.
    pub webgpu_default_limits: bool,
    /// True to open the device without `shader-f16`, so that halves are packed. For tests and
    /// comparisons.
    pub without_shader_f16: bool,
    /// True to open the device with its matrix units. [`Precision::Fast`](crate::Precision::Fast)
    /// then multiplies on them; other precisions do not use them. Opening an adapter without matrix
    /// units returns an error. The feature is experimental in wgpu.
    #[cfg(not(target_arch = "wasm32"))]
    pub matrix_units: bool,
    /// True to prefer an integrated GPU to a discrete one, which saves power.
    pub low_power: bool,
    /// The most bytes that all buffers may take. Allocations beyond it fail, as on a device without
    /// more memory.
    pub memory_limit: Option<Bytes>,
    /// The `GPU` object to use, outside a page and its workers.
    #[cfg(target_arch = "wasm32")]
    pub gpu: Option<wasm_bindgen::JsValue>,
}

/// An adapter and its capabilities, as plain data.
#[derive(Debug, Clone, Serialize)]
pub struct AdapterReport {
    /// The name, as the driver gives it.
    pub name: String,
    /// The backend: `Vulkan`, `Metal`, `Dx12` or `BrowserWebGpu`.
    pub backend: String,
    /// The type: `DiscreteGpu`, `IntegratedGpu`, `VirtualGpu`, `Cpu` or `Other`.
    pub device_type: String,
    /// The driver and its version.
    pub driver: String,
    /// The PCI numbers of the vendor and the device, in hexadecimal: `vvvv:dddd`.
    pub pci_id: String,
    /// The smallest and the largest subgroup, in invocations.
    pub subgroup_size: [u32; 2],
    /// True if kernels could use subgroup operations.
    pub subgroups: bool,
    /// The cooperative matrix configurations, `MxNxK input->accumulator`.
    pub cooperative_matrices: Vec<String>,
    /// The matrix units that kernels use if the device is opened with `GpuOptions::matrix_units`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(target_arch = "wasm32", serde(skip))]
    pub matrix_units: Option<MatrixUnits>,
    /// The limits that plans may use, which are those of the opened device. The adapter may have
    /// more, where no kernel needs it.
    pub limits: DeviceLimits,
    /// The kernels that plans on this adapter would use.
    pub kernels: KernelChoice,
}

impl AdapterReport {
    /// True if `wanted` means this adapter, number `index` of the list: its number, or part of its
    /// name, backend, driver or type.
    pub fn matches(&self, index: usize, wanted: &str) -> bool {
        if let Ok(number) = wanted.parse::<usize>() {
            return number == index;
        }
        let wanted = wanted.to_ascii_lowercase();
        [&self.name, &self.backend, &self.driver, &self.device_type]
            .iter()
            .any(|text| text.to_ascii_lowercase().contains(&wanted))
    }
}
