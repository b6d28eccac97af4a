//! A plan in the making: stored tensors and their chunks, buffers, weights, parameters, steps.

use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::kernels::choice::{KernelChoice, Products};
use crate::kernels::weights::WeightLayout;
use crate::kernels::{Launch, Variant};
use crate::limits::DeviceLimits;
use crate::model::graph::{TensorId, Weight};
use crate::ordered::Map;
use crate::plan::fused::{Fused, Stage};
use crate::plan::node::{Node, Shared};
use crate::plan::partition::{Partition, RowRange};
use crate::plan::turns::Turns;
use crate::plan::{
    Action, BufferId, BufferUse, Plan, PlanOptions, Resource, SlotId, StateId, Step, WeightId, WeightKey, WeightUse,
    bounds,
};
use crate::tensor::{Bytes, Storage};

use super::pass::PassScratch;

/// The output of a stage: the buffers of its chunks, and how they lie in memory.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) partition: Partition,
    /// Buffer that held each chunk last.
    chunks: Vec<Option<BufferId>>,
    pub(super) storage: Storage,
    /// True if chunks are padded to a multiple of four pixels, for attention.
    pub(super) padded: bool,
}

impl Stored {
    /// Returns the buffer of chunk `index`.
    pub(super) fn chunk(&self, index: usize) -> BufferId {
        self.chunks[index].unwrap_or_else(|| unreachable!("a schedule computes what it reads"))
    }
}

/// State of lowering: a plan to which operations append launches.
#[derive(Debug)]
pub(in crate::plan) struct Lowering<'a> {
    pub(super) fused: &'a Fused,
    pub(super) nodes: &'a [Node],
    pub(super) limits: &'a DeviceLimits,
    pub(super) options: &'a PlanOptions,
    pub(super) choice: KernelChoice,
    /// Output of each stage.
    stored: Vec<Stored>,
    /// Stage that produces each tensor.
    producers: Map<TensorId, usize>,
    /// Finished norms, by index: scale and shift of each channel.
    pub(super) norms: Map<usize, BufferId>,
    /// Tables of linear attention, by the tensor that was measured.
    pub(super) tables: Map<TensorId, BufferId>,
    /// Norms of the past frames, by index of the norm.
    pub(super) past_norms: Map<usize, BufferId>,
    /// States, by name: of the convolution that reads the frames, or that makes keys or values.
    pub(super) states: Map<String, StateId>,
    weights: Map<WeightKey, WeightId>,
    variants: FxHashMap<Variant, usize>,
    /// The last few variants that were launched.
    recent: [usize; 4],
    /// Offsets of known parameters, by their hash. If two parameters have one hash, the later
    /// offset.
    params: FxHashMap<u64, usize>,
    /// Stage whose launches are being appended.
    pub(super) stage: usize,
    /// Parts of a clip in which they run.
    pub(super) turns: Option<Turns>,
    /// Parts of a clip in which each stage runs.
    stage_turns: Vec<Option<Turns>>,
    pub(super) pass: PassScratch,
    pub(super) plan: Plan,
}

impl<'a> Lowering<'a> {
    /// Begins an empty plan with room for the steps of about `tasks` tasks.
    pub(in crate::plan) fn new(
        fused: &'a Fused,
        nodes: &'a [Node],
        tasks: usize,
        limits: &'a DeviceLimits,
        options: &'a PlanOptions,
    ) -> Self {
        // Rough count of bands and scratch copies. Tables that grow are copied again and again.
        const STEPS_PER_TASK: usize = 16;
        let choice = options.choice(limits);
        let steps = (tasks * STEPS_PER_TASK).min(bounds::MOST_STEPS);
        let names = fused.stages.iter().map(|stage| stage.name().to_owned()).collect();
        let mut plan = Plan::empty(names, limits, options);
        plan.steps.reserve(steps);
        let producer = |(index, stage): (usize, &Stage)| Some((stage.output()?, index));
        let producers = fused.stages.iter().enumerate().filter_map(producer).collect();
        let stored = fused.stages.iter().zip(nodes).map(|(stage, node)| Stored {
            partition: node.partition.clone(),
            chunks: vec![None; node.partition.count()],
            storage: stage.output().map_or(Storage::F32, |output| fused.storage_of(output, options.storage)),
            padded: fused.feeds_or_is_attention(stage),
        });
        Self {
            fused,
            nodes,
            limits,
            options,
            choice,
            stored: stored.collect(),
            producers,
            norms: Map::new(),
            tables: Map::new(),
            past_norms: Map::new(),
            states: Map::new(),
            weights: Map::new(),
            variants: FxHashMap::default(),
            recent: [usize::MAX; 4],
            params: FxHashMap::default(),
            stage: 0,
            turns: None,
            stage_turns: fused.stages.iter().map(|stage| fused.turns(stage)).collect(),
            pass: PassScratch::default(),
            plan,
        }
    }

    /// Returns the kernel of all products but those of Winograd convolutions.
    pub(super) fn products(&self, n4: u32) -> Products {
        Products::new(self.choice.matmul_tile, self.options.storage, self.limits, n4)
    }

    /// Returns the plan so far.
    pub(in crate::plan) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(in crate::plan) fn into_plan(self) -> Plan {
        self.plan
    }

    /// Forgets the scratch memory of the pass before. The scratch memory of the new pass has the
    /// sizes that `stages` need.
    pub(in crate::plan) fn begin_pass(&mut self, stages: &[usize]) {
        self.pass = PassScratch::new(self.nodes, stages, self.options);
    }

    /// Makes `index` the current stage, and returns it.
    pub(super) fn begin_stage(&mut self, index: usize) -> &'a Stage {
        self.stage = index;
        self.turns = self.stage_turns[index];
        &self.fused.stages[index]
    }

    /// Returns the stored chunks of `tensor`.
    pub(super) fn tensor(&self, tensor: TensorId) -> &Stored {
        &self.stored[self.producers[&tensor]]
    }

    /// Returns the stage that produces `tensor`.
    pub(super) fn producer(&self, tensor: TensorId) -> &'a Stage {
        &self.fused.stages[self.producers[&tensor]]
    }

    /// Returns the stored chunks of the current stage's output.
    pub(super) fn output_of_stage(&self) -> &Stored {
        &self.stored[self.stage]
    }

    /// Returns the rows of chunk `index` of the current stage's output.
    pub(super) fn rows(&self, index: usize) -> RowRange {
        self.output_of_stage().partition.chunk(index)
    }

    /// Returns the buffer for chunk `index` of `output`, which the current stage produces. It is
    /// the buffer of the chunk that this chunk overwrites, or a new buffer.
    pub(super) fn place(&mut self, output: TensorId, index: usize) -> BufferId {
        let node = &self.nodes[self.stage];
        if let Some(replaced) = node.replaces {
            let buffer = self.stored[replaced].chunk(index);
            self.stored[self.stage].chunks[index] = Some(buffer);
            return buffer;
        }
        // Padded to a multiple of four pixels, because attention reads its keys in groups of four.
        self.new_chunk(index, node.partition.chunk_bytes(index, node.row_bytes, self.fused.shape(output).width))
    }

    /// Adds a buffer of `bytes` for chunk `index` of the current stage's output.
    pub(super) fn new_chunk(&mut self, index: usize, bytes: u64) -> BufferId {
        let buffer = self.buffer(format!("{}[{index}]", self.fused.stages[self.stage].name()), bytes);
        self.stored[self.stage].chunks[index] = Some(buffer);
        buffer
    }

    /// Returns a buffer that holds the rows `rows` of `tensor`, and the first row in that buffer.
    /// If several chunks hold the rows, they are copied into the scratch buffer `gathered`.
    pub(super) fn source(&mut self, tensor: TensorId, rows: RowRange, gathered: Shared) -> (BufferId, u32) {
        let stored = self.tensor(tensor);
        let holding = stored.partition.holding(rows);
        if holding.len() == 1 {
            return (stored.chunk(holding.start), stored.partition.chunk(holding.start).start);
        }
        let mut pieces: Vec<(BufferId, RowRange, RowRange, u32)> = Vec::new();
        for (rows, before) in rows.pieces(stored.partition.height) {
            for index in stored.partition.holding(rows) {
                let own = stored.partition.chunk(index);
                let piece = own.intersect(rows);
                pieces.push((stored.chunk(index), own, piece, before + piece.start - rows.start));
            }
        }
        let row_bytes = self.fused.row_bytes(tensor, self.options.storage);
        let target = self.shared(gathered);
        for (buffer, own, piece, before) in pieces {
            let action = Action::Copy {
                from: (buffer, u64::from(piece.start - own.start) * row_bytes),
                to: (target, u64::from(before) * row_bytes),
                bytes: u64::from(piece.count()) * row_bytes,
            };
            self.step(action, 0);
        }
        (target, rows.start)
    }

    fn buffer(&mut self, name: String, bytes: u64) -> BufferId {
        self.plan.buffers.push(BufferUse { name, bytes: Bytes(bytes), live: 0..0, slot: SlotId(0), offset: Bytes(0) });
        BufferId(self.plan.buffers.len() - 1)
    }

    /// Adds a scratch buffer of the current stage.
    pub(super) fn scratch(&mut self, what: &str, bytes: u64) -> BufferId {
        self.buffer(format!("{}.{what}", self.fused.stages[self.stage].name()), bytes)
    }

    /// Returns the scratch buffer that the stages of the pass use in turn. It is named after the
    /// first of these stages.
    pub(super) fn shared(&mut self, kind: Shared) -> BufferId {
        if let Some(buffer) = self.pass.shared[kind as usize] {
            return buffer;
        }
        let buffer = self.scratch(kind.name(), self.pass.sizes.bytes(kind));
        self.pass.shared[kind as usize] = Some(buffer);
        buffer
    }

    /// Returns the weight with this layout and factor, and adds it to the plan if it is new.
    pub(super) fn weight(&mut self, weight: &Weight, layout: WeightLayout, factor: f32) -> Resource {
        let used = WeightUse::new(weight, layout, factor, self.options.storage);
        let next = WeightId(self.plan.weights.len());
        let id = *self.weights.or_insert(used.key(), next);
        if id == next {
            self.plan.weights.push(used);
        }
        Resource::Weight(id)
    }

    /// True if the plan has more steps than allowed, so that planning returns an error. One task of
    /// a huge image may exceed the limit by itself, so later launches are dropped.
    pub(in crate::plan) fn is_full(&self) -> bool {
        self.plan.steps.len() > bounds::MOST_STEPS
    }

    /// Appends a dispatch with `bindings`, unless the plan has too many steps.
    pub(super) fn launch(&mut self, launch: Launch, bindings: &[Resource]) {
        if self.is_full() {
            return;
        }
        let variant = self.variant(launch.variant);
        let start = self.params(&launch.params);
        let length = launch.params.len();
        let action = Action::Dispatch {
            variant,
            workgroups: launch.workgroups,
            params: start..start + length,
            bindings: bindings.iter().copied().collect(),
        };
        self.step(action, launch.macs);
    }

    /// Returns the offset of `params`, which are kept once if they are equal. Above all, blocks of
    /// attention repeat their parameters.
    fn params(&mut self, params: &[u8]) -> usize {
        let hash = FxBuildHasher.hash_one(params);
        let known = self.params.get(&hash).filter(|start| self.plan.params[**start..].starts_with(params));
        if let Some(start) = known {
            return *start;
        }
        let start = self.plan.params.len();
        self.params.insert(hash, start);
        self.plan.params.extend_from_slice(params);
        let alignment = self.limits.min_uniform_buffer_offset_alignment as usize;
        self.plan.params.resize((start + params.len()).next_multiple_of(alignment), 0);
        start
    }

    /// Returns the index of `variant`, and adds it to the plan if it is new.
    fn variant(&mut self, variant: Variant) -> usize {
        // Bands alternate between a few variants, and comparing these is cheaper than hashing.
        let recent = self.recent.iter().position(|index| self.plan.variants.get(*index) == Some(&variant));
        if let Some(at) = recent {
            return self.recent[at];
        }
        let index = self.numbered(variant);
        self.recent.rotate_right(1);
        self.recent[0] = index;
        index
    }

    fn numbered(&mut self, variant: Variant) -> usize {
        *self.variants.entry(variant).or_insert_with_key(|variant| {
            self.plan.variants.push(variant.clone());
            self.plan.variants.len() - 1
        })
    }

    /// Appends a step of the current stage.
    pub(super) fn step(&mut self, action: Action, macs: u64) {
        self.plan.steps.push(Step { stage: self.stage, action, macs, turns: self.turns });
    }
}
