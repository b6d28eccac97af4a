//! WHEN and WHERE: a graph, the limits of a device and a few options become a [`Plan`], which is a
//! value.
//!
//! Passes, each a function from value to value:
//!
//! 1. [`fuse`]: norms, SiLU, upsampling and sums become part of the convolutions around them;
//! 2. [`nodes`] and [`partition`]: every tensor is cut into chunks of rows, and what computing one
//!    takes is added up;
//! 3. [`schedule`]: in which order chunks are computed; under a budget [`residence`] decides which
//!    are computed again;
//! 4. `lower`: each scheduled chunk becomes kernel launches on buffers that are not yet placed.
//!    What an operation takes and what it launches stand side by side in `ops`;
//! 5. [`spill`], under a budget: what waits in host memory;
//! 6. [`liveness`]: first and last use of each buffer;
//! 7. [`memory`]: buffers that are never live together share memory.
//!
//! `budget` tries sizes of chunks, and repeats 2 to 7 until the plan fits.
//!
//! A plan can be printed, compared, run on the CPU by the interpreter in `tests/`, and made for a
//! device that nobody here owns. Same input, same plan: nothing here reads a clock, the environment
//! or a hash map's order. Nothing here touches a GPU.

mod bounds;
mod budget;
pub mod display;
mod facts;
pub mod fuse;
pub mod fused;
pub mod half;
pub mod liveness;
mod lower;
pub mod memory;
pub mod node;
pub mod nodes;
mod ops;
mod options;
mod pace;
pub mod partition;
mod parts;
mod readers;
pub mod residence;
pub mod schedule;
pub mod spill;
mod ways;

use std::ops::Range;

use serde::Serialize;

pub use self::facts::{PlanFacts, RunFacts, StageFacts};
pub use self::options::{ChannelOrder, HostStates, Output, PlanOptions, Weights};
pub use self::parts::{
    Action, Bindings, BufferId, BufferUse, Home, HostSource, InputRows, Memory, ParkedId, Planes, Resource, SlotId,
    StateId, StatePart, StateUse, Step, WeightId, WeightKey, WeightUse,
};

use crate::error::{Error, Result};
use crate::kernels::choice::Choice;
use crate::kernels::edges::CHECK_WORDS;
use crate::kernels::{Variant, interface};
use crate::limits::{DeviceKind, DeviceLimits};
use crate::model::graph::Graph;
use crate::plan::fused::Fused;
use crate::plan::schedule::{Keep, Schedule};
use crate::tensor::{Bytes, Storage};

/// Everything an executor needs to know. See the module's text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// What it is run on: latents to be decoded, or an image to be encoded. Two for an estimate:
    /// first the copy that is measured.
    pub inputs: Vec<Planes>,
    /// What comes of it: an image, or moments.
    pub result: Planes,
    /// How activations and weights are stored.
    pub storage: Storage,
    /// What the host gets.
    pub output: Output,
    /// Names of the stages: modules of the network in diffusers' spelling.
    pub stages: Vec<String>,
    /// Specialised kernels.
    #[serde(skip)]
    pub variants: Vec<Variant>,
    /// Commands in execution order.
    pub steps: Vec<Step>,
    /// Activations and scratch.
    pub buffers: Vec<BufferUse>,
    /// Sizes of the slots that buffers lie in.
    pub slots: Vec<Bytes>,
    /// Weights.
    pub weights: Vec<WeightUse>,
    /// Parameters of all dispatches, each aligned as the device wants uniform offsets.
    #[serde(skip)]
    pub params: Vec<u8>,
    /// What outlives a run.
    pub states: Vec<StateUse>,
    /// Sizes of the copies that wait in host memory.
    pub parked: Vec<Bytes>,
    /// Factors and summands of the input, `[2, c]`.
    #[serde(skip)]
    pub transform: Vec<f32>,
    /// Predicted memory.
    pub memory: Memory,
    /// The kernels it was made with.
    pub choice: Choice,
    /// What runs it.
    pub kind: DeviceKind,
}

/// What the host reads of each part of a picture that stays on the device: the words of
/// `image_check`.
pub const CHECK_BYTES: Bytes = Bytes(CHECK_WORDS as u64 * 4);

/// Size of the buffer that is bound where a variant uses no buffer, bytes.
pub const UNUSED_BYTES: u64 = 64;

impl Plan {
    /// Plans `graph` for a device with `limits`.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when a row of a tensor, a weight or a launch does not fit `limits`, with
    /// the step and the bytes; [`Error::Budget`] when no plan was found that keeps the budget;
    /// [`Error::Input`] for a plan of more chunks, steps or work than is sane.
    pub fn new(graph: &Graph, limits: &DeviceLimits, options: &PlanOptions) -> Result<Self> {
        Self::of(&fuse::fuse(graph, stream_scale(options.storage)), limits, options)
    }

    /// Plans `graph` with the group norms that `small` measures, the same network for a smaller
    /// image: an estimate in one pass, see [`Fused::with_norms_of`]. The inputs are those of
    /// `small` and of `graph`; of `graph` alone where there are no group norms.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub fn estimated(graph: &Graph, small: &Graph, limits: &DeviceLimits, options: &PlanOptions) -> Result<Self> {
        let [small, fused] = [small, graph].map(|graph| fuse::fuse(graph, stream_scale(options.storage)));
        Self::of(&fused.with_norms_of(small), limits, options)
    }

    fn of(fused: &Fused, limits: &DeviceLimits, options: &PlanOptions) -> Result<Self> {
        let streams = schedule::streams(&nodes::nodes(fused, limits, options)?);
        let whole =
            if streams { Self::streamed(fused, limits, options)? } else { Self::whole(fused, limits, options)? };
        let plan = match options.memory_budget {
            Some(budget) if whole.memory.peak() > budget || whole.check(limits).is_err() => {
                budget::within(fused, limits, options, &whole, budget)?
            }
            Some(_) | None => whole,
        };
        plan.check(limits)?;
        Ok(plan)
    }

    /// A plan that computes nothing twice.
    fn whole(fused: &Fused, limits: &DeviceLimits, options: &PlanOptions) -> Result<Self> {
        let nodes = nodes::nodes(fused, limits, options)?;
        let keep = Keep::whole(&nodes);
        let schedule = Schedule::new(&nodes, &keep, bounds::MOST_LOOKS).ok_or_else(bounds::too_many_steps)?;
        let mut plan = lower::lower(fused, &nodes, &schedule, limits, options)?;
        plan.place(limits, options);
        Ok(plan)
    }

    /// The same where one pass makes nearly everything: of each tensor a few chunks exist at once,
    /// and the smaller they are, the less memory that takes and the more launches. The smallest
    /// plan that is not much slower than the fastest.
    fn streamed(fused: &Fused, limits: &DeviceLimits, options: &PlanOptions) -> Result<Self> {
        const COARSEST: Bytes = Bytes(4 << 20);
        const FINER: [Bytes; 2] = [Bytes(2 << 20), Bytes(1 << 20)];
        const SLOWER: f64 = 1.5;
        // Beyond this a finer plan takes long to make, and too many steps to run.
        const MOST_STEPS: usize = 1 << 17;
        let within = |chunk| PlanOptions { chunk_limit: options.chunk_limit.min(chunk), ..options.clone() };
        let mut best = Self::whole(fused, limits, &within(COARSEST))?;
        let most = SLOWER * best.predicted_seconds();
        for chunk in FINER {
            if best.steps.len() > MOST_STEPS {
                break;
            }
            let Ok(finer) = Self::whole(fused, limits, &within(chunk)) else { break };
            if finer.predicted_seconds() > most {
                break;
            }
            if finer.memory.peak() < best.memory.peak() {
                best = finer;
            }
        }
        Ok(best)
    }

    /// A plan of no steps.
    fn empty(stages: Vec<String>, limits: &DeviceLimits, options: &PlanOptions) -> Self {
        Self {
            inputs: Vec::new(),
            result: Planes::NONE,
            storage: options.storage,
            output: options.output,
            stages,
            variants: Vec::new(),
            steps: Vec::new(),
            buffers: Vec::new(),
            slots: Vec::new(),
            weights: Vec::new(),
            params: Vec::new(),
            states: Vec::new(),
            parked: Vec::new(),
            transform: Vec::new(),
            memory: Memory::default(),
            choice: options.choice(limits),
            kind: limits.kind,
        }
    }

    /// The last two passes.
    pub(super) fn place(&mut self, limits: &DeviceLimits, options: &PlanOptions) {
        liveness::liveness(self);
        memory::assign(self, options.profile && limits.timestamp_query, options.other_weights);
    }

    /// Tables of norms that outlive a run, which are on the device.
    pub(crate) fn table_bytes(&self) -> Bytes {
        self.states.iter().map(|state| state.table).sum()
    }

    /// Host memory that one decode takes for what waits there: copies of buffers, what outlives a
    /// run, and the packed weights it fetches.
    pub fn host_bytes(&self) -> Bytes {
        let parked: Bytes = self.parked.iter().copied().sum();
        let fetches = |step: &Step| matches!(step.action, Action::Fetch { from: HostSource::Weight(_), .. });
        let weights = if self.steps.iter().any(fetches) {
            self.weights.iter().map(|weight| weight.bytes).sum()
        } else {
            Bytes(0)
        };
        let states = self.states.iter().filter(|state| state.home == Home::Host).map(StateUse::bytes);
        parked + weights + states.sum()
    }

    /// Bytes that one decode moves between host and device because the budget is short.
    pub fn transferred(&self) -> Bytes {
        let moved = self.steps.iter().map(|step| match &step.action {
            Action::Fetch { from: HostSource::Input(_), .. } => Bytes(0),
            Action::Fetch { to: buffer, .. } | Action::Park { from: buffer, .. } => self.buffers[buffer.0].bytes,
            Action::Recall { state, part, to } if self.is_on_host(*state, *part) => self.buffers[to.0].bytes,
            Action::Keep { state, part, bytes, .. } if self.is_on_host(*state, *part) => Bytes(*bytes),
            Action::Dispatch { .. }
            | Action::Copy { .. }
            | Action::Recall { .. }
            | Action::Keep { .. }
            | Action::Output { .. } => Bytes(0),
        });
        moved.sum()
    }

    /// Whether `part` of `state` is in host memory between two runs.
    pub fn is_on_host(&self, state: StateId, part: StatePart) -> bool {
        matches!(part, StatePart::Frames(_)) && self.states[state.0].home == Home::Host
    }

    /// The parts of the result: where each is when it is handed out, first row and row after the
    /// last. In order of rows.
    pub fn outputs(&self) -> impl Iterator<Item = (BufferId, (u32, u32))> {
        self.steps.iter().filter_map(|step| match &step.action {
            Action::Output { from, rows } => Some((*from, *rows)),
            Action::Dispatch { .. }
            | Action::Copy { .. }
            | Action::Fetch { .. }
            | Action::Park { .. }
            | Action::Recall { .. }
            | Action::Keep { .. } => None,
        })
    }

    /// Multiply-adds, counted as direct convolutions and products.
    pub fn macs(&self) -> u64 {
        self.steps.iter().map(|step| step.macs).sum()
    }

    /// The largest range that one binding covers.
    pub fn largest_binding(&self) -> Bytes {
        let buffers = self.buffers.iter().map(|buffer| buffer.bytes);
        buffers.chain(self.weights.iter().map(|weight| weight.bytes)).max().unwrap_or_default()
    }

    /// Bytes of one row of the result, of all frames, as [`Action::Output`] hands it over.
    pub fn row_bytes(&self) -> Bytes {
        let frame = self.output.row_bytes(self.result.size.width, self.result.channels);
        Bytes(frame * u64::from(self.result.frames))
    }

    /// What it is run on. Of an estimate: what comes after the copy that is measured.
    pub fn input(&self) -> Planes {
        self.inputs.last().copied().unwrap_or(Planes::NONE)
    }

    /// Ranges of steps to submit together so that each is about as much as `work`, or is a single
    /// step.
    pub fn submissions(&self, work: u64) -> Vec<Range<usize>> {
        let mut result = Vec::new();
        let mut start = 0;
        while start < self.steps.len() {
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let end = self.submission_end(start, work as f64, |step| self.work(step) as f64);
            result.push(start..end);
            start = end;
        }
        result
    }

    /// The step after the last of those from `start` on that come nearest to `target`, by what each
    /// of them takes; at least one.
    pub fn submission_end(&self, start: usize, target: f64, taken: impl Fn(&Step) -> f64) -> usize {
        let mut sum = 0.0;
        for (index, step) in self.steps.iter().enumerate().skip(start) {
            let next = sum + taken(step);
            if index > start && next - target > target - sum {
                return index;
            }
            sum = next;
        }
        self.steps.len()
    }

    /// What `step` takes, in multiply-adds that would take as long.
    pub fn work(&self, step: &Step) -> u64 {
        // Launches and copies cost something even where they multiply nothing.
        const STEP_MACS: u64 = 500_000;
        let moved = match &step.action {
            Action::Fetch { to: buffer, .. }
            | Action::Park { from: buffer, .. }
            | Action::Output { from: buffer, .. } => self.buffers[buffer.0].bytes.0,
            Action::Recall { state, part, to } if self.is_on_host(*state, *part) => self.buffers[to.0].bytes.0,
            Action::Keep { state, part, bytes, .. } if self.is_on_host(*state, *part) => *bytes,
            Action::Dispatch { .. } | Action::Copy { .. } | Action::Recall { .. } | Action::Keep { .. } => 0,
        };
        step.macs + STEP_MACS + self.memory_work(step) + self.transfer_work(moved)
    }

    /// What a launch takes for reading and writing all that it binds, in multiply-adds that would
    /// take as long. Right in its order of magnitude.
    fn memory_work(&self, step: &Step) -> u64 {
        const PER_BYTE: u64 = 16;
        let bound = |resource: &Resource| match resource {
            Resource::Buffer(buffer) => self.buffers[buffer.0].bytes.0,
            Resource::Weight(weight) => self.weights[weight.0].bytes.0,
            Resource::Unused => 0,
        };
        match &step.action {
            Action::Dispatch { bindings, .. } => bindings.iter().map(bound).sum::<u64>() * PER_BYTE,
            Action::Copy { bytes, .. } => 2 * bytes * PER_BYTE,
            Action::Fetch { .. }
            | Action::Park { .. }
            | Action::Recall { .. }
            | Action::Keep { .. }
            | Action::Output { .. } => 0,
        }
    }

    /// What moving `bytes` over the host's link takes, in multiply-adds that would take as long.
    /// Right in its order of magnitude.
    pub fn transfer_work(&self, bytes: u64) -> u64 {
        let per_byte = match self.kind {
            DeviceKind::Cpu => 2,
            DeviceKind::Gpu => 16,
        };
        bytes * per_byte
    }

    /// What the executor relies on. A plan that breaks a device's limit is never handed out.
    fn check(&self, limits: &DeviceLimits) -> Result<()> {
        let limit = limits.largest_bound_buffer();
        let buffers = self.buffers.iter().map(|buffer| (&buffer.name, buffer.bytes));
        for (name, needed) in buffers.chain(self.weights.iter().map(|weight| (&weight.name, weight.bytes))) {
            if needed > limit {
                return Err(Error::TooLarge { what: format!("buffer \"{name}\""), needed, limit });
            }
        }
        // A staging buffer is no larger than the largest of these.
        if self.memory.params > limits.max_buffer_size {
            let (needed, limit) = (self.memory.params, limits.max_buffer_size);
            return Err(Error::TooLarge { what: "the plan's parameters".to_owned(), needed, limit });
        }
        if self.memory.picture > limits.max_buffer_size {
            let (needed, limit) = (self.memory.picture, limits.max_buffer_size);
            return Err(Error::TooLarge { what: "a picture that stays on the device".to_owned(), needed, limit });
        }
        for (index, needed) in self.slots.iter().enumerate() {
            if *needed > limits.max_buffer_size {
                let what = format!("slot {index}");
                return Err(Error::TooLarge { what, needed: *needed, limit: limits.max_buffer_size });
            }
        }
        for step in &self.steps {
            let Action::Dispatch { variant, workgroups, bindings, .. } = &step.action else { continue };
            let variant = &self.variants[*variant];
            let most = limits.max_compute_workgroups_per_dimension;
            if let Some(count) = workgroups.iter().find(|count| **count > most) {
                return Err(Error::Input {
                    what: format!("size, at step \"{}\" ({})", self.stages[step.stage], variant.file),
                    expected: format!("at most {most} workgroups along an axis"),
                    found: count.to_string(),
                });
            }
            assert_eq!(bindings.len(), interface(variant.file).bindings.len(), "bindings of {}", variant.file);
        }
        Ok(())
    }
}

/// The factor of the residual stream. Half precision ends at 65504; 1/16 leaves room for streams up
/// to a million.
fn stream_scale(storage: Storage) -> f32 {
    match storage {
        Storage::F32 => 1.0,
        Storage::F16 | Storage::PackedF16 | Storage::FastF16 => 1.0 / 16.0,
    }
}
