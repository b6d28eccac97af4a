//! The pipelines and bind groups of a plan's steps. Runs nothing.

use std::collections::HashMap;
use std::sync::Arc;

use super::buffers::GpuBuffer;
use super::kernel_text::Pipeline;
use crate::kernels::interface;
use crate::plan::{Action, Plan, Resource, UNUSED_BYTES};

/// A launch of a kernel with its bind group.
pub(super) struct BoundLaunch {
    pipeline: Arc<Pipeline>,
    bind_group: usize,
    offset: u32,
    workgroups: [u32; 3],
}

/// The launches of a plan.
pub(super) struct Commands {
    /// One entry for each step; `None` if the step is no launch.
    launches: Vec<Option<BoundLaunch>>,
    bind_groups: Vec<wgpu::BindGroup>,
}

impl Commands {
    /// True if `step` is a launch.
    pub(super) fn is_launch(&self, step: usize) -> bool {
        self.launches[step].is_some()
    }

    /// Records `step` if it is a launch.
    pub(super) fn record(&self, pass: &mut wgpu::ComputePass<'_>, step: usize) {
        if let Some(BoundLaunch { pipeline, bind_group, offset, workgroups: [x, y, z] }) = &self.launches[step] {
            pass.set_pipeline(&pipeline.pipeline);
            pass.set_bind_group(0, &self.bind_groups[*bind_group], &[*offset]);
            pass.dispatch_workgroups(*x, *y, *z);
        }
    }
}

/// The buffers that bindings refer to.
pub(super) struct Resources<'a> {
    pub(super) plan: &'a Plan,
    pub(super) slots: &'a [GpuBuffer],
    /// One entry for each weight of the plan; `None` if no launch binds it.
    pub(super) weights: &'a [Option<&'a GpuBuffer>],
    pub(super) params: &'a GpuBuffer,
    pub(super) unused: &'a GpuBuffer,
}

impl Resources<'_> {
    /// Makes the launches of the plan. Launches that bind the same buffers share a bind group; they
    /// differ in the offset of `params`.
    pub(super) fn commands(&self, device: &wgpu::Device, pipelines: &[Arc<Pipeline>]) -> Commands {
        let mut bind_groups = Vec::new();
        let mut known: HashMap<(&str, &[Resource]), usize> = HashMap::new();
        let mut launches = Vec::new();
        for step in &self.plan.steps {
            let Action::Dispatch { variant, workgroups, params, bindings } = &step.action else {
                launches.push(None);
                continue;
            };
            let pipeline = Arc::clone(&pipelines[*variant]);
            let file = self.plan.variants[*variant].file;
            let bind_group = *known.entry((file, bindings)).or_insert_with(|| {
                bind_groups.push(self.bind(device, &pipeline.layout, file, bindings));
                bind_groups.len() - 1
            });
            let offset = u32::try_from(params.start).unwrap_or(u32::MAX);
            launches.push(Some(BoundLaunch { pipeline, bind_group, offset, workgroups: *workgroups }));
        }
        Commands { launches, bind_groups }
    }

    fn bind(
        &self,
        device: &wgpu::Device,
        layout: &wgpu::BindGroupLayout,
        file: &str,
        bindings: &[Resource],
    ) -> wgpu::BindGroup {
        let params_bytes = interface(file).params.len() as u64 * 4;
        let mut entries = vec![wgpu::BindGroupEntry { binding: 0, resource: range(self.params, 0, params_bytes) }];
        for (index, binding) in bindings.iter().enumerate() {
            let resource = match binding {
                Resource::Buffer(buffer) => {
                    let buffer = &self.plan.buffers[buffer.0];
                    range(&self.slots[buffer.slot.0], buffer.offset.0, buffer.bytes.0)
                }
                Resource::Weight(weight) => {
                    let weight = self.weights[weight.0].unwrap_or(self.unused);
                    range(weight, 0, weight.bytes().0)
                }
                Resource::Unused => range(self.unused, 0, UNUSED_BYTES),
            };
            entries.push(wgpu::BindGroupEntry { binding: u32::try_from(index + 1).unwrap_or(u32::MAX), resource });
        }
        device.create_bind_group(&wgpu::BindGroupDescriptor { label: Some(file), layout, entries: &entries })
    }
}

fn range(buffer: &GpuBuffer, offset: u64, bytes: u64) -> wgpu::BindingResource<'_> {
    let size = std::num::NonZeroU64::new(bytes);
    wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer: &buffer.raw, offset, size })
}
