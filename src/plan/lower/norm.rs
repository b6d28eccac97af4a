//! Lowers group norms: moments from the producer or from a pass of their own, their merge, and the application to a band.

use crate::kernels::group_norm::{
    ApplyParams, FinishParams, MOMENTS_VEC4_BYTES, NORM_VEC4_BYTES, StatsParams, apply, finish, stats,
};
use crate::kernels::weights::Layout;
use crate::model::graph::TensorId;
use crate::plan::partition::Rows;
use crate::plan::{BufferId, Resource};

use super::{Lowering, Stored};

/// Pixels of one run of the statistics pass, at least; and runs that a tensor should not exceed.
const LEAST_RUN: u32 = 64;
const MOST_RUNS: u32 = 4096;

impl Lowering<'_> {
    /// Room for the moments of `runs` runs of a tensor with `channels4` groups of four channels.
    pub(super) fn moments(&mut self, runs: u32, channels4: u32) -> BufferId {
        self.scratch("moments", u64::from(runs) * u64::from(channels4) * MOMENTS_VEC4_BYTES)
    }

    /// If a norm reads `tensor`: reads the tensor for its moments and merges them.
    pub(super) fn measure(&mut self, tensor: TensorId, stored: &Stored) {
        if self.fused.norm_of(tensor).is_none() {
            return;
        }
        let shape = self.fused.shape(tensor);
        let run = (shape.height * shape.width / MOST_RUNS).max(LEAST_RUN);
        let runs_of = |rows: &Rows| (rows.count() * shape.width).div_ceil(run);
        let total: u32 = stored.partition.chunks.iter().map(runs_of).sum();
        let moments = self.moments(total, shape.channels4());
        let mut moments_offset = 0;
        for (index, chunk) in stored.chunks.iter().enumerate() {
            let own = stored.partition.chunks[index];
            let params = StatsParams {
                pixels: own.count() * shape.width,
                run,
                runs: runs_of(&own),
                x_offset: (own.start - stored.rows(index).start) * shape.width * shape.channels4(),
                channels4: shape.channels4(),
                moments_offset,
            };
            moments_offset += params.runs;
            self.launch(stats(stored.storage, params), &[Resource::Buffer(*chunk), Resource::Buffer(moments)]);
        }
        self.finish_norm(tensor, moments, total);
    }

    /// Merges `runs` moments of `tensor` into its norm's scale and shift.
    pub(super) fn finish_norm(&mut self, tensor: TensorId, moments: BufferId, runs: u32) {
        let Some(id) = self.fused.norm_of(tensor) else { return };
        let norm = &self.fused.norms[id];
        let shape = self.fused.shape(tensor);
        let layout = Layout::Vector { channels: shape.channels };
        let weight = self.weight(format!("{}.weight", norm.name), layout, 1.0);
        let bias = self.weight(format!("{}.bias", norm.name), layout, 1.0);
        let table = self.scratch("norm", u64::from(shape.channels4()) * NORM_VEC4_BYTES);
        let params = FinishParams {
            runs,
            channels: shape.channels,
            channels4: shape.channels4(),
            channels_per_group: shape.channels / norm.groups,
            eps: norm.eps,
        };
        self.launch(finish(params), &[Resource::Buffer(moments), weight, bias, Resource::Buffer(table)]);
        self.norms.insert(id, table);
    }

    /// Normalises rows `rows` of chunk `index` into `target`, whose first row is the first of `rows`.
    pub(super) fn apply_norm(
        &mut self,
        tensor: TensorId,
        index: usize,
        rows: Rows,
        (norm, activate): (usize, bool),
        target: BufferId,
    ) {
        let shape = self.fused.shape(tensor);
        let stored = &self.tensors[&tensor];
        let params = ApplyParams {
            elements: rows.count() * shape.width * shape.channels4(),
            channels4: shape.channels4(),
            x_offset: (rows.start - stored.rows(index).start) * shape.width * shape.channels4(),
        };
        let launch = apply(stored.storage, activate, params);
        let bindings =
            [Resource::Buffer(stored.chunks[index]), Resource::Buffer(self.norms[&norm]), Resource::Buffer(target)];
        self.launch(launch, &bindings);
    }
}
