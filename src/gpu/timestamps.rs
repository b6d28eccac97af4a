//! The GPU time of each stage of a plan, by timestamps at the begin and the end of each of its
//! runs.

use std::ops::Range;

use super::Gpu;
use super::buffers::{GpuBuffer, Usage};
use crate::error::Result;
use crate::plan::{Action, Plan, Step};

pub(super) struct Timestamps {
    queries: wgpu::QuerySet,
    resolved: GpuBuffer,
    runs: Vec<Range<usize>>,
}

impl Timestamps {
    /// Makes the queries for `plan`. `None` if the plan has no room for timestamps.
    pub(super) async fn new(gpu: &Gpu, plan: &Plan) -> Result<Option<Self>> {
        if plan.memory.timestamps.0 == 0 {
            return Ok(None);
        }
        let runs = plan.stage_runs();
        let count = u32::try_from(runs.len() * 2).unwrap_or(u32::MAX);
        let descriptor = wgpu::QuerySetDescriptor { label: Some("timestamps"), ty: wgpu::QueryType::Timestamp, count };
        let queries = gpu.scoped("creating timestamps", || gpu.inner.device.create_query_set(&descriptor)).await?;
        let resolved = GpuBuffer::new(gpu, "timestamps", plan.memory.timestamps, Usage::Timestamps).await?;
        Ok(Some(Self { queries, resolved, runs }))
    }

    /// Returns the timestamps that the pass over the launches in `range` writes: the begin of its
    /// run if it is the first pass, and the end if it is the last.
    pub(super) fn writes(&self, plan: &Plan, range: Range<usize>) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        let index = self.runs.partition_point(|run| run.end <= range.start);
        let run = self.runs.get(index)?;
        let is_launch = |step: &Step| matches!(step.action, Action::Dispatch { .. });
        let begins = !plan.steps[run.start..range.start].iter().any(is_launch);
        let ends = !plan.steps[range.end..run.end].iter().any(is_launch);
        let query = u32::try_from(index * 2).unwrap_or(u32::MAX);
        (begins || ends).then_some(wgpu::ComputePassTimestampWrites {
            query_set: &self.queries,
            beginning_of_pass_write_index: begins.then_some(query),
            end_of_pass_write_index: ends.then_some(query + 1),
        })
    }

    /// Writes all timestamps into a buffer, and returns it.
    pub(super) async fn resolve(&self, gpu: &Gpu) -> Result<&GpuBuffer> {
        let resolve = || {
            let mut encoder = gpu.inner.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.resolve_query_set(
                &self.queries,
                0..u32::try_from(self.runs.len() * 2).unwrap_or(u32::MAX),
                &self.resolved.raw,
                0,
            );
            gpu.inner.queue.submit([encoder.finish()]);
        };
        gpu.scoped("resolving timestamps", resolve).await?;
        Ok(&self.resolved)
    }

    /// Returns the seconds of each stage, from the timestamps `data` that were read back.
    pub(super) fn seconds(&self, gpu: &Gpu, plan: &Plan, data: &[u8]) -> Vec<f64> {
        let period = f64::from(gpu.inner.queue.get_timestamp_period()) * 1e-9;
        let ticks: Vec<u64> = bytemuck::pod_collect_to_vec(data);
        let mut seconds = vec![0.0; plan.stages.len()];
        for (run, pair) in self.runs.iter().zip(ticks.as_chunks::<2>().0) {
            #[expect(clippy::cast_precision_loss, reason = "a duration")]
            let took = pair[1].saturating_sub(pair[0]) as f64 * period;
            seconds[plan.steps[run.start].stage] += took;
        }
        seconds
    }
}
