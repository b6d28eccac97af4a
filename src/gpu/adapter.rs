//! Finds adapters, describes them as plain data, and opens a device on one.

use super::options::{GpuOptions, QUAD};
use super::{matrix_units, platform};
use crate::error::{DeviceError, Error, Result};
use crate::execution::AdapterReport;
use crate::kernels::choice::KernelChoice;
use crate::kernels::shipped;
use crate::limits::{DeviceKind, DeviceLimits, Vendor};
use crate::tensor::Bytes;

/// Returns the adapters that `wanted` matches, or all, with their indices. The best one has index
/// 0.
///
/// # Errors
/// [`DeviceError::NoAdapter`] if none matches. Its message lists the adapters that exist, or says
/// what to install.
pub async fn adapters(wanted: Option<&str>) -> Result<Vec<(usize, AdapterReport)>> {
    let all: Vec<AdapterReport> = platform::enumerate(&GpuOptions::default()).await.iter().map(report).collect();
    let is_wanted = |index: usize| wanted.is_none_or(|wanted| all[index].matches(index, wanted));
    let found: Vec<(usize, AdapterReport)> =
        (0..all.len()).filter(|index| is_wanted(*index)).map(|index| (index, all[index].clone())).collect();
    if found.is_empty() { Err(no_match(&all, wanted)) } else { Ok(found) }
}

pub(super) async fn choose(options: &GpuOptions) -> Result<wgpu::Adapter> {
    let adapters = platform::enumerate(options).await;
    let reports: Vec<AdapterReport> = adapters.iter().map(report).collect();
    let index = match &options.adapter {
        None => (!reports.is_empty()).then_some(0),
        Some(wanted) => reports.iter().enumerate().position(|(index, report)| report.matches(index, wanted)),
    };
    index
        .and_then(|index| adapters.into_iter().nth(index))
        .ok_or_else(|| no_match(&reports, options.adapter.as_deref()))
}

/// Makes the error that none of `adapters` matches `wanted`, with a list of the adapters or with
/// advice.
fn no_match(adapters: &[AdapterReport], wanted: Option<&str>) -> Error {
    let listed: Vec<String> =
        adapters.iter().enumerate().map(|(index, adapter)| format!("{index}: {}", adapter.name)).collect();
    let reason = match wanted {
        Some(wanted) if !listed.is_empty() => format!("none matches \"{wanted}\" (there are: {})", listed.join(", ")),
        _ => format!("none found; {}", platform::no_adapter_advice()),
    };
    Error::Device(DeviceError::NoAdapter(reason))
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

/// Returns the kernels of a device that was not measured: those of the rules, with the tile that
/// was measured elsewhere on `driver`, if any. Browsers name no driver.
fn kernels(limits: &DeviceLimits, driver: &str) -> KernelChoice {
    let rules = KernelChoice::for_device(limits);
    let shipped = if cfg!(target_arch = "wasm32") { None } else { shipped::tile(driver) };
    let shipped = shipped.map(|tile| rules.with_tile(tile));
    shipped.filter(|shipped| shipped.check(limits).is_ok()).unwrap_or(rules)
}

/// Returns the report of an adapter after one of its devices was opened: with that device's limits
/// and features, and with the facts that a browser gives only then.
pub(super) fn of_device(report: AdapterReport, device: &wgpu::Device, options: &GpuOptions) -> AdapterReport {
    let limits = limits_from(&device.limits(), device.features(), &device.adapter_info());
    let AdapterReport { name, limits, .. } = platform::as_named(AdapterReport { limits, ..report.clone() }, device);
    let matrix_units = report.matrix_units.filter(|_| options.wants_matrix_units());
    let limits = DeviceLimits { matrix_units, ..limits };
    AdapterReport { name, kernels: kernels(&limits, &report.driver), limits, ..report }
}

/// Returns the report of the same device with the kernels of another kind and vendor.
pub(super) fn with_kernels_of(report: AdapterReport, kind: DeviceKind, vendor: Vendor) -> AdapterReport {
    let limits = DeviceLimits { kind, vendor, ..report.limits };
    AdapterReport { kernels: kernels(&limits, &report.driver), limits, ..report }
}

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

/// Returns the largest limits that a device of the adapter could have.
pub(super) fn offered(adapter: &wgpu::Adapter) -> DeviceLimits {
    limits_from(&adapter.limits(), adapter.features(), &adapter.get_info())
}

/// Returns the features and limits to open a device with. The features are those that kernels use;
/// subgroups only on a CPU adapter. The limits are WebGPU's defaults, which are enough for every
/// kernel, with larger buffers and bindings if the adapter has them.
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

/// Checks that an adapter has WebGPU's default limits, which every plan needs. No browser would
/// offer an adapter with less.
pub(super) fn check(adapter: &str, limits: &DeviceLimits) -> Result<()> {
    type Value = fn(&DeviceLimits) -> u64;
    let least = DeviceLimits::webgpu_default();
    let needs: [(&str, Value); 5] = [
        ("maxStorageBufferBindingSize", |limits| limits.max_storage_buffer_binding_size.0),
        ("maxBufferSize", |limits| limits.max_buffer_size.0),
        ("maxStorageBuffersPerShaderStage", |limits| limits.max_storage_buffers_per_shader_stage.into()),
        ("maxComputeInvocationsPerWorkgroup", |limits| limits.max_compute_invocations_per_workgroup.into()),
        ("maxComputeWorkgroupsPerDimension", |limits| limits.max_compute_workgroups_per_dimension.into()),
    ];
    for (limit, value) in needs {
        let (needed, found) = (value(&least), value(limits));
        if found < needed {
            let (adapter, limit) = (adapter.to_owned(), limit.to_owned());
            return Err(Error::Device(DeviceError::TooSmall { adapter, limit, needed, found }));
        }
    }
    Ok(())
}

pub(super) async fn open(
    adapter: &wgpu::Adapter,
    options: &GpuOptions,
    report: &AdapterReport,
) -> Result<(wgpu::Device, wgpu::Queue)> {
    let (required_features, required_limits) = wanted(adapter, options);
    let experimental_features = if options.wants_matrix_units() {
        let units = report.matrix_units.filter(|_| required_features.contains(wgpu::Features::SHADER_F16));
        let backend = adapter.get_info().backend;
        matrix_units::check(&report.name, backend, units, &report.cooperative_matrices)?;
        matrix_units::leave()
    } else {
        wgpu::ExperimentalFeatures::disabled()
    };
    let descriptor = wgpu::DeviceDescriptor {
        label: Some("wgvae"),
        required_features,
        required_limits,
        experimental_features,
        // Blocks no larger than needed: the report compares the bytes that the allocator reserves
        // with those that were requested.
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        ..Default::default()
    };
    platform::request_device(adapter, &descriptor).await.map_err(|error| {
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
        let (rules, shipped) = (KernelChoice::for_device(&limits), shipped::tile(driver).expect("a row"));
        assert_ne!(shipped, rules.winograd_tile, "a row that changes nothing");
        assert_eq!(kernels(&limits, driver), rules.with_tile(shipped));
        assert_eq!(kernels(&limits, "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)"), rules);
        // Neither a device without quads nor one that counts as a GPU can have that tile.
        for other in [DeviceLimits { quads: false, ..limits.clone() }, DeviceLimits { kind: DeviceKind::Gpu, ..limits }]
        {
            assert_eq!(kernels(&other, driver), KernelChoice::for_device(&other));
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
}
