//! Turns fused stages into kernel launches on buffers that are not yet placed.
//!
//! One file for each kind of stage; this one owns what they share: tensors and their chunks, parameters, weights, norms.

mod attention;
mod conv2d;
mod edges;
mod norm;
mod pointwise;

use std::collections::BTreeMap;

use crate::error::Result;
use crate::kernels::choice::Choice;
use crate::kernels::weights::Layout;
use crate::kernels::{Launch, Variant, WORKGROUP};
use crate::limits::DeviceLimits;
use crate::model::graph::TensorId;
use crate::plan::fuse::{Fused, Residual, Stage};
use crate::plan::partition::{Partition, Rows};
use crate::plan::{
    Action, BufferId, BufferUse, Memory, Plan, PlanOptions, Resource, SlotId, Step, WeightId, WeightUse,
};
use crate::tensor::{Bytes, Size, Storage};

/// Lowers all stages. Slots, lifetimes and memory are filled in by later passes.
pub(super) fn lower(fused: &Fused, limits: &DeviceLimits, options: &PlanOptions) -> Result<Plan> {
    let mut lowering = Lowering::new(fused, limits, options)?;
    for stage in &fused.stages {
        lowering.stage(stage)?;
    }
    Ok(lowering.plan)
}

/// A stored tensor: its chunks, and how they lie in memory.
#[derive(Debug, Clone)]
struct Stored {
    partition: Partition,
    chunks: Vec<BufferId>,
    storage: Storage,
    /// Whether chunks hold one row of each neighbour.
    halo: bool,
}

impl Stored {
    /// The rows that the buffer of chunk `index` holds.
    fn rows(&self, index: usize) -> Rows {
        if self.halo { self.partition.stored(index) } else { self.partition.chunks[index] }
    }
}

struct Lowering<'a> {
    fused: &'a Fused,
    limits: &'a DeviceLimits,
    options: &'a PlanOptions,
    choice: Choice,
    partitions: BTreeMap<(u32, u32), Partition>,
    tensors: BTreeMap<TensorId, Stored>,
    /// The finished norms: scale and shift of each channel.
    norms: BTreeMap<usize, BufferId>,
    weights: BTreeMap<String, WeightId>,
    /// Where parameters lie that some launch has already.
    params: BTreeMap<Vec<u8>, usize>,
    plan: Plan,
}

impl<'a> Lowering<'a> {
    fn new(fused: &'a Fused, limits: &'a DeviceLimits, options: &'a PlanOptions) -> Result<Self> {
        let choice = options.choice.unwrap_or_else(|| Choice::for_device(limits));
        let plan = Plan {
            image: Size { width: 0, height: 0 },
            latents: Size { width: 0, height: 0 },
            latent_channels: 0,
            storage: options.storage,
            output: options.output,
            stages: Vec::new(),
            variants: Vec::new(),
            steps: Vec::new(),
            buffers: Vec::new(),
            slots: Vec::new(),
            weights: Vec::new(),
            params: Vec::new(),
            parked: Vec::new(),
            input: BufferId(0),
            latent_transform: Vec::new(),
            memory: Memory::default(),
            choice,
            kind: limits.kind,
        };
        let mut lowering = Self {
            fused,
            limits,
            options,
            choice,
            partitions: BTreeMap::new(),
            tensors: BTreeMap::new(),
            norms: BTreeMap::new(),
            weights: BTreeMap::new(),
            params: BTreeMap::new(),
            plan,
        };
        lowering.partition()?;
        Ok(lowering)
    }

    fn stage(&mut self, stage: &Stage) -> Result<()> {
        let name = match stage {
            Stage::Latents { .. } => "latents",
            Stage::Conv(conv) => &conv.name,
            Stage::Attention { name, .. } => name,
            Stage::Image { .. } => "image",
        };
        self.plan.stages.push(name.to_owned());
        match stage {
            Stage::Latents { factor, offset, output } => self.latents(factor, offset, *output),
            Stage::Conv(conv) if conv.filter == 3 => self.conv2d(conv)?,
            Stage::Conv(conv) => self.pointwise(conv)?,
            Stage::Attention { inputs, output, .. } => self.attention(*inputs, *output),
            Stage::Image { input } => self.image(*input),
        }
        Ok(())
    }

    /// Cuts every resolution by the widest tensor that is stored at it, and so that one launch can reach every pixel of a chunk.
    fn partition(&mut self) -> Result<()> {
        let mut rows: BTreeMap<(u32, u32), (Bytes, u64)> = BTreeMap::new();
        for stage in &self.fused.stages {
            let Some(output) = output_of(stage) else { continue };
            let shape = self.fused.shape(output);
            let elements = u64::from(shape.width) * u64::from(shape.channels4());
            let invocations = if matches!(stage, Stage::Latents { .. }) { elements } else { u64::from(shape.width) };
            let widest = rows.entry((shape.height, shape.width)).or_default();
            let bytes = Bytes(elements * self.storage_of(output).vec4_bytes());
            *widest = (widest.0.max(bytes), widest.1.max(invocations));
        }
        let hard_limit = self.limits.largest_bound_buffer();
        let limit = hard_limit.min(self.options.chunk_limit);
        let most_invocations = u64::from(self.limits.max_compute_workgroups_per_dimension) * u64::from(WORKGROUP);
        for ((height, width), (bytes, invocations)) in rows {
            let reachable = Bytes(bytes.0 * (most_invocations / invocations));
            // Very wide pictures: a few rows may exceed the chunk size we like, but not the device's.
            let partition = Partition::new(height, bytes, limit.min(reachable))
                .or_else(|_| Partition::new(height, bytes, hard_limit.min(reachable)))?;
            self.partitions.insert((height, width), partition);
        }
        Ok(())
    }

    /// The image is kept in f32, everything else as the options say.
    fn storage_of(&self, tensor: TensorId) -> Storage {
        let is_image =
            self.fused.stages.iter().any(|stage| matches!(stage, Stage::Image { input } if *input == tensor));
        if is_image { Storage::F32 } else { self.options.storage }
    }

    fn partition_of(&self, tensor: TensorId) -> Partition {
        let shape = self.fused.shape(tensor);
        self.partitions[&(shape.height, shape.width)].clone()
    }

    /// Makes room for `tensor`; with `halo`, for the neighbours' rows as well. Rows of pixels are padded to a multiple of four.
    fn allocate(&mut self, tensor: TensorId, halo: bool) -> Stored {
        let shape = self.fused.shape(tensor);
        let storage = self.storage_of(tensor);
        let mut stored = Stored { partition: self.partition_of(tensor), chunks: Vec::new(), storage, halo };
        for index in 0..stored.partition.chunks.len() {
            let pixels = u64::from(stored.rows(index).count()) * u64::from(shape.width);
            let bytes = pixels.next_multiple_of(4) * u64::from(shape.channels4()) * storage.vec4_bytes();
            let name = format!("{}[{index}]", self.plan.stages[self.plan.stages.len() - 1]);
            stored.chunks.push(self.buffer(name, Bytes(bytes)));
        }
        self.tensors.insert(tensor, stored.clone());
        stored
    }

    /// Where a convolution's result goes: into its residual's place, or into a new tensor.
    fn allocate_output(&mut self, residual: Option<&Residual>, output: TensorId) -> Stored {
        match residual {
            Some(Residual::InPlace(residual)) => {
                let read_later = self.fused.stages.iter().any(|stage| {
                    let after =
                        !self.plan.stages.iter().any(|done| matches!(stage, Stage::Conv(conv) if conv.name == *done));
                    after && matches!(stage, Stage::Conv(conv) if conv.input == *residual)
                });
                assert!(!read_later, "the residual {residual:?} is read after its sum");
                let stored = self.tensors[residual].clone();
                self.tensors.insert(output, stored.clone());
                stored
            }
            Some(Residual::Shortcut { .. }) | None => self.allocate(output, true),
        }
    }

    fn buffer(&mut self, name: String, bytes: Bytes) -> BufferId {
        self.plan.buffers.push(BufferUse { name, bytes, live: 0..0, slot: SlotId(0) });
        BufferId(self.plan.buffers.len() - 1)
    }

    /// Scratch memory of the current stage.
    fn scratch(&mut self, what: &str, bytes: u64) -> BufferId {
        let name = format!("{}.{what}", self.plan.stages[self.plan.stages.len() - 1]);
        self.buffer(name, Bytes(bytes))
    }

    fn weight(&mut self, name: String, layout: Layout, factor: f32) -> Resource {
        let storage = match layout {
            Layout::Filter { .. } => self.options.storage,
            Layout::Vector { .. } => Storage::F32,
        };
        let next = WeightId(self.plan.weights.len());
        let id = *self.weights.entry(name.clone()).or_insert(next);
        if id == next {
            self.plan.weights.push(WeightUse { name, layout, storage, factor, bytes: layout.bytes(storage) });
        }
        Resource::Weight(id)
    }

    fn launch(&mut self, launch: Launch, bindings: &[Resource]) {
        let variant = self.variant(launch.variant);
        let length = launch.params.len();
        // Blocks of attention above all repeat themselves: equal parameters are kept once.
        let start = *self.params.entry(launch.params).or_insert_with_key(|params| {
            let start = self.plan.params.len();
            self.plan.params.extend_from_slice(params);
            let alignment = self.limits.min_uniform_buffer_offset_alignment as usize;
            self.plan.params.resize((start + params.len()).next_multiple_of(alignment), 0);
            start
        });
        let action = Action::Dispatch {
            variant,
            workgroups: launch.workgroups,
            params: start..start + length,
            bindings: bindings.to_vec(),
        };
        self.step(action, launch.macs);
    }

    fn variant(&mut self, variant: Variant) -> usize {
        let known = self.plan.variants.iter().position(|known| *known == variant);
        known.unwrap_or_else(|| {
            self.plan.variants.push(variant);
            self.plan.variants.len() - 1
        })
    }

    fn step(&mut self, action: Action, macs: u64) {
        self.plan.steps.push(Step { stage: self.plan.stages.len() - 1, action, macs });
    }

    /// Gives chunk `lower` of `tensor` and the one above it each other's border rows. Both are complete by then.
    fn copy_halo(&mut self, tensor: TensorId, stored: &Stored, lower: usize) {
        let Some(upper) = lower.checked_sub(1) else { return };
        let shape = self.fused.shape(tensor);
        let row_bytes = u64::from(shape.width) * u64::from(shape.channels4()) * stored.storage.vec4_bytes();
        let border = stored.partition.chunks[lower].start;
        for (row, from, to) in [(border - 1, upper, lower), (border, lower, upper)] {
            let offset = |chunk: usize| u64::from(row - stored.rows(chunk).start) * row_bytes;
            let action = Action::Copy {
                from: (stored.chunks[from], offset(from)),
                to: (stored.chunks[to], offset(to)),
                bytes: row_bytes,
            };
            self.step(action, 0);
        }
    }
}

/// The tensor that a stage stores.
fn output_of(stage: &Stage) -> Option<TensorId> {
    match stage {
        Stage::Latents { output, .. } | Stage::Attention { output, .. } => Some(*output),
        Stage::Conv(conv) => Some(conv.output),
        Stage::Image { .. } => None,
    }
}
