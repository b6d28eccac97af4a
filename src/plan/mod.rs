//! Turns a graph, the limits of a device and a few options into a [`Plan`]: all GPU work of one
//! run, as a value.
//!
//! Passes, each a function from value to value:
//!
//! 1. [`fuse`]: makes norms, SiLU, upsampling and sums part of the convolutions around them;
//! 2. [`nodes`] and [`partition`]: cut every tensor into chunks of rows, and add up the memory that
//!    computing one chunk takes;
//! 3. [`schedule`]: orders the chunks; under a budget [`retention`] decides which chunks are
//!    computed again;
//! 4. `lower`: turns each scheduled chunk into kernel launches on buffers that are not yet placed.
//!    In `ops`, the memory that an operation takes and its launches stand side by side;
//! 5. [`spill`], under a budget: moves weights and activations to host memory and back. If
//!    activations may move, `slots` chooses sizes of slots first, and this pass lays all buffers
//!    into them;
//! 6. [`liveness`]: finds the first and last use of each buffer;
//! 7. [`memory`], if pass 5 did not: lets buffers that are never live together share memory.
//!
//! `streamed` tries sizes of chunks if one pass makes nearly everything. `budget` tries sizes of
//! chunks and bands, and repeats 2 to 7 until a plan fits.
//!
//! A plan can be printed, compared, and run on the CPU by the interpreter in `tests/`. It can be
//! made for a device that is not at hand. The same input gives the same plan: planning reads no
//! clock, no environment variable and no order of a hash map. Planning never touches a GPU.

mod algorithm;
mod bounds;
mod budget;
mod cost;
pub mod device_class;
pub mod display;
mod facts;
pub mod fuse;
pub mod fused;
mod least;
pub mod liveness;
mod lower;
pub mod manifest;
pub mod memory;
pub mod node;
pub mod nodes;
mod ops;
mod options;
pub mod partition;
mod parts;
mod places;
pub mod retention;
pub mod schedule;
mod slots;
pub mod spill;
pub mod stream_scale;
mod streamed;
pub mod turns;
mod uses;

use serde::Serialize;

pub use self::facts::{PlanFacts, RunFacts, StageFacts};
pub use self::options::{ChannelOrder, HostStates, Output, PlanOptions, Weights};
pub use self::parts::{
    Action, Bindings, BufferId, BufferUse, Home, HostSource, InputRows, Memory, ParkedId, PlaneExtents, Resource,
    SlotId, StateId, StatePart, StateUse, Step, WeightId, WeightKey, WeightUse,
};

use crate::error::{Error, Result};
use crate::kernels::Variant;
use crate::kernels::choice::KernelChoice;
use crate::kernels::edges::CHECK_WORDS;
use crate::limits::{DeviceKind, DeviceLimits};
use crate::model::graph::Graph;
use crate::plan::device_class::DeviceClass;
use crate::plan::fused::Fused;
use crate::plan::schedule::{RetainedChunks, Schedule};
use crate::tensor::{Bytes, Storage};

/// Everything that an executor needs to run one decode or encode. See the module's text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Inputs: latents to decode, or an image to encode. An estimate has two: first the small copy
    /// that is measured.
    pub inputs: Vec<PlaneExtents>,
    /// Result: an image, or moments of latents.
    pub result: PlaneExtents,
    /// Storage type of activations and weights.
    pub storage: Storage,
    /// Form of the result that the host gets.
    pub output: Output,
    /// Names of the stages: modules of the network in diffusers' spelling.
    pub stages: Vec<String>,
    /// Kernels with values for their constants.
    #[serde(skip)]
    pub variants: Vec<Variant>,
    /// Commands in execution order.
    pub steps: Vec<Step>,
    /// Activations and scratch.
    pub buffers: Vec<BufferUse>,
    /// Sizes of the slots that hold the buffers.
    pub slots: Vec<Bytes>,
    /// Weights that the plan needs on the GPU.
    pub weights: Vec<WeightUse>,
    /// Parameters of all dispatches, aligned as the device requires for uniform offsets.
    #[serde(skip)]
    pub params: Vec<u8>,
    /// Memory that outlives a run.
    pub states: Vec<StateUse>,
    /// Sizes of the copies that wait in host memory.
    pub parked: Vec<Bytes>,
    /// Factors and summands for the channels of the input, `[2, c]`.
    #[serde(skip)]
    pub transform: Vec<f32>,
    /// Predicted memory.
    pub memory: Memory,
    /// Kernels, tile sizes and band size that the plan was made with.
    pub choice: KernelChoice,
    /// Kind of device that the plan is for.
    pub kind: DeviceKind,
    /// Speed of such devices.
    #[serde(skip)]
    pub class: DeviceClass,
}

/// Bytes that the host reads for each part of a picture that stays on the device: the words of
/// `image_check`.
pub const CHECK_BYTES: Bytes = Bytes(CHECK_WORDS as u64 * 4);

/// Alignment of sizes of buffers, in bytes.
const ALIGNMENT: u64 = 256;

/// Size in bytes of the buffer that is bound where a variant uses no buffer.
pub const UNUSED_BYTES: u64 = 64;

impl Plan {
    /// Plans `graph` for a device with `limits`.
    ///
    /// [`Error::TooLarge`] with the step and the bytes if a row of a tensor, a weight or a launch
    /// does not fit `limits`; [`Error::Budget`] if the search finds no plan within the budget;
    /// [`Error::Input`] if the plan has more chunks, steps or work than `bounds` allows.
    pub fn new(graph: &Graph, limits: &DeviceLimits, options: &PlanOptions) -> Result<Self> {
        Self::of(&fuse::fuse(graph, stream_scale(options.storage)), limits, options)
    }

    /// Plans an estimate: `graph` with the group norms that `small` measures, in one pass. `small`
    /// is the same network for a smaller image, see [`Fused::with_norms_of`]. The inputs are those
    /// of `small`, then those of `graph`; without group norms, those of `graph` alone.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub fn estimated(graph: &Graph, small: &Graph, limits: &DeviceLimits, options: &PlanOptions) -> Result<Self> {
        let [small, fused] = [small, graph].map(|graph| fuse::fuse(graph, stream_scale(options.storage)));
        Self::of(&fused.with_norms_of(small), limits, options)
    }

    /// Plans a fused graph.
    fn of(fused: &Fused, limits: &DeviceLimits, options: &PlanOptions) -> Result<Self> {
        let streams = schedule::streams(&nodes::nodes(fused, limits, options)?);
        let (mut plans, is_default) = if streams {
            streamed::plan(fused, limits, options)?
        } else {
            (vec![Self::whole(fused, limits, options)?], true)
        };
        if let Some(budget) = options.memory_budget {
            let last = &plans[plans.len() - 1];
            let fits = last.memory.peak() <= budget && last.check(limits).is_ok();
            if !fits || !is_default {
                let searched = budget::within(fused, limits, options, &plans[0], budget);
                // A plan that moves data must be clearly faster, as links vary more than devices.
                if !fits
                    || searched.as_ref().is_ok_and(|plan| plan.predicted_seconds() * 1.1 < last.predicted_seconds())
                {
                    plans.push(searched?);
                }
            }
        }
        let plan = plans.swap_remove(plans.len() - 1);
        plan.check(limits)?;
        Ok(plan)
    }

    /// Makes a plan that computes nothing twice.
    fn whole(fused: &Fused, limits: &DeviceLimits, options: &PlanOptions) -> Result<Self> {
        let nodes = nodes::nodes(fused, limits, options)?;
        let keep = RetainedChunks::whole(&nodes);
        let schedule = Schedule::new(&nodes, &keep, bounds::MOST_LOOKS).ok_or_else(bounds::too_many_steps)?;
        let mut plan = lower::lower(fused, &nodes, &schedule, limits, options)?;
        plan.place(limits, options);
        Ok(plan)
    }

    /// Returns a plan without steps.
    fn empty(stages: Vec<String>, limits: &DeviceLimits, options: &PlanOptions) -> Self {
        Self {
            inputs: Vec::new(),
            result: PlaneExtents::NONE,
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
            class: DeviceClass::of(limits),
        }
    }

    /// Runs the last two passes, liveness and placing.
    pub(super) fn place(&mut self, limits: &DeviceLimits, options: &PlanOptions) {
        liveness::liveness(self);
        memory::assign(self);
        self.predict_memory(limits, options);
    }

    /// Predicts the memory of a plan whose buffers are placed.
    fn predict_memory(&mut self, limits: &DeviceLimits, options: &PlanOptions) {
        let timestamps = options.profile && limits.timestamp_query;
        self.memory = memory::predict(self, timestamps, options.other_weights);
    }

    /// Returns the bytes of host memory that one decode takes: copies of buffers, states that are
    /// kept on the host, and all packed weights if the plan fetches any.
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

    /// True if `part` of `state` is in host memory between two runs.
    pub fn is_on_host(&self, state: StateId, part: StatePart) -> bool {
        matches!(part, StatePart::Frames(_)) && self.states[state.0].home == Home::Host
    }

    /// Returns the parts of the result in order of rows: the buffer that holds the part, its first
    /// row and the row after its last.
    pub fn outputs(&self) -> impl Iterator<Item = (BufferId, (u32, u32))> {
        self.steps.iter().filter_map(|step| match step.action {
            Action::Output { from, rows } => Some((from, rows)),
            _ => None,
        })
    }

    /// Returns the size of the largest range that one binding covers.
    pub fn largest_binding(&self) -> Bytes {
        let buffers = self.buffers.iter().map(|buffer| buffer.bytes);
        buffers.chain(self.weights.iter().map(|weight| weight.bytes)).max().unwrap_or_default()
    }

    /// Returns the bytes of one row of the result, of all frames, in the form of
    /// [`Action::Output`].
    pub fn row_bytes(&self) -> Bytes {
        let frame = self.output.row_bytes(self.result.size.width, self.result.channels);
        Bytes(frame * u64::from(self.result.frames))
    }

    /// Returns the extents of the input; in an estimate, of the input after the small copy.
    pub fn input(&self) -> PlaneExtents {
        self.inputs.last().copied().unwrap_or(PlaneExtents::NONE)
    }

    /// Checks the limits that the executor relies on. [`Plan::new`] returns no plan that breaks
    /// one.
    fn check(&self, limits: &DeviceLimits) -> Result<()> {
        let fits = |what: &dyn Fn() -> String, needed, limit| {
            if needed > limit { Err(Error::TooLarge { what: what(), needed, limit }) } else { Ok(()) }
        };
        let buffers = self.buffers.iter().map(|buffer| (&buffer.name, buffer.bytes));
        for (name, needed) in buffers.chain(self.weights.iter().map(|weight| (&weight.name, weight.bytes))) {
            fits(&|| format!("buffer \"{name}\""), needed, limits.largest_bound_buffer())?;
        }
        // A staging buffer is no larger than the largest of the sizes that follow.
        let most = limits.max_buffer_size;
        fits(&|| "the plan's parameters".to_owned(), self.memory.params, most)?;
        fits(&|| "a picture that stays on the device".to_owned(), self.memory.picture, most)?;
        for (index, needed) in self.slots.iter().enumerate() {
            fits(&|| format!("slot {index}"), *needed, most)?;
        }
        for step in &self.steps {
            let Action::Dispatch { variant, workgroups, .. } = &step.action else { continue };
            let variant = &self.variants[*variant];
            let most = limits.max_compute_workgroups_per_dimension;
            if let Some(count) = workgroups.iter().find(|count| **count > most) {
                return Err(Error::input(
                    format!("size, at step \"{}\" ({})", self.stages[step.stage], variant.file),
                    format!("at most {most} workgroups along an axis"),
                    count.to_string(),
                ));
            }
        }
        Ok(())
    }
}

/// Returns the factor of the residual stream. Half precision ends at 65504; 1/16 leaves room for
/// streams up to a million.
fn stream_scale(storage: Storage) -> f32 {
    match storage {
        Storage::F32 => 1.0,
        Storage::F16 | Storage::PackedF16 | Storage::FastF16 => 1.0 / 16.0,
    }
}
