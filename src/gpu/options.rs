//! Options that choose an adapter.

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
