//! Finds adapters, describes them as plain data, and opens a device on one.

use serde::Serialize;

use super::matrix_units;
use crate::error::{DeviceError, Error, Result};
use crate::kernels::choice::Choice;
use crate::kernels::shipped;
use crate::limits::{DeviceKind, DeviceLimits, MatrixUnits, Vendor};
use crate::tensor::Bytes;

/// Which adapter to open, and within which limits.
#[derive(Debug, Clone, Default)]
pub struct GpuOptions {
    /// Part of the adapter's name, driver or backend, in any case; or its index as [`adapters`]
    /// lists them. `None`: the best one.
    pub adapter: Option<String>,
    /// Plan with the kernels and tiles of this kind of device and of this vendor, whatever the
    /// adapter is. For tests and comparisons.
    pub kernels_of: Option<(DeviceKind, Vendor)>,
    /// Ask the device for no more than WebGPU's default limits.
    pub webgpu_default_limits: bool,
    /// Open the device without `shader-f16`, as if it had none: halves are packed then. For tests
    /// and comparisons.
    pub without_shader_f16: bool,
    /// Open the device with its matrix units. [`Precision::Fast`](crate::Precision::Fast) then
    /// multiplies on them wherever the channels of a convolution fill whole matrices; its other
    /// convolutions, and other precisions, are computed as without. An adapter that has none is
    /// refused. Rests on what wgpu calls experimental.
    #[cfg(not(target_arch = "wasm32"))]
    pub matrix_units: bool,
    /// An integrated GPU before a discrete one: saves power.
    pub low_power: bool,
    /// Let buffers take no more than this: beyond it allocations fail, as they do on a device
    /// without more memory.
    pub memory_limit: Option<Bytes>,
    /// The `GPU` to ask, where it is not that of a page or of a worker.
    #[cfg(target_arch = "wasm32")]
    pub gpu: Option<wasm_bindgen::JsValue>,
}

impl GpuOptions {
    #[cfg(not(target_arch = "wasm32"))]
    fn wants_matrix_units(&self) -> bool {
        self.matrix_units
    }

    #[cfg(target_arch = "wasm32")]
    #[expect(clippy::unused_self, reason = "natively it can be asked for")]
    fn wants_matrix_units(&self) -> bool {
        false
    }
}

/// An adapter and what it offers, as plain data.
#[derive(Debug, Clone, Serialize)]
pub struct AdapterReport {
    /// Name, as the driver gives it.
    pub name: String,
    /// `Vulkan`, `Metal`, `Dx12` or `BrowserWebGpu`.
    pub backend: String,
    /// `DiscreteGpu`, `IntegratedGpu`, `VirtualGpu`, `Cpu` or `Other`.
    pub device_type: String,
    /// Driver and its version.
    pub driver: String,
    /// PCI vendor and device.
    pub pci_id: String,
    /// Smallest and largest subgroup.
    pub subgroup_size: [u32; 2],
    /// Whether kernels could use subgroup operations.
    pub subgroups: bool,
    /// Cooperative matrix configurations, `MxNxK input->accumulator`.
    pub cooperative_matrices: Vec<String>,
    /// Those of them that kernels use on a device that is opened with `GpuOptions::matrix_units`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(target_arch = "wasm32", serde(skip))]
    pub matrix_units: Option<MatrixUnits>,
    /// What plans may use: what a device is opened with, which is less than the adapter has where
    /// no kernel wants more.
    pub limits: DeviceLimits,
    /// The kernels it would get.
    pub kernels: Choice,
}

/// The adapters that `wanted` means, or all, with their numbers. The best one has number 0.
///
/// # Errors
/// [`DeviceError::NoAdapter`] when there is none, with what there is instead, or what to install.
pub async fn adapters(wanted: Option<&str>) -> Result<Vec<(usize, AdapterReport)>> {
    let all: Vec<AdapterReport> = enumerate(&GpuOptions::default()).await.iter().map(report).collect();
    let is_wanted = |index: usize| wanted.is_none_or(|wanted| all[index].matches(index, wanted));
    let found: Vec<(usize, AdapterReport)> =
        (0..all.len()).filter(|index| is_wanted(*index)).map(|index| (index, all[index].clone())).collect();
    if found.is_empty() { Err(no_match(&all, wanted)) } else { Ok(found) }
}

/// A browser shows one adapter: the one it would give to anybody who prefers this.
#[cfg(target_arch = "wasm32")]
async fn enumerate(options: &GpuOptions) -> Vec<wgpu::Adapter> {
    let new = || wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let Some(instance) = super::browser::with_gpu(options.gpu.as_ref(), new) else { return Vec::new() };
    let power_preference =
        if options.low_power { wgpu::PowerPreference::LowPower } else { wgpu::PowerPreference::HighPerformance };
    let options = wgpu::RequestAdapterOptions { power_preference, ..Default::default() };
    instance.request_adapter(&options).await.into_iter().collect()
}

#[cfg(not(target_arch = "wasm32"))]
async fn enumerate(GpuOptions { low_power, .. }: &GpuOptions) -> Vec<wgpu::Adapter> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let mut adapters = instance.enumerate_adapters(wgpu::Backends::PRIMARY).await;
    adapters.sort_by_key(|adapter| rank(adapter.get_info().device_type, *low_power));
    adapters
}

#[cfg(not(target_arch = "wasm32"))]
fn rank(device_type: wgpu::DeviceType, low_power: bool) -> u32 {
    match device_type {
        wgpu::DeviceType::DiscreteGpu => u32::from(low_power),
        wgpu::DeviceType::IntegratedGpu => u32::from(!low_power),
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    }
}

pub(super) async fn choose(options: &GpuOptions) -> Result<wgpu::Adapter> {
    let adapters = enumerate(options).await;
    let reports: Vec<AdapterReport> = adapters.iter().map(report).collect();
    let index = match &options.adapter {
        None => (!reports.is_empty()).then_some(0),
        Some(wanted) => reports.iter().enumerate().position(|(index, report)| report.matches(index, wanted)),
    };
    index
        .and_then(|index| adapters.into_iter().nth(index))
        .ok_or_else(|| no_match(&reports, options.adapter.as_deref()))
}

/// What to do where there is none.
const NO_ADAPTER_ADVICE: &str = "install a driver for the GPU, or a CPU driver (Debian and Ubuntu: apt install mesa-vulkan-drivers libvulkan1); \
                                 VK_DRIVER_FILES, if set, must name a driver that exists";

/// Why none of `adapters` is what was asked for, and what there is.
fn no_match(adapters: &[AdapterReport], wanted: Option<&str>) -> Error {
    let listed: Vec<String> =
        adapters.iter().enumerate().map(|(index, adapter)| format!("{index}: {}", adapter.name)).collect();
    let reason = match wanted {
        Some(wanted) if !listed.is_empty() => format!("none matches \"{wanted}\" (there are: {})", listed.join(", ")),
        #[cfg(target_arch = "wasm32")]
        _ if super::browser::is_browser() => format!("none found; {}", super::browser::NO_ADAPTER_ADVICE),
        _ => format!("none found; {NO_ADAPTER_ADVICE}"),
    };
    Error::Device(DeviceError::NoAdapter(reason))
}

impl AdapterReport {
    /// Whether `wanted` means this adapter, number `index` of the list: its number, or part of its
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

pub(super) fn report(adapter: &wgpu::Adapter) -> AdapterReport {
    let info = adapter.get_info();
    let (features, limits) = wanted(adapter, &GpuOptions::default());
    let limits = limits_from(&limits, features, &info);
    let matrices = adapter.cooperative_matrix_properties();
    let driver = format!("{} {}", info.driver, info.driver_info).trim().to_owned();
    AdapterReport {
        name: info.name,
        backend: format!("{:?}", info.backend),
        device_type: format!("{:?}", info.device_type),
        pci_id: format!("{:04x}:{:04x}", info.vendor, info.device),
        subgroup_size: [info.subgroup_min_size, info.subgroup_max_size],
        subgroups: adapter.features().contains(wgpu::Features::SUBGROUP),
        cooperative_matrices: matrices
            .iter()
            .map(|matrix| {
                format!(
                    "{}x{}x{} {:?}->{:?}",
                    matrix.m_size, matrix.n_size, matrix.k_size, matrix.ab_type, matrix.cr_type
                )
            })
            .collect(),
        matrix_units: matrix_units::offered(adapter),
        kernels: kernels(&limits, &driver),
        driver,
        limits,
    }
}

/// The kernels of a device that nobody has measured: those of the rules, or what was measured on
/// `driver` elsewhere. Browsers name no driver.
fn kernels(limits: &DeviceLimits, driver: &str) -> Choice {
    let rules = Choice::for_device(limits);
    let shipped = if cfg!(target_arch = "wasm32") { None } else { shipped::tile(driver) };
    let shipped = shipped.map(|tile| rules.with_tile(tile));
    shipped.filter(|shipped| shipped.check(limits).is_ok()).unwrap_or(rules)
}

/// The report of an adapter once one of its devices is open: with the limits and features of that
/// device, and what a browser tells only then.
pub(super) fn of_device(report: AdapterReport, device: &wgpu::Device, options: &GpuOptions) -> AdapterReport {
    let limits = limits_from(&device.limits(), device.features(), &device.adapter_info());
    let AdapterReport { name, limits, .. } = as_named(AdapterReport { limits, ..report.clone() }, device);
    let (kind, vendor) = options.kernels_of.unwrap_or((limits.kind, limits.vendor));
    let matrix_units = report.matrix_units.filter(|_| options.wants_matrix_units());
    let limits = DeviceLimits { kind, vendor, matrix_units, ..limits };
    AdapterReport { name, kernels: kernels(&limits, &report.driver), limits, ..report }
}

/// With the name that the browser gives once there is a device, and with what its vendor tells of
/// the memory.
#[cfg(target_arch = "wasm32")]
fn as_named(report: AdapterReport, device: &wgpu::Device) -> AdapterReport {
    let info = super::browser::adapter_info(device);
    let name = Some(report.name).filter(|name| !name.is_empty()).or(info.name).unwrap_or_else(|| "unnamed".to_owned());
    let quads = super::browser::has_subgroups(device) && report.subgroup_size[0] >= QUAD;
    let vendor = info.vendor.as_deref().map_or(report.limits.vendor, Vendor::from_name);
    let unified_memory = report.limits.unified_memory || shares_memory(vendor);
    let limits = DeviceLimits { unified_memory, vendor, quads, ..report.limits };
    AdapterReport { name, limits, ..report }
}

/// Natively all is known from the start.
#[cfg(not(target_arch = "wasm32"))]
fn as_named(report: AdapterReport, _: &wgpu::Device) -> AdapterReport {
    report
}

/// Whether the memory of a GPU of this vendor is taken for the host's. Browsers do not tell, they
/// only name the vendor: what Apple, Arm, Qualcomm and the like make shares it always, Intel's and
/// AMD's do so as often as not, and only NVIDIA makes little else than cards. An unnamed one counts
/// as shared: to leave a picture's parts in the host's memory gains nothing there, and computing
/// them again is right everywhere.
#[cfg_attr(not(any(target_arch = "wasm32", test)), expect(dead_code, reason = "natively the driver tells"))]
pub(crate) fn shares_memory(vendor: Vendor) -> bool {
    vendor != Vendor::Nvidia
}

/// Invocations that can swap values.
const QUAD: u32 = 4;

fn limits_from(limits: &wgpu::Limits, features: wgpu::Features, info: &wgpu::AdapterInfo) -> DeviceLimits {
    let kind = match info.device_type {
        wgpu::DeviceType::Cpu => DeviceKind::Cpu,
        wgpu::DeviceType::DiscreteGpu
        | wgpu::DeviceType::IntegratedGpu
        | wgpu::DeviceType::VirtualGpu
        | wgpu::DeviceType::Other => DeviceKind::Gpu,
    };
    DeviceLimits {
        max_storage_buffer_binding_size: Bytes(limits.max_storage_buffer_binding_size),
        max_buffer_size: Bytes(limits.max_buffer_size),
        max_storage_buffers_per_shader_stage: limits.max_storage_buffers_per_shader_stage,
        max_compute_workgroups_per_dimension: limits.max_compute_workgroups_per_dimension,
        max_compute_invocations_per_workgroup: limits.max_compute_invocations_per_workgroup,
        max_compute_workgroup_storage_size: Bytes(u64::from(limits.max_compute_workgroup_storage_size)),
        min_uniform_buffer_offset_alignment: limits.min_uniform_buffer_offset_alignment,
        shader_f16: features.contains(wgpu::Features::SHADER_F16),
        timestamp_query: features.contains(wgpu::Features::TIMESTAMP_QUERY),
        quads: features.contains(wgpu::Features::SUBGROUP) && info.subgroup_min_size >= QUAD,
        kind,
        unified_memory: matches!(info.device_type, wgpu::DeviceType::Cpu | wgpu::DeviceType::IntegratedGpu),
        vendor: Vendor::from_id(info.vendor),
        matrix_units: None,
    }
}

/// What an adapter could give a device at most.
pub(super) fn offered(adapter: &wgpu::Adapter) -> DeviceLimits {
    limits_from(&adapter.limits(), adapter.features(), &adapter.get_info())
}

/// What a device is asked for: the features that kernels use, of subgroups only on a processor, and
/// WebGPU's default limits, which are enough for every kernel, with larger buffers and bindings
/// where the adapter has them.
fn wanted(adapter: &wgpu::Adapter, options: &GpuOptions) -> (wgpu::Features, wgpu::Limits) {
    let mut features = wgpu::Features::SHADER_F16 | wgpu::Features::TIMESTAMP_QUERY;
    features.set(wgpu::Features::SHADER_F16, !options.without_shader_f16);
    features.set(wgpu::Features::SUBGROUP, adapter.get_info().device_type == wgpu::DeviceType::Cpu);
    if options.wants_matrix_units() {
        features |= matrix_units::FEATURES;
    }
    let mut limits = wgpu::Limits::default();
    if !options.webgpu_default_limits {
        let offered = adapter.limits();
        limits.max_storage_buffer_binding_size = offered.max_storage_buffer_binding_size;
        limits.max_buffer_size = offered.max_buffer_size;
        limits.min_uniform_buffer_offset_alignment = offered.min_uniform_buffer_offset_alignment;
    }
    (adapter.features() & features, limits)
}

/// Every plan needs WebGPU's default limits; less is an adapter that no browser would offer either.
pub(super) fn check(adapter: &str, limits: &DeviceLimits) -> Result<()> {
    let least = DeviceLimits::webgpu_default();
    let pairs = [
        (
            "maxStorageBufferBindingSize",
            least.max_storage_buffer_binding_size.0,
            limits.max_storage_buffer_binding_size.0,
        ),
        ("maxBufferSize", least.max_buffer_size.0, limits.max_buffer_size.0),
        (
            "maxStorageBuffersPerShaderStage",
            u64::from(least.max_storage_buffers_per_shader_stage),
            u64::from(limits.max_storage_buffers_per_shader_stage),
        ),
        (
            "maxComputeInvocationsPerWorkgroup",
            u64::from(least.max_compute_invocations_per_workgroup),
            u64::from(limits.max_compute_invocations_per_workgroup),
        ),
        (
            "maxComputeWorkgroupsPerDimension",
            u64::from(least.max_compute_workgroups_per_dimension),
            u64::from(limits.max_compute_workgroups_per_dimension),
        ),
    ];
    match pairs.into_iter().find(|(_, needed, found)| found < needed) {
        None => Ok(()),
        Some((limit, needed, found)) => Err(Error::Device(DeviceError::TooSmall {
            adapter: adapter.to_owned(),
            limit: limit.to_owned(),
            needed,
            found,
        })),
    }
}

pub(super) async fn open(
    adapter: &wgpu::Adapter,
    options: &GpuOptions,
    report: &AdapterReport,
) -> Result<(wgpu::Device, wgpu::Queue)> {
    let (required_features, required_limits) = wanted(adapter, options);
    let experimental_features = if options.wants_matrix_units() {
        let units = report.matrix_units.filter(|_| required_features.contains(wgpu::Features::SHADER_F16));
        matrix_units::check(&report.name, units, &report.cooperative_matrices)?;
        matrix_units::leave()
    } else {
        wgpu::ExperimentalFeatures::disabled()
    };
    let descriptor = wgpu::DeviceDescriptor {
        label: Some("wgvae"),
        required_features,
        required_limits,
        experimental_features,
        // Blocks no larger than needed: the report compares what the allocator reserves with what
        // we asked for.
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        ..Default::default()
    };
    #[cfg(target_arch = "wasm32")]
    let request = super::browser::request_device(adapter, &descriptor);
    #[cfg(not(target_arch = "wasm32"))]
    let request = adapter.request_device(&descriptor);
    request.await.map_err(|error| {
        Error::Device(DeviceError::Refused { adapter: report.name.clone(), reason: error.to_string() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_on_a_driver_goes_before_the_rules() {
        let driver = "llvmpipe Mesa 26.2.6-1 (LLVM 22.1.8)";
        let limits = DeviceLimits { kind: DeviceKind::Cpu, quads: true, ..DeviceLimits::webgpu_default() };
        let (rules, shipped) = (Choice::for_device(&limits), shipped::tile(driver).expect("a row"));
        assert_ne!(shipped, rules.winograd_tile, "a row that changes nothing");
        assert_eq!(kernels(&limits, driver), rules.with_tile(shipped));
        assert_eq!(kernels(&limits, "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)"), rules);
        // Neither a device without quads nor one that passes for a GPU can have that tile.
        for other in [DeviceLimits { quads: false, ..limits.clone() }, DeviceLimits { kind: DeviceKind::Gpu, ..limits }]
        {
            assert_eq!(kernels(&other, driver), Choice::for_device(&other));
        }
    }

    #[test]
    fn an_adapter_below_the_default_limits_is_refused_with_the_numbers() {
        assert!(check("card", &DeviceLimits::webgpu_default()).is_ok());
        let limits = DeviceLimits { max_buffer_size: Bytes(64 << 20), ..DeviceLimits::webgpu_default() };
        let message = check("card", &limits).expect_err("64 MiB").to_string();
        for part in ["\"card\"", "maxBufferSize", "67108864", "268435456"] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn in_browsers_only_cards_count_as_memory_of_their_own() {
        for vendor in ["apple", "arm", "qualcomm", "img-tec", "samsung", "intel", "amd", "microsoft", ""] {
            assert!(shares_memory(Vendor::from_name(vendor)), "{vendor}");
        }
        assert!(["nvidia", "NVIDIA"].iter().all(|vendor| !shares_memory(Vendor::from_name(vendor))));
    }
}
