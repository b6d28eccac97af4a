//! A kernel's text, and the pipeline that the device makes from it.

use std::num::NonZeroU64;

use crate::error::{DeviceError, Error, Result};
use crate::kernels::source::specialize;
use crate::kernels::{Access, Interface, Variant, interface};

/// A compiled kernel and the layout of its bindings.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) pipeline: wgpu::ComputePipeline,
    pub(super) layout: wgpu::BindGroupLayout,
}

/// A kernel's text as it goes to the device.
pub(super) struct KernelText {
    pub(super) interface: &'static Interface,
    pub(super) text: String,
    /// The operation that error messages name.
    pub(super) doing: String,
}

impl KernelText {
    pub(super) fn new(variant: &Variant) -> Result<Self> {
        let doing = format!("compiling kernel \"{}\"", variant.file);
        match specialize(variant) {
            Ok(text) => Ok(Self { interface: interface(variant.file), text, doing }),
            Err(reason) => Err(Error::Device(DeviceError::Failed { doing, reason })),
        }
    }
}

/// The layouts and the shader module of a pipeline.
pub(super) struct Parts {
    layout: wgpu::BindGroupLayout,
    pipeline_layout: wgpu::PipelineLayout,
    module: wgpu::ShaderModule,
}

impl Parts {
    pub(super) fn new(device: &wgpu::Device, KernelText { interface, text, .. }: &KernelText) -> Self {
        let params_bytes = NonZeroU64::new(interface.params.len() as u64 * 4);
        let buffer = |binding: usize, ty: wgpu::BufferBindingType, dynamic: bool, least: Option<NonZeroU64>| {
            wgpu::BindGroupLayoutEntry {
                binding: u32::try_from(binding).unwrap_or(u32::MAX),
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: dynamic, min_binding_size: least },
                count: None,
            }
        };
        let mut entries = vec![buffer(0, wgpu::BufferBindingType::Uniform, true, params_bytes)];
        for (index, (_, access)) in interface.bindings.iter().enumerate() {
            let ty = wgpu::BufferBindingType::Storage { read_only: *access == Access::Read };
            entries.push(buffer(index + 1, ty, false, None));
        }
        let label = Some(interface.file);
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label, entries: &entries });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let module = shader_module(device, interface.file, text);
        Self { layout, pipeline_layout, module }
    }

    /// Compiles the pipeline in the driver.
    pub(super) fn pipeline(&self, device: &wgpu::Device, label: &str) -> wgpu::ComputePipeline {
        device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(label),
            layout: Some(&self.pipeline_layout),
            module: &self.module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                // Every kernel writes its workgroup memory before it reads it. Metal would clear
                // that memory on one thread.
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: None,
        })
    }

    pub(super) fn with(self, pipeline: wgpu::ComputePipeline) -> Pipeline {
        Pipeline { pipeline, layout: self.layout }
    }
}

#[expect(unsafe_code, reason = "without bounds and loop checks the kernels run up to twice as fast; see SAFETY")]
fn shader_module(device: &wgpu::Device, label: &str, text: &str) -> wgpu::ShaderModule {
    let descriptor = wgpu::ShaderModuleDescriptor { label: Some(label), source: wgpu::ShaderSource::Wgsl(text.into()) };
    // SAFETY: the text comes from this crate's own files in `shaders/`, and parameters bound their
    // loops. Indices stay within the bindings for two reasons. First, the tests interpret plans of
    // every family and many sizes with the kernels' twins in Rust, which panic on any index outside
    // a buffer: so the offsets and counts of plans fit their buffers. Second, some shaders also
    // load elements that their twins do not, and ignore the values. There only the shader's own
    // clamps keep the index inside, and no test would find an index that they let through:
    // - pixels beyond the border: `read_at` in `parts/border.wgsl`, and `clamp` in `unfold`;
    // - rows and columns beyond a product: `min(row, m - 1)`, and the same for columns;
    // - the rest of a last group: `min` in `conv2d_direct`, `group_norm_finish`,
    //   `linear_attention_apply` and `winograd_out_pairs`.
    unsafe { device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) }
}
