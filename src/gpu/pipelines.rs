//! Compiles kernels once. The cache's key is the final WGSL text: it cannot be forgotten, mis-hashed or collide.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use web_time::Instant;

use super::{Gpu, Preparing};
use crate::error::{DeviceError, Error, Result};
use crate::kernels::source::specialize;
use crate::kernels::{Access, Interface, Variant, interface};

/// A compiled kernel and the layout of its bindings.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) pipeline: wgpu::ComputePipeline,
    pub(super) layout: wgpu::BindGroupLayout,
}

#[derive(Debug, Default)]
pub(super) struct Pipelines {
    cache: Mutex<HashMap<String, Arc<Pipeline>>>,
    time: Mutex<Duration>,
}

impl Pipelines {
    pub(super) fn compiled(&self) -> (usize, Duration) {
        (self.cache().len(), *self.time.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The pipelines of `variants`. Those that never were are compiled now.
    pub(super) async fn get(&self, gpu: &Gpu, variants: &[Variant]) -> Result<Vec<Arc<Pipeline>>> {
        let sources = variants.iter().map(Source::new).collect::<Result<Vec<_>>>()?;
        let mut missing: Vec<&Source> = sources.iter().filter(|source| self.known(source).is_none()).collect();
        missing.sort_unstable_by_key(|source| &source.text);
        missing.dedup_by_key(|source| &source.text);
        let total = missing.len();
        for (done, source) in missing.into_iter().enumerate() {
            gpu.tell(Preparing::Kernels { done, total, kernel: source.interface.file });
            let start = Instant::now();
            let pipeline = gpu.scoped(&source.doing, || compile(&gpu.inner.device, source)).await?;
            *self.time.lock().unwrap_or_else(PoisonError::into_inner) += start.elapsed();
            self.cache().insert(source.text.clone(), Arc::new(pipeline));
        }
        if total > 0 {
            gpu.tell(Preparing::Kernels { done: total, total, kernel: "" });
        }
        Ok(sources.iter().filter_map(|source| self.known(source)).collect())
    }

    fn known(&self, source: &Source) -> Option<Arc<Pipeline>> {
        self.cache().get(&source.text).map(Arc::clone)
    }

    fn cache(&self) -> MutexGuard<'_, HashMap<String, Arc<Pipeline>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A kernel as the device is given it.
struct Source {
    interface: &'static Interface,
    text: String,
    /// For errors.
    doing: String,
}

impl Source {
    fn new(variant: &Variant) -> Result<Self> {
        let doing = format!("compiling kernel \"{}\"", variant.file);
        match specialize(variant) {
            Ok(text) => Ok(Self { interface: interface(variant.file), text, doing }),
            Err(reason) => Err(Error::Device(DeviceError::Failed { doing, reason })),
        }
    }
}

fn compile(device: &wgpu::Device, Source { interface, text, .. }: &Source) -> Pipeline {
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
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label,
        layout: Some(&pipeline_layout),
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions {
            // Every kernel writes its workgroup memory before it reads it. Metal would clear it on one thread.
            zero_initialize_workgroup_memory: false,
            ..Default::default()
        },
        cache: None,
    });
    Pipeline { pipeline, layout }
}

#[expect(unsafe_code, reason = "without bounds and loop checks the kernels run up to twice as fast; see SAFETY")]
fn shader_module(device: &wgpu::Device, label: &str, text: &str) -> wgpu::ShaderModule {
    let descriptor = wgpu::ShaderModuleDescriptor { label: Some(label), source: wgpu::ShaderSource::Wgsl(text.into()) };
    // SAFETY: the text is ours, made of files in `shaders/`. Their loops are bounded by parameters, and their indices stay within
    // the bindings: the plan's interpreter in `tests/` panics on any index outside a buffer, for every family and many sizes.
    unsafe { device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) }
}
