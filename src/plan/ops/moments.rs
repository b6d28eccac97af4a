//! Moments for group norms. The convolution that makes a tensor measures it, or a launch for each
//! chunk does. When all moments are there, they become the norm.

use crate::kernels::group_norm::{FinishParams, MOMENTS_VEC4_BYTES, NORM_VEC4_BYTES, StatsParams, finish, stats};
use crate::kernels::weights::WeightLayout;
use crate::model::graph::{Shape, TensorId, Weight};
use crate::plan::partition::{Partition, ROW_STEP};
use crate::plan::{BufferId, Resource};

use super::lowering::Lowering;

/// Fewest pixels of one run of the statistics pass; and most runs that a tensor should have.
const LEAST_RUN: u32 = 64;
const MOST_RUNS: u32 = 4096;

/// Returns the pixels of one run of a tensor's statistics. [`ROW_STEP`] rows are a whole number of
/// runs and chunks have a multiple of these rows. So the statistics are the same to the bit for any
/// chunks.
fn stats_run(shape: Shape) -> u32 {
    let block = shape.width * ROW_STEP;
    let wanted = u64::from(shape.height) * u64::from(shape.width) / u64::from(MOST_RUNS);
    let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).max(LEAST_RUN);
    (wanted..=block).find(|run| block.is_multiple_of(*run)).unwrap_or(block)
}

/// Returns the runs of the first `chunks` chunks.
fn runs_before(shape: Shape, partition: &Partition, chunks: usize) -> u32 {
    let run = stats_run(shape);
    let runs = |index: usize| (partition.chunk(index).count() * shape.width).div_ceil(run);
    // All chunks but the last have the same rows.
    let alike = u32::try_from(chunks.min(partition.count() - 1)).unwrap_or(u32::MAX);
    runs(0) * alike + if chunks == partition.count() { runs(chunks - 1) } else { 0 }
}

/// Returns the runs of a tensor that no convolution measures.
pub(super) fn runs(shape: Shape, partition: &Partition) -> u64 {
    u64::from(runs_before(shape, partition, partition.count()))
}

/// Returns the bytes of the moments of `runs` runs of a tensor of `shape`.
pub(super) fn bytes(runs: u64, shape: Shape) -> u64 {
    runs * u64::from(shape.pixel4()) * MOMENTS_VEC4_BYTES
}

impl Lowering<'_> {
    /// Returns the buffer for the moments of `runs` runs of this pass's goal, which is of `shape`.
    pub(super) fn moments(&mut self, runs: u64, shape: Shape) -> BufferId {
        let (buffer, _) = self.pass.moments.unwrap_or_else(|| (self.scratch("moments", bytes(runs, shape)), runs));
        self.pass.moments = Some((buffer, runs));
        buffer
    }

    /// Launches the measurement of chunk `index` of `tensor`, which the current stage produces, if
    /// a norm reads `tensor`.
    pub(super) fn measure(&mut self, tensor: TensorId, index: usize) {
        if self.fused.norm_of(tensor).is_none() {
            return;
        }
        let shape = self.fused.shape(tensor);
        let (storage, chunk) = (self.output_of_stage().storage, self.output_of_stage().chunk(index));
        let partition = &self.nodes[self.stage].partition;
        let params = StatsParams {
            pixels: partition.chunk(index).count() * shape.width,
            run: stats_run(shape),
            runs: runs_before(shape, partition, index + 1) - runs_before(shape, partition, index),
            x_offset: 0,
            channels4: shape.pixel4(),
            moments_offset: runs_before(shape, partition, index),
        };
        let moments = self.moments(runs(shape, partition), shape);
        self.launch(stats(storage, params), &[Resource::Buffer(chunk), Resource::Buffer(moments)]);
    }

    /// Merges the complete moments of the output of stage `goal` into scale and shift, if a norm
    /// reads that output.
    pub(in crate::plan) fn finish_norm(&mut self, goal: usize) {
        let Some(tensor) = self.fused.stages[goal].output() else { return };
        let (Some(id), Some((moments, runs))) = (self.fused.norm_of(tensor), self.pass.moments) else { return };
        self.begin_stage(goal);
        let norm = &self.fused.norms[id];
        let shape = self.fused.shape(tensor);
        let layout = WeightLayout::Vector { channels: shape.channels };
        let weight = self.weight(&Weight::all(format!("{}.weight", norm.name)), layout, 1.0);
        let bias = self.weight(&Weight::all(format!("{}.bias", norm.name)), layout, 1.0);
        let table = self.scratch("norm", u64::from(shape.pixel4()) * NORM_VEC4_BYTES);
        let params = FinishParams {
            runs: u32::try_from(runs).unwrap_or(u32::MAX),
            channels: shape.channels,
            channels4: shape.channels4(),
            channels_per_group: shape.channels / norm.groups,
            frames: shape.frames,
            eps: norm.eps,
        };
        self.launch(finish(params), &[Resource::Buffer(moments), weight, bias, Resource::Buffer(table)]);
        self.norms.insert(id, table);
        self.keep_norm(id, table, shape);
    }
}
