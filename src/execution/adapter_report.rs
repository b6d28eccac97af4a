//! The description of an adapter as plain data.

use serde::Serialize;

use crate::kernels::choice::KernelChoice;
use crate::limits::{DeviceLimits, MatrixUnits};

/// An adapter and its capabilities, as plain data.
#[derive(Debug, Clone, Serialize)]
pub struct AdapterReport {
    /// The name, as the driver gives it.
    pub name: String,
    /// The backend: `Vulkan`, `Metal`, `Dx12`, `BrowserWebGpu`, or `Cpu` for the host's own cores.
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
    /// name, backend, driver or type. A number of three digits or more, such as 4090, is part of a
    /// name.
    pub fn matches(&self, index: usize, wanted: &str) -> bool {
        if let Ok(number @ ..100) = wanted.parse::<usize>() {
            return number == index;
        }
        let wanted = wanted.to_ascii_lowercase();
        [&self.name, &self.backend, &self.driver, &self.device_type]
            .iter()
            .any(|text| text.to_ascii_lowercase().contains(&wanted))
    }
}
