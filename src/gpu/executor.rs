//! Executes a [`Plan`]: records and submits its steps, and moves what the host gives and gets.
//!
//! The one thing it settles itself is how many steps go into a submission: as many as should take
//! the time allowed, by the speed measured on the submissions before. Between two of them it
//! reports progress and honours a cancel. Transfers are part of submissions; the host copies in and
//! out of staging while the device works on the next one.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use web_time::Instant;

use super::control::{Control, Progress, RunReport, Submission};
use super::input::Input;
use super::pace::{Works, works};
use super::prepared::Prepared;
use super::readback::Piece;
use super::recorder::{Position, Recorder};
use super::wait::Wait;
use crate::error::{DeviceError, Error, Result};
use crate::plan::Plan;

/// Submissions that may be under way at once: one runs while the next is being recorded.
const IN_FLIGHT: usize = 2;

/// Receives rows of the result, first and after the last, and their content: `[rows, w, 4]` bytes
/// or `[3, rows, w]` f32.
pub type RowSink<'a> = dyn FnMut((u32, u32), &[u8]) -> Result<()> + 'a;

/// A submission that the device may still be working on.
struct Flight {
    steps: Range<usize>,
    stage: usize,
    works: Works,
    /// Staging buffers that it writes, and that it reads.
    readbacks: usize,
    uploads: usize,
    done: Wait<()>,
}

impl Prepared {
    /// Runs the plan once on `input` and hands the result to `sink` part by part, in order of rows.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::Device`] naming the stage that was reached, or what `sink`
    /// returned.
    pub async fn run(
        &mut self,
        input: &Input<'_>,
        control: &mut Control<'_>,
        sink: &mut RowSink<'_>,
    ) -> Result<RunReport> {
        let start = Instant::now();
        #[cfg(target_arch = "wasm32")]
        let read;
        // A run before may have been dropped at any point.
        self.uploads.reset(&self.gpu).await?;
        self.readbacks.reset(&self.gpu).await?;
        self.host.clear_all();
        let inputs: Vec<&[f32]> = match input {
            Input::Host(inputs) => inputs.iter().map(|input| &**input).collect(),
            #[cfg(target_arch = "wasm32")]
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

    /// The rows of the picture that the last run left on the device, as they lie there. `None`
    /// where plans leave none.
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

    /// Submits all steps, at most [`IN_FLIGHT`] submissions ahead of the device. Returns how long
    /// each took.
    async fn submit_all(
        &mut self,
        inputs: &[&[f32]],
        control: &mut Control<'_>,
        sink: &mut RowSink<'_>,
    ) -> Result<Vec<Submission>> {
        let plan = Arc::clone(&self.plan);
        let target = control.target(plan.kind);
        let total = plan.macs();
        let mut at = Position::default();
        let mut under_way = VecDeque::new();
        let mut submissions = Vec::new();
        let mut done = 0;
        let mut last_end = Instant::now();
        loop {
            if at.step < plan.steps.len() && under_way.len() < IN_FLIGHT {
                control.check()?;
                if let Some(flight) = self.submit(inputs, &mut at, target).await? {
                    under_way.push_back(flight);
                    continue;
                }
            }
            let Some(mut flight) = under_way.pop_front() else {
                return if at.step == plan.steps.len() { Ok(submissions) } else { Err(stuck(&plan, at.step)) };
            };
            flight.done.end().await?;
            let stage = plan.stages[flight.stage].as_str();
            self.gpu.check_alive(&format!("running \"{stage}\""))?;
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

    /// Records and submits what comes after `at` and should take `target`. `None` when staging has
    /// no room for any of it.
    async fn submit(&mut self, inputs: &[&[f32]], at: &mut Position, target: Duration) -> Result<Option<Flight>> {
        let (gpu, plan) = (self.gpu.clone(), Arc::clone(&self.plan));
        let end = self.pace.submission_end(&plan, at.step, target);
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
        // The last step that anything was done of.
        let touched = if last.bytes > 0 { last.step } else { last.step - 1 };
        let stage = plan.steps[touched].stage;
        let done = gpu.inner.waiter.wait(&plan.stages[stage], Some(submission), |done| {
            gpu.inner.queue.on_submitted_work_done(move || done.with(()));
        });
        *at = last;
        let steps = first.step..last.step;
        let works = works(plan, steps.clone(), first.bytes, last.bytes);
        Ok(Some(Flight { steps, stage, works, readbacks, uploads, done }))
    }

    /// Takes what `flight`, which is done, left in staging.
    async fn receive(&mut self, flight: &Flight, sink: &mut RowSink<'_>) -> Result<()> {
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

/// Our own mistake: nothing is under way, and the next step cannot begin.
fn stuck(plan: &Plan, step: usize) -> Error {
    let stage = &plan.stages[plan.steps[step].stage];
    let reason = format!("step {step} waits for something that no step before it does");
    Error::Device(DeviceError::Failed { doing: format!("running \"{stage}\""), reason })
}
