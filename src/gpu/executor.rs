//! Executes a [`Plan`]: records and submits its steps, and moves data between host and device.
//!
//! It decides only how many steps go into a submission: as many as should take the target time, by
//! the speed measured so far. The first submissions to a GPU are short, so that it begins to work
//! while the host records the rest. Between two submissions it reports progress and checks for a
//! cancel. Transfers are part of submissions. The host copies in and out of staging while the
//! device works on the next submission.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use web_time::Instant;

use super::input::Input;
use super::pace::{Works, works};
use super::prepared::Prepared;
use super::recorder::{Position, Recorder};
use super::ring::Piece;
use super::wait::Wait;
use crate::error::{DeviceError, Error, Result};
use crate::execution::{ByteSink, Control, Progress, RunReport, Submission};
use crate::plan::Plan;

/// The most submissions in flight: one runs while the next is being recorded.
const IN_FLIGHT: usize = 2;

/// A submission that the device may still be working on.
struct Flight {
    steps: Range<usize>,
    stage: usize,
    works: Works,
    /// The numbers of staging buffers that it writes (`readbacks`) and reads (`uploads`).
    readbacks: usize,
    uploads: usize,
    done: Wait<()>,
}

impl Prepared {
    /// Runs the plan once on `input`, and hands the result to `sink` in pieces of whole rows, in
    /// order.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::Device`], which names the stage that was reached, or an error
    /// of `sink`.
    pub async fn run(
        &mut self,
        input: &Input<'_>,
        control: &mut Control<'_>,
        sink: &mut ByteSink<'_>,
    ) -> Result<RunReport> {
        let start = Instant::now();
        let read;
        // An earlier run may have been dropped at any point.
        self.uploads.reset(&self.gpu).await?;
        self.readbacks.reset(&self.gpu).await?;
        self.host.clear_all();
        let inputs: Vec<&[f32]> = match input {
            Input::Host(inputs) => inputs.iter().map(|input| &**input).collect(),
            Input::Foreign { buffer, at, bytes } => {
                read = self.read_foreign(buffer, *at, *bytes).await?;
                vec![&read]
            }
        };
        let mut sink_time = Duration::ZERO;
        let mut timed = |rows: (u32, u32), data: &[u8]| {
            let start = Instant::now();
            let result = sink(rows, data);
            sink_time += start.elapsed();
            result
        };
        let submissions = self.submit_all(&inputs, control, &mut timed).await?;
        let (seconds, sink_seconds) = (start.elapsed().as_secs_f64(), sink_time.as_secs_f64());
        let stage_seconds = match &self.timestamps {
            Some(timestamps) => {
                let resolved = timestamps.resolve(&self.gpu).await?;
                let data = self.readbacks.read_all(&self.gpu, resolved, self.plan.memory.timestamps).await?;
                Some(timestamps.seconds(&self.gpu, &self.plan, &data))
            }
            None => None,
        };
        Ok(RunReport { seconds, sink_seconds, submissions, stage_seconds })
    }

    /// Reads the picture that the last run left on the device, with its padded rows. `None` if the
    /// plan leaves none.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub async fn read_picture(&mut self) -> Result<Option<Vec<u8>>> {
        self.readbacks.reset(&self.gpu).await?;
        match &self.picture {
            Some(picture) => self.readbacks.read_all(&self.gpu, picture, picture.bytes()).await.map(Some),
            None => Ok(None),
        }
    }

    /// Submits all steps, at most [`IN_FLIGHT`] submissions ahead of the device. Returns the time
    /// of each.
    async fn submit_all(
        &mut self,
        inputs: &[&[f32]],
        control: &mut Control<'_>,
        sink: &mut ByteSink<'_>,
    ) -> Result<Vec<Submission>> {
        let plan = Arc::clone(&self.plan);
        let mut targets = control.targets(plan.kind);
        let total = plan.macs();
        let mut at = Position::default();
        let mut under_way = VecDeque::new();
        let mut submissions = Vec::new();
        let mut done = 0;
        let mut last_end = Instant::now();
        loop {
            if at.step < plan.steps.len() && under_way.len() < IN_FLIGHT {
                control.check()?;
                if let Some(flight) = self.submit(inputs, &mut at, targets.next).await? {
                    targets.grow();
                    under_way.push_back(flight);
                    continue;
                }
            }
            let Some(mut flight) = under_way.pop_front() else {
                return if at.step == plan.steps.len() { Ok(submissions) } else { Err(stuck(&plan, at.step)) };
            };
            let ended = flight.done.end().await;
            let stage = plan.stages[flight.stage].as_str();
            self.gpu.check_alive(&format!("running \"{stage}\""))?;
            ended?;
            let took = last_end.elapsed().as_secs_f64();
            last_end = Instant::now();
            self.pace.adapt(&flight.works, took);
            self.receive(&flight, sink).await?;
            done += plan.steps[flight.steps.clone()].iter().map(|step| step.macs).sum::<u64>();
            let step = flight.steps.end;
            submissions.push(Submission { steps: flight.steps, seconds: took });
            if let Some(progress) = &mut control.progress {
                progress(Progress { done, total, step, steps: plan.steps.len(), stage });
            }
        }
    }

    /// Records and submits the steps from `at` on that should take `target`. `None` if staging has
    /// no room for any of them.
    async fn submit(&mut self, inputs: &[&[f32]], at: &mut Position, target: Duration) -> Result<Option<Flight>> {
        let (gpu, plan) = (self.gpu.clone(), Arc::clone(&self.plan));
        let end = self.pace.submission_end(&plan, self.turn, at.step, target);
        let doing = format!("running \"{}\"", plan.stages[plan.steps[end - 1].stage]);
        gpu.scoped(&doing, || self.submit_up_to(&plan, inputs, at, end)).await?
    }

    fn submit_up_to(
        &mut self,
        plan: &Plan,
        inputs: &[&[f32]],
        at: &mut Position,
        end: usize,
    ) -> Result<Option<Flight>> {
        let gpu = self.gpu.clone();
        let first = *at;
        let mut recorder = Recorder::new(self, inputs, first, end);
        recorder.record()?;
        let (encoder, last) = recorder.end();
        if last == first {
            return Ok(None);
        }
        self.uploads.close();
        let submission = gpu.inner.queue.submit([encoder.finish()]);
        let uploads = self.uploads.recall(&gpu, &submission);
        let readbacks = self.readbacks.map(&gpu, &submission);
        // The last step of which anything was recorded.
        let touched = if last.bytes > 0 { last.step } else { last.step - 1 };
        let stage = plan.steps[touched].stage;
        let done = gpu.inner.waiter.wait(&plan.stages[stage], Some(submission), |done| {
            gpu.inner.queue.on_submitted_work_done(move || done.with(()));
        });
        *at = last;
        let steps = first.step..last.step;
        let works = works(plan, self.turn, steps.clone(), first.bytes, last.bytes);
        Ok(Some(Flight { steps, stage, works, readbacks, uploads, done }))
    }

    /// Reads the data that `flight`, which is done, left in staging, and releases its staging
    /// buffers.
    async fn receive(&mut self, flight: &Flight, sink: &mut ByteSink<'_>) -> Result<()> {
        let (host, states, of) = (&mut self.host, &mut self.states, &self.states_of_plan);
        let mut deliver = |piece: Piece, data: &[u8]| match piece {
            Piece::Rows(rows) => sink(rows, data),
            Piece::Parked(place) => {
                host.append(place, data);
                Ok(())
            }
            Piece::Kept(state, at) => {
                if let Some(frames) = states.on_host(of[state.0]) {
                    frames.set(at, data);
                }
                Ok(())
            }
            Piece::Other => Ok(()),
        };
        for _ in 0..flight.readbacks {
            self.readbacks.read(&self.gpu, &mut deliver).await?;
        }
        for _ in 0..flight.uploads {
            self.uploads.wait(&self.gpu).await?;
        }
        Ok(())
    }
}

/// Makes the error for a bug in this crate: no submission is in flight, and the next step cannot
/// begin.
fn stuck(plan: &Plan, step: usize) -> Error {
    let stage = &plan.stages[plan.steps[step].stage];
    let reason = format!("step {step} waits for data that no earlier step makes");
    Error::Device(DeviceError::Failed { doing: format!("running \"{stage}\""), reason })
}
