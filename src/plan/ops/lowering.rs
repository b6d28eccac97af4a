//! A plan in the making: stored tensors and their chunks, buffers, weights, parameters, steps.

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::kernels::choice::Choice;
use crate::kernels::weights::Layout;
use crate::kernels::{Launch, Variant};
use crate::limits::DeviceLimits;
use crate::model::graph::{Take, TensorId, Weight};
use crate::ordered::Ordered as _;
use crate::plan::fused::{Fused, Stage};
use crate::plan::node::Node;
use crate::plan::partition::{Partition, Rows};
use crate::plan::{
    Action, BufferId, BufferUse, Plan, PlanOptions, Resource, SlotId, StateId, Step, WeightId, WeightKey, WeightUse,
    bounds,
};
use crate::tensor::{Bytes, Storage};

use super::pass::{Pass, Shared};

/// The output of a stage: the buffers of its chunks, and how they lie in memory.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) partition: Partition,
    /// The buffer that held each chunk last.
    chunks: Vec<Option<BufferId>>,
    pub(super) storage: Storage,
    /// Whether chunks are padded to a multiple of four pixels, for attention.
    pub(super) padded: bool,
}

impl Stored {
    /// The buffer of chunk `index`.
    pub(super) fn chunk(&self, index: usize) -> BufferId {
        self.chunks[index].unwrap_or_else(|| unreachable!("a schedule computes what it reads"))
    }
}

/// What launches are made with.
#[derive(Debug)]
pub(in crate::plan) struct Lowering<'a> {
    pub(super) fused: &'a Fused,
    pub(super) nodes: &'a [Node],
    pub(super) limits: &'a DeviceLimits,
    pub(super) options: &'a PlanOptions,
    pub(super) choice: Choice,
    /// What each stage produces.
    stored: Vec<Stored>,
    /// The stage that produces each tensor.
    producers: BTreeMap<TensorId, usize>,
    /// The finished norms: scale and shift of each channel.
    pub(super) norms: BTreeMap<usize, BufferId>,
    /// The same of the frames before those.
    pub(super) past_norms: BTreeMap<usize, BufferId>,
    /// What outlives the run, by the convolution that reads it.
    pub(super) states: BTreeMap<String, StateId>,
    weights: BTreeMap<WeightKey, WeightId>,
    variants: FxHashMap<Variant, usize>,
    /// The last few of them that were launched.
    recent: [usize; 4],
    /// Where parameters lie that some launch has already, by their hash. Of two with one hash, the
    /// last.
    params: FxHashMap<u64, usize>,
    /// The stage whose launches are made.
    pub(super) stage: usize,
    pub(super) pass: Pass,
    pub(super) plan: Plan,
}

impl<'a> Lowering<'a> {
    /// Of so many tasks.
    pub(in crate::plan) fn new(
        fused: &'a Fused,
        nodes: &'a [Node],
        tasks: usize,
        limits: &'a DeviceLimits,
        options: &'a PlanOptions,
    ) -> Self {
        // Bands and scratch memory, about: tables that grow are copied again and again.
        const STEPS_PER_TASK: usize = 16;
        let choice = options.choice(limits);
        let steps = (tasks * STEPS_PER_TASK).min(bounds::MOST_STEPS);
        let names = fused.stages.iter().map(|stage| stage.name().to_owned()).collect();
        let mut plan = Plan::empty(names, limits, options);
        plan.steps.reserve(steps);
        let producer = |(index, stage): (usize, &Stage)| Some((stage.output()?, index));
        let producers = fused.stages.iter().enumerate().filter_map(producer).into_map();
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
            norms: BTreeMap::new(),
            past_norms: BTreeMap::new(),
            states: BTreeMap::new(),
            weights: BTreeMap::new(),
            variants: FxHashMap::default(),
            recent: [usize::MAX; 4],
            params: FxHashMap::default(),
            stage: 0,
            pass: Pass::default(),
            plan,
        }
    }

    pub(in crate::plan) fn into_plan(self) -> Plan {
        self.plan
    }

    /// Forgets the scratch memory of the pass before, and sees how much of each kind one over
    /// `stages` wants.
    pub(in crate::plan) fn begin_pass(&mut self, stages: &[usize]) {
        self.pass = Pass::new(self.nodes, stages, self.options);
    }

    /// Turns to stage `index`.
    pub(super) fn begin_stage(&mut self, index: usize) -> &'a Stage {
        self.stage = index;
        &self.fused.stages[index]
    }

    /// What was produced of `tensor`.
    pub(super) fn tensor(&self, tensor: TensorId) -> &Stored {
        &self.stored[self.producers[&tensor]]
    }

    /// What the current stage produces.
    pub(super) fn output_of_stage(&self) -> &Stored {
        &self.stored[self.stage]
    }

    /// The rows of chunk `index` of what the current stage produces.
    pub(super) fn rows(&self, index: usize) -> Rows {
        self.output_of_stage().partition.chunk(index)
    }

    /// The buffer that chunk `index` of `output`, which the current stage produces, goes to: that
    /// of the chunk it replaces, or a new one.
    pub(super) fn place(&mut self, output: TensorId, index: usize) -> BufferId {
        let node = &self.nodes[self.stage];
        if let Some(replaced) = node.replaces {
            let buffer = self.stored[replaced].chunk(index);
            self.stored[self.stage].chunks[index] = Some(buffer);
            return buffer;
        }
        let width = u64::from(self.fused.shape(output).width);
        let pixels = u64::from(self.rows(index).count()) * width;
        // Padded to a multiple of four pixels: attention reads its keys in groups.
        self.new_chunk(index, node.row_bytes / width * pixels.next_multiple_of(4))
    }

    /// A new buffer of `bytes` for chunk `index` of what the current stage produces.
    pub(super) fn new_chunk(&mut self, index: usize, bytes: u64) -> BufferId {
        let buffer = self.buffer(format!("{}[{index}]", self.fused.stages[self.stage].name()), bytes);
        self.stored[self.stage].chunks[index] = Some(buffer);
        buffer
    }

    /// Rows `rows` of `tensor` in one buffer, and the row that it starts with: a chunk, or a copy
    /// of what several hold, as `gathered`.
    pub(super) fn source(&mut self, tensor: TensorId, rows: Rows, gathered: Shared) -> (BufferId, u32) {
        let stored = self.tensor(tensor);
        let holding = stored.partition.holding(rows);
        if holding.len() == 1 {
            return (stored.chunk(holding.start), stored.partition.chunk(holding.start).start);
        }
        let pieces: Vec<(BufferId, Rows)> =
            holding.map(|index| (stored.chunk(index), stored.partition.chunk(index))).collect();
        let row_bytes = self.fused.row_bytes(tensor, self.options.storage);
        let target = self.shared(gathered);
        for (buffer, own) in pieces {
            let piece = own.intersect(rows);
            let offset = |from: u32| u64::from(piece.start - from) * row_bytes;
            let action = Action::Copy {
                from: (buffer, offset(own.start)),
                to: (target, offset(rows.start)),
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

    /// Scratch memory of the current stage.
    pub(super) fn scratch(&mut self, what: &str, bytes: u64) -> BufferId {
        self.buffer(format!("{}.{what}", self.fused.stages[self.stage].name()), bytes)
    }

    /// Scratch memory that the stages of the pass use in turn, by the name of the first.
    pub(super) fn shared(&mut self, kind: Shared) -> BufferId {
        if let Some(buffer) = self.pass.shared[kind as usize] {
            return buffer;
        }
        let buffer = self.scratch(kind.name(), self.pass.shared_bytes(kind));
        self.pass.shared[kind as usize] = Some(buffer);
        buffer
    }

    pub(super) fn weight(&mut self, weight: &Weight, layout: Layout, factor: f32) -> Resource {
        let storage = match layout {
            Layout::Filter { .. } => self.options.storage,
            Layout::Vector { .. } => Storage::F32,
        };
        let name = match weight.take {
            Take::Zeros => "zeros".to_owned(),
            Take::All
            | Take::Tap { .. }
            | Take::SumOfTaps { .. }
            | Take::Rows { .. }
            | Take::Frames { .. }
            | Take::Transform => weight.name.clone(),
        };
        // Zeros are zeros at any factor.
        let factor = if weight.take == Take::Zeros { 1.0 } else { factor };
        let used = WeightUse { name, take: weight.take, layout, storage, factor, bytes: layout.bytes(storage) };
        let next = WeightId(self.plan.weights.len());
        let id = *self.weights.entry(used.key()).or_insert(next);
        if id == next {
            self.plan.weights.push(used);
        }
        Resource::Weight(id)
    }

    /// Whether there are so many steps that the plan is refused. One task of a huge image may have
    /// more: what it would add is not kept.
    pub(in crate::plan) fn is_full(&self) -> bool {
        self.plan.steps.len() > bounds::MOST_STEPS
    }

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

    /// Where `params` lie. Blocks of attention above all repeat themselves: equal parameters are
    /// kept once.
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

    fn variant(&mut self, variant: Variant) -> usize {
        // Bands take turns of a few: comparing is cheaper than hashing.
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

    pub(super) fn step(&mut self, action: Action, macs: u64) {
        self.plan.steps.push(Step { stage: self.stage, action, macs });
    }
}
