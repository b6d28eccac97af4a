//! Lowers group norms: moments from the producer or from a pass of their own, their merge, and the application to a band.

use crate::kernels::group_norm::{
    ApplyParams, FinishParams, MOMENTS_VEC4_BYTES, NORM_VEC4_BYTES, StatsParams, apply, finish, stats,
};
use crate::kernels::pixel_norm::{self, PixelNormParams};
use crate::kernels::weights::Layout;
use crate::kernels::winograd::TILE;
use crate::model::graph::{Shape, TensorId, Weight};
use crate::plan::fuse::{Conv, Normalize};
use crate::plan::partition::{Partition, Rows};
use crate::plan::{BufferId, Resource};

use super::Lowering;

/// Pixels of one run of the statistics pass, at least; and runs that a tensor should not exceed.
const LEAST_RUN: u32 = 64;
const MOST_RUNS: u32 = 4096;

/// Pixels of one run of a tensor's statistics. Every so many rows, of which chunks hold a multiple, are whole runs: so that the statistics are the same
/// to the bit however the tensor is cut.
fn stats_run(shape: Shape) -> u32 {
    let block = shape.width * TILE;
    let wanted = u64::from(shape.height) * u64::from(shape.width) / u64::from(MOST_RUNS);
    let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).max(LEAST_RUN);
    (wanted..=block).find(|run| block.is_multiple_of(*run)).unwrap_or(block)
}

/// Runs of the first `chunks` chunks.
fn runs_before(shape: Shape, partition: &Partition, chunks: usize) -> u32 {
    let run = stats_run(shape);
    let runs = |index: usize| (partition.chunk(index).count() * shape.width).div_ceil(run);
    // All but the last have the same rows.
    let alike = u32::try_from(chunks.min(partition.count() - 1)).unwrap_or(u32::MAX);
    runs(0) * alike + if chunks == partition.count() { runs(chunks - 1) } else { 0 }
}

/// Runs of a tensor whose moments no convolution gives.
pub(in crate::plan) fn stats_runs(shape: Shape, partition: &Partition) -> u64 {
    u64::from(runs_before(shape, partition, partition.count()))
}

impl Lowering<'_> {
    /// Room for the moments of `runs` runs of this pass's goal, which has `channels4` groups of four channels.
    pub(super) fn moments(&mut self, runs: u64, channels4: u32) -> BufferId {
        let bytes = runs * u64::from(channels4) * MOMENTS_VEC4_BYTES;
        let (buffer, _) = self.pass.moments.unwrap_or_else(|| (self.scratch("moments", bytes), runs));
        self.pass.moments = Some((buffer, runs));
        buffer
    }

    /// If a norm reads `tensor`, which the current stage produces: reads chunk `index` for its moments.
    pub(super) fn measure(&mut self, tensor: TensorId, index: usize) {
        if self.fused.norm_of(tensor).is_none() {
            return;
        }
        let shape = self.fused.shape(tensor);
        let (storage, chunk) = (self.stored[self.stage].storage, self.stored[self.stage].chunk(index));
        let partition = &self.nodes[self.stage].partition;
        let params = StatsParams {
            pixels: partition.chunk(index).count() * shape.width,
            run: stats_run(shape),
            runs: runs_before(shape, partition, index + 1) - runs_before(shape, partition, index),
            x_offset: 0,
            channels4: shape.channels4(),
            moments_offset: runs_before(shape, partition, index),
        };
        let moments = self.moments(stats_runs(shape, partition), shape.channels4());
        self.launch(stats(storage, params), &[Resource::Buffer(chunk), Resource::Buffer(moments)]);
    }

    /// If a norm reads what stage `goal` produces: merges its moments, now complete, into scale and shift.
    pub(super) fn finish_norm(&mut self, goal: usize) {
        let Some(tensor) = self.fused.stages[goal].output() else { return };
        let (Some(id), Some((moments, runs))) = (self.fused.norm_of(tensor), self.pass.moments) else { return };
        self.stage = goal;
        let norm = &self.fused.norms[id];
        let shape = self.fused.shape(tensor);
        let layout = Layout::Vector { channels: shape.channels };
        let weight = self.weight(&Weight::all(format!("{}.weight", norm.name)), layout, 1.0);
        let bias = self.weight(&Weight::all(format!("{}.bias", norm.name)), layout, 1.0);
        let table = self.scratch("norm", u64::from(shape.channels4()) * NORM_VEC4_BYTES);
        let params = FinishParams {
            runs: u32::try_from(runs).unwrap_or(u32::MAX),
            channels: shape.channels,
            channels4: shape.channels4(),
            channels_per_group: shape.channels / norm.groups,
            frames: 1,
            eps: norm.eps,
        };
        self.launch(finish(params), &[Resource::Buffer(moments), weight, bias, Resource::Buffer(table)]);
        self.norms.insert(id, table);
    }

    /// Normalises and activates `rows` of what `conv` reads, if they are to be: `source` holds them and starts with row `row0`. Returns where they are then.
    pub(super) fn normalised(&mut self, conv: &Conv, (source, row0): (BufferId, u32), rows: Rows) -> (BufferId, u32) {
        let (Some(norm), activation) = (conv.prologue.norm, conv.prologue.activation) else { return (source, row0) };
        let shape = self.fused.shape(conv.input);
        let bytes = self.pass.sizes.normed;
        let target = self.pass.normed.unwrap_or_else(|| self.scratch("normed", bytes));
        self.pass.normed = Some(target);
        let x_offset = (rows.start - row0) * shape.width * shape.channels4();
        match norm {
            Normalize::Group(norm) => {
                let elements = rows.count() * shape.width * shape.channels4();
                let channels4 = shape.channels4();
                let params = ApplyParams { elements, channels4, x_offset, y_offset: 0, y_pixel4: channels4 };
                let launch = apply(self.tensor(conv.input).storage, activation, params);
                let table = Resource::Buffer(self.norms[&norm]);
                self.launch(launch, &[Resource::Buffer(source), table, Resource::Buffer(target)]);
            }
            Normalize::Pixel(norm) => self.pixel_norm(conv, norm, (source, x_offset), rows, target),
        }
        (target, rows.start)
    }

    fn pixel_norm(
        &mut self,
        conv: &Conv,
        norm: usize,
        (source, x_offset): (BufferId, u32),
        rows: Rows,
        target: BufferId,
    ) {
        let shape = self.fused.shape(conv.input);
        let norm = &self.fused.pixel_norms[norm];
        let gamma = Weight::all(format!("{}.gamma", norm.name));
        #[expect(clippy::cast_precision_loss, reason = "channel counts are small")]
        let root = (shape.channels as f32).sqrt();
        let params = PixelNormParams {
            pixels: rows.count() * shape.width,
            channels4: shape.channels4(),
            frames: 1,
            x_offset,
            y_offset: 0,
            y_pixel4: shape.channels4(),
            root,
            least: norm.least,
        };
        let gamma = self.weight(&gamma, Layout::Vector { channels: shape.channels }, 1.0);
        let launch = pixel_norm::apply(self.tensor(conv.input).storage, conv.prologue.activation, params);
        self.launch(launch, &[Resource::Buffer(source), gamma, Resource::Buffer(target)]);
    }
}
