//! Prepares and runs jobs: the plan of an image, of a tile, or of a part of a clip. If the device
//! has too little memory for a plan, one smaller plan replaces it, with a warning.

use std::sync::Arc;

use serde::Serialize;

use super::Vae;
use super::pixels::{Frame, check_finite, place};
use super::request::Job;
use crate::device::{ClipStates, Prepared};
use crate::error::{DeviceError, Error, Result};
use crate::execution::{Control, RunReport};
use crate::gpu::Input;
use crate::plan::turns::Turn;
use crate::plan::{Plan, PlaneExtents};
use crate::tensor::Bytes;

/// A smaller plan that was used because the first one failed. Its `Display` is a message for the
/// user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fallback {
    /// The allocation that failed, and the reason.
    pub failed: String,
    /// The predicted peak of the plan that failed, bytes.
    pub first_peak_bytes: Bytes,
    /// The predicted peak of the plan that was used instead, bytes.
    pub peak_bytes: Bytes,
}

impl std::fmt::Display for Fallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { failed, first_peak_bytes, peak_bytes } = self;
        write!(f, "{failed}; using a plan of {peak_bytes} instead of {first_peak_bytes}, which is slower")
    }
}

/// An allocated plan, and the job that it was made for.
#[derive(Debug)]
pub(super) struct Ready {
    pub(super) job: Job,
    pub(super) prepared: Prepared,
    pub(super) fallback: Option<Fallback>,
    /// True if the last run was completed. Only then is there a picture.
    pub(super) complete: bool,
    /// The largest predicted peak of the tiles, if the last run was the last tile of a decode.
    pub(super) peak_of_tiles: Option<Bytes>,
}

/// The part of a clip that a job is run for. An image has no states, and one part.
#[derive(Debug, Default)]
pub(super) struct ClipPart {
    pub(super) states: ClipStates,
    pub(super) turn: Turn,
}

/// The result of a job that was run: its frames, one for an image, and how the run went.
pub(super) struct Ran<F> {
    pub(super) frames: Vec<F>,
    /// The extents of the result.
    pub(super) result: PlaneExtents,
    pub(super) report: RunReport,
    pub(super) fallback: Option<Fallback>,
}

wasm_not! {
    Send;
    /// A function that takes rows of a result as a plan hands them out: the extents of the result,
    /// the first row and the row after the last, and the bytes.
    pub(super) type Deliver<'a> = dyn FnMut(PlaneExtents, (u32, u32), &[u8]) -> Result<()> + 'a
}

wasm_not! {
    Send, Sync;
    /// A function that returns the input that a plan reads.
    pub(super) type Inputs<'a, 'b> = dyn Fn(&Plan) -> Result<Input<'b>> + 'a
}

impl Ready {
    fn new(job: &Job, prepared: Prepared, fallback: Option<Fallback>) -> Self {
        Self { job: job.clone(), prepared, fallback, complete: false, peak_of_tiles: None }
    }

    /// Runs the plan. Takes the states of `part`, and puts them back if the run succeeds.
    async fn run(
        &mut self,
        input: &Input<'_>,
        part: &mut ClipPart,
        control: &mut Control<'_>,
        deliver: &mut Deliver<'_>,
    ) -> Result<(RunReport, Option<Fallback>)> {
        (self.complete, self.peak_of_tiles) = (false, None);
        self.prepared.put_states(std::mem::take(&mut part.states), part.turn);
        let result = self.prepared.plan().result;
        let run = self.prepared.run(input, control, &mut |rows, data| deliver(result, rows, data)).await;
        // After a run that failed, states may hold anything.
        let left = self.prepared.take_states();
        let report = run?;
        part.states = left;
        self.complete = true;
        Ok((report, self.fallback.clone()))
    }
}

impl Vae {
    /// Allocates buffers and compiles kernels for `job`, unless that job is ready.
    pub(super) async fn prepare_job(&mut self, job: &Job) -> Result<&mut Ready> {
        let ready = match self.ready.take_if(|ready| ready.job == *job) {
            Some(ready) => Ready { peak_of_tiles: None, ..ready },
            None => {
                self.free_ready().await?;
                let plan = self.planner.plan_job(job)?;
                self.allocate(job, plan).await?
            }
        };
        Ok(self.ready.insert(ready))
    }

    /// Frees the plan that is ready, so that the next one has the device's memory for itself. After
    /// a run that was not completed, the device may still be at work in that memory.
    pub(super) async fn free_ready(&mut self) -> Result<()> {
        match self.ready.take() {
            Some(ready) if !ready.complete => {
                drop(ready);
                self.device.idle().await
            }
            _ => Ok(()),
        }
    }

    /// Runs `job` on the `inputs` of its plan, for a `part` of a clip; an image has only one. Hands
    /// rows to `deliver` as they are ready, in order.
    ///
    /// If the device has too little memory for the run, a smaller plan begins again, with the first
    /// row. A later part of a clip cannot begin again, because it may have overwritten states.
    pub(super) async fn run_job(
        &mut self,
        job: &Job,
        inputs: &Inputs<'_, '_>,
        part: &mut ClipPart,
        control: &mut Control<'_>,
        deliver: &mut Deliver<'_>,
    ) -> Result<(RunReport, Option<Fallback>)> {
        let ready = self.prepare_job(job).await?;
        let input = inputs(ready.prepared.plan())?;
        let run = match ready.run(&input, part, control, deliver).await {
            Err(error) if is_out_of_memory(&error) && part.turn.part == 0 && ready.fallback.is_none() => {
                let first_peak = ready.prepared.plan().memory.peak();
                let held = self.device.ledger().current();
                self.ready = None;
                let smaller = self.fall_back(job, first_peak, held, error).await?;
                let ready = self.ready.insert(smaller);
                part.states = ClipStates::new(&self.device, &ready.prepared.plan().states).await?;
                ready.run(&input, part, control, deliver).await
            }
            run => run,
        };
        if matches!(run, Err(Error::Device(_))) {
            // Its buffers may be in any state: the next run makes new ones.
            self.ready = None;
        }
        run
    }

    /// Runs `job`, see [`Self::run_job`], and returns its whole result: all frames that exist.
    pub(super) async fn run_whole<F: Frame>(
        &mut self,
        job: &Job,
        inputs: &Inputs<'_, '_>,
        part: &mut ClipPart,
        control: &mut Control<'_>,
    ) -> Result<Ran<F>> {
        let (output, turn) = (job.request.output, part.turn);
        let (mut frames, mut extents) = (Vec::<F>::new(), PlaneExtents::NONE);
        let mut place = |result: PlaneExtents, rows: (u32, u32), data: &[u8]| {
            extents = result;
            let existing = result.existing(turn);
            frames.resize_with(existing.len(), F::default);
            let all = data.chunks_exact(data.len() / result.frames as usize);
            for (frame, data) in frames.iter_mut().zip(all.skip(existing.start)) {
                check_finite(result.size, output, rows, data)?;
                place(frame, result.size, rows, data);
            }
            Ok(())
        };
        let (report, fallback) = self.run_job(job, inputs, part, control, &mut place).await?;
        Ok(Ran { frames, result: extents, report, fallback })
    }

    /// Allocates everything that `plan` needs. If the device has too little memory for it,
    /// allocates a smaller plan.
    async fn allocate(&mut self, job: &Job, plan: Plan) -> Result<Ready> {
        let first_peak = plan.memory.peak();
        match self.try_plan(plan).await {
            Ok(prepared) => Ok(Ready::new(job, prepared, None)),
            Err(error) if is_out_of_memory(&error) => {
                let held = self.device.ledger().held_at_failure();
                self.fall_back(job, first_peak, held, error).await
            }
            Err(error) => Err(error),
        }
    }

    /// Allocates a smaller plan in place of one of `first_peak` bytes, which failed with `error`
    /// when the device held `held` bytes.
    async fn fall_back(&mut self, job: &Job, first_peak: Bytes, held: Bytes, error: Error) -> Result<Ready> {
        self.weights.free();
        self.device.idle().await?;
        let plan = match self.smaller_plan(job, first_peak, held) {
            Ok(plan) => plan,
            Err(why) => return Err(explain(error, first_peak, &why)),
        };
        let fallback =
            Fallback { failed: error.to_string(), first_peak_bytes: first_peak, peak_bytes: plan.memory.peak() };
        log::warn!("{fallback}");
        match self.try_plan(plan).await {
            Ok(prepared) => Ok(Ready::new(job, prepared, Some(fallback))),
            Err(second) if is_out_of_memory(&second) => {
                Err(explain(error, first_peak, &format!("a plan of {} failed, too: {second}", fallback.peak_bytes)))
            }
            Err(other) => Err(other),
        }
    }

    async fn try_plan(&mut self, plan: Plan) -> Result<Prepared> {
        let plan = Arc::new(plan);
        let device = self.device.clone();
        let allocated = match self.weights.place(&device, &plan).await {
            Ok(()) => Prepared::new(&device, Arc::clone(&plan), self.weights.of(&plan)).await,
            Err(error) => Err(error),
        };
        if allocated.is_err() {
            self.weights.free();
        }
        allocated
    }

    /// Returns a plan that takes less than `first_peak`, or the reason why there is none.
    fn smaller_plan(&self, job: &Job, first_peak: Bytes, held: Bytes) -> std::result::Result<Plan, String> {
        // The device certainly has the bytes that it held. If the next plan is close to the one
        // that failed, it may fail as well.
        let asked = job.request.memory_budget.unwrap_or(first_peak);
        let budget = held.min(Bytes(first_peak.0 / 10 * 6)).min(asked);
        let within = |budget| self.planner.plan_job(&job.within(budget));
        let plan = match within(budget) {
            // The smallest plan may still fit: the device may have more than it held.
            Err(Error::Budget { smallest, .. }) if smallest < first_peak => within(smallest),
            planned => planned,
        };
        match plan {
            Ok(plan) if plan.memory.peak() < first_peak => Ok(plan),
            Ok(plan) => Err(format!("the smallest plan takes {}", plan.memory.peak())),
            Err(reason) => Err(reason.to_string()),
        }
    }
}

/// True if a smaller plan may help against `error`.
fn is_out_of_memory(error: &Error) -> bool {
    matches!(error, Error::Device(DeviceError::OutOfMemory { .. }))
}

/// Adds the peak of the plan that failed, and the reason why no smaller plan helps, to `error`.
fn explain(error: Error, peak: Bytes, why: &str) -> Error {
    match error {
        Error::Device(DeviceError::OutOfMemory { doing, reason }) => Error::Device(DeviceError::OutOfMemory {
            doing,
            reason: format!("{reason} (the plan takes {peak}, and no smaller plan helps: {why})"),
        }),
        other => other,
    }
}
