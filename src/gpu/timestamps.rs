//! GPU time of each stage of a plan, by timestamps at the begin of its first pass and the end of its last.

use std::ops::Range;

use super::Gpu;
use super::buffers::{GpuBuffer, Usage};
use crate::error::Result;
use crate::plan::{Action, Plan, Step};

pub(super) struct Timestamps {
    queries: wgpu::QuerySet,
    resolved: GpuBuffer,
    count: u32,
}

impl Timestamps {
    /// `None` where `plan` has no room for them.
    pub(super) async fn new(gpu: &Gpu, plan: &Plan) -> Result<Option<Self>> {
        if plan.memory.timestamps.0 == 0 {
            return Ok(None);
        }
        let count = u32::try_from(plan.stages.len() * 2).unwrap_or(u32::MAX);
        let descriptor = wgpu::QuerySetDescriptor { label: Some("timestamps"), ty: wgpu::QueryType::Timestamp, count };
        let queries = gpu.scoped("creating timestamps", || gpu.inner.device.create_query_set(&descriptor)).await?;
        let resolved = GpuBuffer::new(gpu, "timestamps", plan.memory.timestamps, Usage::Timestamps).await?;
        Ok(Some(Self { queries, resolved, count }))
    }

    /// What the pass over `range` of `stage` writes: the stage's begin in its first pass, its end in its last.
    pub(super) fn writes(
        &self,
        plan: &Plan,
        stage: usize,
        range: Range<usize>,
    ) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        let is_dispatch = |step: &Step| step.stage == stage && matches!(step.action, Action::Dispatch { .. });
        let begins = !plan.steps[..range.start].iter().rev().take_while(|step| step.stage == stage).any(is_dispatch);
        let ends = !plan.steps[range.end..].iter().take_while(|step| step.stage == stage).any(is_dispatch);
        let query = u32::try_from(stage * 2).unwrap_or(u32::MAX);
        (begins || ends).then_some(wgpu::ComputePassTimestampWrites {
            query_set: &self.queries,
            beginning_of_pass_write_index: begins.then_some(query),
            end_of_pass_write_index: ends.then_some(query + 1),
        })
    }

    /// Puts all of them into the buffer that is returned.
    pub(super) async fn resolve(&self, gpu: &Gpu) -> Result<&GpuBuffer> {
        let resolve = || {
            let mut encoder = gpu.inner.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.resolve_query_set(&self.queries, 0..self.count, self.resolved.raw(), 0);
            gpu.inner.queue.submit([encoder.finish()]);
        };
        gpu.scoped("resolving timestamps", resolve).await?;
        Ok(&self.resolved)
    }

    /// Seconds of each stage, from what was read back.
    pub(super) fn seconds(gpu: &Gpu, data: &[u8]) -> Vec<f64> {
        let period = f64::from(gpu.inner.queue.get_timestamp_period()) * 1e-9;
        let ticks: Vec<u64> = bytemuck::pod_collect_to_vec(data);
        #[expect(clippy::cast_precision_loss, reason = "a duration")]
        let seconds = |pair: &[u64]| pair[1].saturating_sub(pair[0]) as f64 * period;
        ticks.chunks_exact(2).map(seconds).collect()
    }
}
