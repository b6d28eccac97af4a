//! Turns scheduled chunks of fused stages into kernel launches on buffers that are not yet placed.
//!
//! One file for each kind of stage; this one owns what they share: tensors and their chunks, scratch memory, parameters, weights.

mod attention;
mod conv2d;
mod edges;
mod norm;
mod pointwise;
mod unfold;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::kernels::choice::{Choice, Way};
use crate::kernels::weights::Layout;
use crate::kernels::{Launch, Variant};
use crate::limits::DeviceLimits;
use crate::model::graph::{Take, TensorId, Weight};
use crate::plan::fuse::{Conv, Fused, Stage};
use crate::plan::node::{Node, Scratch};
use crate::plan::partition::{Partition, Rows};
use crate::plan::schedule::{Schedule, Task};
use crate::plan::{
    Action, BufferId, BufferUse, Plan, PlanOptions, Resource, SlotId, Step, WeightId, WeightKey, WeightUse, bounds,
};
use crate::tensor::{Bytes, Storage};

pub(super) use self::attention::attention_scratch;
pub(super) use self::edges::planes_bytes;
pub(super) use self::norm::stats_runs;
pub(super) use self::pointwise::product_rows;

use self::attention::Block;
use self::conv2d::FilterPart;

/// Lowers the tasks of `schedule`. Slots, lifetimes and memory are filled in by later passes.
///
/// # Errors
/// [`crate::Error::Input`] when there would be too many steps.
pub(super) fn lower(
    fused: &Fused,
    nodes: &[Node],
    schedule: &Schedule,
    limits: &DeviceLimits,
    options: &PlanOptions,
) -> Result<Plan> {
    let mut lowering = Lowering::new(fused, nodes, limits, options);
    for pass in &schedule.passes {
        lowering.begin_pass(&schedule.stages(pass, nodes.len()));
        for task in &schedule.tasks[pass.tasks.clone()] {
            lowering.task(*task, task.stage == pass.goal);
            if lowering.is_full() {
                return Err(bounds::too_many_steps());
            }
        }
        lowering.finish_norm(pass.goal);
    }
    Ok(lowering.plan)
}

/// The output of a stage: the buffers of its chunks, and how they lie in memory.
#[derive(Debug, Clone)]
struct Stored {
    partition: Partition,
    /// The buffer that held each chunk last.
    chunks: Vec<Option<BufferId>>,
    storage: Storage,
    /// Whether chunks are padded to a multiple of four pixels, for attention.
    padded: bool,
}

impl Stored {
    /// The buffer of chunk `index`.
    fn chunk(&self, index: usize) -> BufferId {
        self.chunks[index].unwrap_or_else(|| unreachable!("a schedule computes what it reads"))
    }
}

/// The scratch memory of a pass: buffers made when they are first wanted, as large as any stage of the pass wants them.
#[derive(Debug, Default)]
struct PassScratch {
    sizes: Scratch,
    planes: Option<BufferId>,
    v: Option<BufferId>,
    m: Option<BufferId>,
    gathered: Option<BufferId>,
    normed: Option<BufferId>,
    /// Whether each stage has filters of its own, or one after the other uses the same memory.
    own_filters: bool,
    /// The transformed filters of each stage; where the memory is shared, of the last.
    filters: BTreeMap<usize, Vec<FilterPart>>,
    /// What stages have used in turn.
    shared_filters: Vec<BufferId>,
    attention: Option<Block>,
    /// Moments of the goal, and how many runs.
    moments: Option<(BufferId, u64)>,
}

struct Lowering<'a> {
    fused: &'a Fused,
    nodes: &'a [Node],
    limits: &'a DeviceLimits,
    options: &'a PlanOptions,
    choice: Choice,
    /// What each stage produces.
    stored: Vec<Stored>,
    /// The stage that produces each tensor.
    producers: BTreeMap<TensorId, usize>,
    /// The finished norms: scale and shift of each channel.
    norms: BTreeMap<usize, BufferId>,
    weights: BTreeMap<WeightKey, WeightId>,
    variants: FxHashMap<Variant, usize>,
    /// Where parameters lie that some launch has already.
    params: FxHashMap<Vec<u8>, usize>,
    /// The stage whose launches are made.
    stage: usize,
    pass: PassScratch,
    plan: Plan,
}

impl<'a> Lowering<'a> {
    fn new(fused: &'a Fused, nodes: &'a [Node], limits: &'a DeviceLimits, options: &'a PlanOptions) -> Self {
        let choice = options.choice(limits);
        let producers: BTreeMap<TensorId, usize> =
            fused.stages.iter().enumerate().filter_map(|(index, stage)| Some((stage.output()?, index))).collect();
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
            weights: BTreeMap::new(),
            variants: FxHashMap::default(),
            params: FxHashMap::default(),
            stage: 0,
            pass: PassScratch::default(),
            plan: Plan::empty(fused.stages.iter().map(|stage| stage.name().to_owned()).collect(), limits, options),
        }
    }

    /// Forgets the scratch memory of the pass before, and sees how much of each kind this one wants.
    fn begin_pass(&mut self, stages: &[usize]) {
        let (sizes, own_filters) = pass_scratch(self.nodes, stages, self.options);
        self.pass = PassScratch { sizes, own_filters, ..PassScratch::default() };
    }

    /// Computes one chunk of one stage; with `measure`, for the norm that reads the stage's output.
    fn task(&mut self, task: Task, measure: bool) {
        let fused = self.fused;
        self.stage = task.stage;
        match &fused.stages[task.stage] {
            Stage::Input { transform, output } => self.input(transform, *output, task.chunk),
            Stage::Conv(conv) => self.conv(conv, task.chunk, measure),
            Stage::Attention { inputs, output, .. } => self.attention(*inputs, *output, task.chunk),
            Stage::Output { input, ending } => self.output(*input, *ending, task.chunk),
        }
    }

    fn conv(&mut self, conv: &Conv, chunk: usize, measure: bool) {
        let (input, output) = (conv.read_shape(self.fused.shape(conv.input)), self.fused.shape(conv.output));
        match self.choice.way_of(conv, input, output) {
            Way::Winograd => self.winograd(conv, chunk, measure),
            Way::Direct => self.direct(conv, chunk, measure),
            Way::Unfold => self.unfold(conv, chunk, measure),
            Way::Product => self.pointwise(conv, chunk, measure),
        }
    }

    /// What was produced of `tensor`.
    fn tensor(&self, tensor: TensorId) -> &Stored {
        &self.stored[self.producers[&tensor]]
    }

    /// The buffer that the current stage's chunk `index` goes to: that of the chunk it replaces, or a new one.
    fn place(&mut self, index: usize) -> BufferId {
        let node = &self.nodes[self.stage];
        let buffer = match node.replaces {
            Some(replaced) => self.stored[replaced].chunk(index),
            None => {
                let rows = u64::from(node.partition.chunk(index).count());
                // Rows of pixels are padded to a multiple of four: attention reads its keys in groups.
                let pixel = node.row_bytes * rows;
                let bytes = match self.fused.stages[self.stage].output() {
                    Some(output) => {
                        let width = u64::from(self.fused.shape(output).width);
                        pixel / (rows * width) * (rows * width).next_multiple_of(4)
                    }
                    None => pixel + self.check_bytes(),
                };
                let name = format!("{}[{index}]", self.fused.stages[self.stage].name());
                self.buffer(name, Bytes(bytes))
            }
        };
        self.stored[self.stage].chunks[index] = Some(buffer);
        buffer
    }

    /// Rows `rows` of `tensor` in one buffer, and the row that it starts with: a chunk, or a copy of what several hold.
    fn source(&mut self, tensor: TensorId, rows: Rows) -> (BufferId, u32) {
        let stored = self.tensor(tensor);
        let holding = stored.partition.holding(rows);
        if holding.len() == 1 {
            return (stored.chunk(holding.start), stored.partition.chunk(holding.start).start);
        }
        let shape = self.fused.shape(tensor);
        let row_bytes = u64::from(shape.width) * u64::from(shape.channels4()) * stored.storage.vec4_bytes();
        let pieces: Vec<(BufferId, Rows, Rows)> = holding
            .map(|index| {
                let own = stored.partition.chunk(index);
                (stored.chunk(index), own, own.intersect(rows))
            })
            .collect();
        let bytes = self.pass.sizes.gathered;
        let target = self.pass.gathered.unwrap_or_else(|| self.scratch("gathered", bytes));
        self.pass.gathered = Some(target);
        for (buffer, own, piece) in pieces {
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

    fn buffer(&mut self, name: String, bytes: Bytes) -> BufferId {
        self.plan.buffers.push(BufferUse { name, bytes, live: 0..0, slot: SlotId(0), offset: Bytes(0) });
        BufferId(self.plan.buffers.len() - 1)
    }

    /// Scratch memory of the current stage.
    fn scratch(&mut self, what: &str, bytes: u64) -> BufferId {
        let name = format!("{}.{what}", self.fused.stages[self.stage].name());
        self.buffer(name, Bytes(bytes))
    }

    fn weight(&mut self, weight: &Weight, layout: Layout, factor: f32) -> Resource {
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

    /// Whether there are so many steps that the plan is refused. One task of a huge image may have more: what it would add is not kept.
    fn is_full(&self) -> bool {
        self.plan.steps.len() > bounds::MOST_STEPS
    }

    fn launch(&mut self, launch: Launch, bindings: &[Resource]) {
        if self.is_full() {
            return;
        }
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
        *self.variants.entry(variant).or_insert_with_key(|variant| {
            self.plan.variants.push(variant.clone());
            self.plan.variants.len() - 1
        })
    }

    fn step(&mut self, action: Action, macs: u64) {
        self.plan.steps.push(Step { stage: self.stage, action, macs });
    }
}

/// The scratch memory of a pass over `stages`, and whether each has transformed filters of its own. Where those would take too much, stages use
/// the same memory in turn and transform their filters for every chunk, which costs little.
pub(super) fn pass_scratch(nodes: &[Node], stages: &[usize], options: &PlanOptions) -> (Scratch, bool) {
    let sizes = stages.iter().fold(Scratch::default(), |sizes, stage| sizes.max(nodes[*stage].scratch));
    let filters: u64 = stages.iter().map(|stage| nodes[*stage].scratch.filters).sum();
    (sizes, filters <= sizes.filters.max(options.chunk_limit.0.saturating_mul(2)))
}
