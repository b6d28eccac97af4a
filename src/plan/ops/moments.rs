//! Moments for group norms, and sums for linear attention. The convolution that makes a tensor
//! measures it, or a launch for each chunk does. When all of the tensor is measured, the moments
//! become the norm, and the sums a table.

use crate::kernels::group_norm::{FinishParams, MOMENTS_VEC4_BYTES, NORM_VEC4_BYTES, StatsParams, finish, stats};
use crate::kernels::linear_attention::{self, SumsParams};
use crate::kernels::weights::WeightLayout;
use crate::model::graph::{Shape, TensorId, Weight};
use crate::plan::fused::{Fused, NormId};
use crate::plan::partition::{Partition, ROW_STEP};
use crate::plan::{BufferId, Resource};
use crate::tensor::Storage;

use super::lowering::Lowering;

/// The division of a tensor into runs of pixels that are measured one by one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Runs {
    /// Pixels of a run.
    pixels: u32,
    /// Bytes of the result of a run.
    bytes: u64,
}

impl Runs {
    /// Returns the runs of a tensor of `shape`, each of at least `least` pixels and with a result
    /// of `bytes`, if possible not more than `most`.
    ///
    /// [`ROW_STEP`] rows are a whole number of runs and chunks have a multiple of these rows. So
    /// the results are the same to the bit for any chunks.
    fn new(shape: Shape, least: u32, most: u32, bytes: u64) -> Self {
        let block = shape.width * ROW_STEP;
        let wanted = u64::from(shape.height) * u64::from(shape.width) / u64::from(most);
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX).max(least);
        let pixels = (wanted..=block).find(|run| block.is_multiple_of(*run)).unwrap_or(block);
        Self { pixels, bytes }
    }

    /// Returns the runs of a tensor of `shape` that a group norm measures.
    fn of_norm(shape: Shape) -> Self {
        Self::new(shape, 64, 4096, bytes(1, shape))
    }

    /// Returns the runs of a tensor of `shape` with heads of `head_dim` channels. A run has a
    /// workgroup for each head.
    fn of_linear_attention(shape: Shape, head_dim: u32) -> Self {
        Self::new(shape, 256, 256, u64::from(elements_of(shape, head_dim)) * Storage::F32.vec4_bytes())
    }

    /// Returns the runs of `tensor`, if a norm or linear attention reads it.
    pub(super) fn of(fused: &Fused, tensor: TensorId) -> Option<Self> {
        let shape = fused.shape(tensor);
        let of_norm = fused.norm_of(tensor).map(|_| Self::of_norm(shape));
        let attention = || fused.linear_attention_over(tensor);
        of_norm.or_else(|| attention().map(|attention| Self::of_linear_attention(shape, attention.head_dim)))
    }

    /// Returns the number of runs of the first `chunks` chunks.
    fn before(self, width: u32, partition: &Partition, chunks: usize) -> u32 {
        let runs = |index: usize| (partition.chunk(index).count() * width).div_ceil(self.pixels);
        // All chunks but the last have the same rows.
        let alike = u32::try_from(chunks.min(partition.count() - 1)).unwrap_or(u32::MAX);
        runs(0) * alike + if chunks == partition.count() { runs(chunks - 1) } else { 0 }
    }

    /// Returns the number of all runs.
    fn count(self, width: u32, partition: &Partition) -> u32 {
        self.before(width, partition, partition.count())
    }

    /// Returns the bytes of the results of all runs.
    pub(super) fn bytes(self, width: u32, partition: &Partition) -> u64 {
        u64::from(self.count(width, partition)) * self.bytes
    }
}

/// Returns the elements of the sums of linear attention with heads of `head_dim` channels.
fn elements_of(shape: Shape, head_dim: u32) -> u32 {
    linear_attention::elements(shape.channels / (3 * head_dim), head_dim / 4)
}

/// Returns the bytes of the moments of `runs` runs of a tensor of `shape`.
pub(super) fn bytes(runs: u64, shape: Shape) -> u64 {
    runs * u64::from(shape.pixel4()) * MOMENTS_VEC4_BYTES
}

impl Lowering<'_> {
    /// Returns the buffer for the results of `runs` runs of this pass's goal: `bytes` together.
    pub(super) fn moments(&mut self, runs: u64, bytes: u64) -> BufferId {
        let (buffer, _) = self.pass.moments.unwrap_or_else(|| (self.scratch("moments", bytes), runs));
        self.pass.moments = Some((buffer, runs));
        buffer
    }

    /// Launches the measurement of chunk `index` of `tensor`, which the current stage produces, if
    /// a norm or linear attention reads `tensor`.
    pub(super) fn measure(&mut self, tensor: TensorId, index: usize) {
        let Some(runs) = Runs::of(self.fused, tensor) else { return };
        let shape = self.fused.shape(tensor);
        let (storage, chunk) = (self.output_of_stage().storage, self.output_of_stage().chunk(index));
        let partition = &self.nodes[self.stage].partition;
        let (first, end) = (runs.before(shape.width, partition, index), runs.before(shape.width, partition, index + 1));
        let (all, bytes) = (runs.count(shape.width, partition), runs.bytes(shape.width, partition));
        let pixels = partition.chunk(index).count() * shape.width;
        let launch = if let Some(attention) = self.fused.linear_attention_over(tensor) {
            let params = SumsParams { pixels, run: runs.pixels, channels4: shape.channels4(), sums_offset: first };
            linear_attention::sums(storage, attention.head_dim / 4, params)
        } else {
            let params = StatsParams {
                pixels,
                run: runs.pixels,
                runs: end - first,
                x_offset: 0,
                channels4: shape.pixel4(),
                moments_offset: first,
            };
            stats(storage, params)
        };
        let moments = self.moments(all.into(), bytes);
        self.launch(launch, &[Resource::Buffer(chunk), Resource::Buffer(moments)]);
    }

    /// Merges the complete measurements of the output of stage `goal` into what its readers apply:
    /// scale and shift of a norm, or a table of linear attention.
    pub(in crate::plan) fn finish_goal(&mut self, goal: usize) {
        let Some(tensor) = self.fused.stages[goal].output() else { return };
        let Some((moments, runs)) = self.pass.moments else { return };
        self.begin_stage(goal);
        let runs = u32::try_from(runs).unwrap_or(u32::MAX);
        if let Some(id) = self.fused.norm_of(tensor) {
            self.finish_norm(id, moments, runs);
        } else if let Some(attention) = self.fused.linear_attention_over(tensor) {
            let elements = elements_of(self.fused.shape(tensor), attention.head_dim);
            let table = self.scratch("table", u64::from(elements) * Storage::F32.vec4_bytes());
            let launch = linear_attention::finish(linear_attention::FinishParams { runs, elements });
            self.launch(launch, &[Resource::Buffer(moments), Resource::Buffer(table)]);
            self.tables.insert(tensor, table);
        }
    }

    /// Merges `runs` complete moments into scale and shift of norm `id`.
    fn finish_norm(&mut self, id: NormId, moments: BufferId, runs: u32) {
        let norm = &self.fused.norms[id];
        let shape = self.fused.shape(norm.tensor);
        let layout = WeightLayout::Vector { channels: shape.channels };
        let weight = self.weight(&Weight::all(format!("{}.weight", norm.name)), layout, 1.0);
        let bias = self.weight(&Weight::all(format!("{}.bias", norm.name)), layout, 1.0);
        let table = self.scratch("norm", u64::from(shape.pixel4()) * NORM_VEC4_BYTES);
        let params = FinishParams {
            runs,
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
