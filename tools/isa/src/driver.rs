//! The one Vulkan device of this process. It compiles kernels and reports statistics about the
//! result (`VK_KHR_pipeline_executable_properties`).

use std::collections::BTreeMap;
use std::ffi::CStr;

use anyhow::{Context, Result, ensure};
use ash::{ext, khr, vk};

/// A driver's report about a kernel's machine code: numbers by the driver's own names.
pub(crate) struct Compiled {
    pub(crate) statistics: BTreeMap<String, f64>,
    /// Number of lanes that run together.
    pub(crate) subgroup: u32,
    /// Processor time in milliseconds.
    pub(crate) milliseconds: f64,
    /// Machine code, which is the last of the driver's texts. Empty if the driver has none.
    pub(crate) code: String,
}

/// A device with the features that wgpu enables, as far as they matter to a compiler.
pub(crate) struct Driver {
    /// Name of the device.
    pub(crate) name: String,
    /// Version of the driver, for example `Mesa 26.1.6-1`.
    pub(crate) version: String,
    /// True if the device can compile kernels with `enable f16`.
    pub(crate) shader_f16: bool,
    device: ash::Device,
    executables: khr::pipeline_executable_properties::Device,
    // Last, because dropping it unloads the loader's library.
    _instance: ash::Instance,
    _entry: ash::Entry,
}

impl Driver {
    /// Opens the first Vulkan device.
    ///
    /// # Errors
    /// If there is no Vulkan device, or its driver does not report machine code.
    pub(crate) fn new() -> Result<Self> {
        // SAFETY: the loader is the system's or Mesa's. Everything created here lives as long as
        // the process.
        unsafe {
            let entry = ash::Entry::load().context("no Vulkan loader")?;
            let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
            let information = vk::InstanceCreateInfo::default().application_info(&application);
            let instance = entry.create_instance(&information, None).context("no Vulkan instance")?;
            let all = instance.enumerate_physical_devices().context("the driver does not find the device")?;
            let physical = *all.first().context("the driver does not find the device")?;
            let mut driver = vk::PhysicalDeviceDriverProperties::default();
            let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut driver);
            instance.get_physical_device_properties2(physical, &mut properties);
            let name = text(&properties.properties.device_name);
            let version = text(&driver.driver_info);
            let (device, shader_f16) = open(&instance, physical).with_context(|| format!("could not open {name}"))?;
            let executables = khr::pipeline_executable_properties::Device::new(&instance, &device);
            Ok(Self { name, version, device, executables, shader_f16, _instance: instance, _entry: entry })
        }
    }

    /// Compiles a kernel with the uniform `params` at binding 0 and `buffers` storage buffers at
    /// bindings 1, 2, and so on.
    pub(crate) fn compile(&self, spirv: &[u32], buffers: u32) -> Result<Compiled> {
        // SAFETY: naga made the module, and the layout has the bindings that it names.
        unsafe {
            let layout = self.layout(buffers)?;
            let module = self.device.create_shader_module(&vk::ShaderModuleCreateInfo::default().code(spirv), None)?;
            let flags = vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR
                | vk::PipelineCreateFlags::CAPTURE_INTERNAL_REPRESENTATIONS_KHR;
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(module)
                .name(c"main");
            let info = vk::ComputePipelineCreateInfo::default().flags(flags).layout(layout).stage(stage);
            let start = processor_milliseconds();
            let pipelines = self.device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None);
            let milliseconds = processor_milliseconds() - start;
            let pipeline = *pipelines.map_err(|(_, error)| error)?.first().context("no pipeline")?;
            let compiled = self.describe(pipeline, milliseconds);
            self.device.destroy_pipeline(pipeline, None);
            self.device.destroy_shader_module(module, None);
            self.device.destroy_pipeline_layout(layout, None);
            compiled
        }
    }

    unsafe fn layout(&self, buffers: u32) -> Result<vk::PipelineLayout> {
        let bindings: Vec<_> = (0..=buffers)
            .map(|binding| {
                let ty = match binding {
                    0 => vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC,
                    _ => vk::DescriptorType::STORAGE_BUFFER,
                };
                let stages = vk::ShaderStageFlags::COMPUTE;
                let slot = vk::DescriptorSetLayoutBinding::default().binding(binding).descriptor_type(ty);
                slot.descriptor_count(1).stage_flags(stages)
            })
            .collect();
        let set = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        // SAFETY: the device and everything that the descriptions point to are alive.
        unsafe {
            let sets = [self.device.create_descriptor_set_layout(&set, None)?];
            let layout = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets);
            Ok(self.device.create_pipeline_layout(&layout, None)?)
        }
    }

    unsafe fn describe(&self, pipeline: vk::Pipeline, milliseconds: f64) -> Result<Compiled> {
        let info = vk::PipelineInfoKHR::default().pipeline(pipeline);
        let executable = vk::PipelineExecutableInfoKHR::default().pipeline(pipeline);
        // SAFETY: the pipeline was created with the flags that these calls need.
        unsafe {
            let all = self.executables.get_pipeline_executable_properties(&info)?;
            ensure!(all.len() == 1, "expected one executable, found {}", all.len());
            let statistics = self.executables.get_pipeline_executable_statistics(&executable)?;
            let statistics = statistics.iter().map(|each| (text(&each.name), value(each))).collect();
            let code = self.code(&executable)?;
            Ok(Compiled { statistics, subgroup: all[0].subgroup_size, milliseconds, code })
        }
    }

    unsafe fn code(&self, executable: &vk::PipelineExecutableInfoKHR<'_>) -> Result<String> {
        let call = self.executables.fp().get_pipeline_executable_internal_representations_khr;
        let mut count = 0;
        // SAFETY: Vulkan's protocol of three calls: the count, the sizes, then the texts, into
        // memory that lives.
        unsafe {
            call(self.device.handle(), executable, &mut count, std::ptr::null_mut()).result()?;
            let mut texts = vec![vk::PipelineExecutableInternalRepresentationKHR::default(); count as usize];
            call(self.device.handle(), executable, &mut count, texts.as_mut_ptr()).result()?;
            let mut bytes: Vec<Vec<u8>> = texts.iter().map(|text| vec![0; text.data_size]).collect();
            for (text, bytes) in texts.iter_mut().zip(&mut bytes) {
                text.p_data = bytes.as_mut_ptr().cast();
            }
            call(self.device.handle(), executable, &mut count, texts.as_mut_ptr()).result()?;
            Ok(bytes.last().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default())
        }
    }
}

/// Opens a device with the features that wgpu enables for this crate and that affect compilers:
/// robust buffer access always, f16 if available.
unsafe fn open(instance: &ash::Instance, physical: vk::PhysicalDevice) -> Result<(ash::Device, bool)> {
    // SAFETY: the instance is alive, and each structure lives as long as the call that reads it.
    unsafe {
        let extensions = instance.enumerate_device_extension_properties(physical)?;
        let has = |name: &CStr| extensions.iter().any(|each| each.extension_name_as_c_str() == Ok(name));
        let told = khr::pipeline_executable_properties::NAME;
        ensure!(has(told) && has(ext::robustness2::NAME), "the driver has no {told:?}, or no robust buffers");
        let mut half = vk::PhysicalDeviceVulkan12Features::default();
        let mut half_storage = vk::PhysicalDevice16BitStorageFeatures::default();
        let mut found = vk::PhysicalDeviceFeatures2::default().push_next(&mut half).push_next(&mut half_storage);
        instance.get_physical_device_features2(physical, &mut found);
        let f16 = half.shader_float16 == 1 && half_storage.storage_buffer16_bit_access == 1;
        let mut half = vk::PhysicalDeviceVulkan12Features::default().shader_float16(f16);
        let mut half_storage = vk::PhysicalDevice16BitStorageFeatures::default()
            .storage_buffer16_bit_access(f16)
            .uniform_and_storage_buffer16_bit_access(f16 && half_storage.uniform_and_storage_buffer16_bit_access == 1);
        let mut zeroed = vk::PhysicalDeviceVulkan13Features::default().shader_zero_initialize_workgroup_memory(true);
        let mut robust = vk::PhysicalDeviceRobustness2FeaturesEXT::default().robust_buffer_access2(true);
        let mut tell =
            vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR::default().pipeline_executable_info(true);
        let names = [told.as_ptr(), ext::robustness2::NAME.as_ptr()];
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_extension_names(&names)
            .enabled_features(&FEATURES)
            .push_next(&mut half)
            .push_next(&mut half_storage)
            .push_next(&mut zeroed)
            .push_next(&mut robust)
            .push_next(&mut tell);
        Ok((instance.create_device(physical, &info, None)?, f16))
    }
}

/// Features of Vulkan 1.0 that affect compilers.
const FEATURES: vk::PhysicalDeviceFeatures = {
    // SAFETY: all fields are 32-bit flags, and zero means off.
    let mut features: vk::PhysicalDeviceFeatures = unsafe { std::mem::zeroed() };
    features.robust_buffer_access = vk::TRUE;
    features
};

fn text(name: &[std::ffi::c_char]) -> String {
    let bytes = name.iter().take_while(|letter| **letter != 0);
    bytes.map(|letter| char::from(letter.to_ne_bytes()[0])).collect()
}

fn value(statistic: &vk::PipelineExecutableStatisticKHR<'_>) -> f64 {
    let value = &statistic.value;
    // SAFETY: the format tells which field of the union was written.
    unsafe {
        match statistic.format {
            vk::PipelineExecutableStatisticFormatKHR::BOOL32 => f64::from(value.b32),
            vk::PipelineExecutableStatisticFormatKHR::INT64 => value.i64 as f64,
            vk::PipelineExecutableStatisticFormatKHR::UINT64 => value.u64 as f64,
            _ => value.f64,
        }
    }
}

/// Returns the processor time of this process in milliseconds.
fn processor_milliseconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes one `timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 * 1e-6
}
