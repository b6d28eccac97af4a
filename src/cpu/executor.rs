//! Executes a [`Plan`] on the host: its launches one after the other, each on all threads.
//!
//! Steps run on the threads until a moment has passed or a part of the result is there. Then the
//! caller's thread reports progress, checks for a cancel and hands out rows.

use std::ops::Range;
use std::time::Duration;

use arrayvec::ArrayVec;
use web_time::Instant;

use super::call::{Binding, Call};
use super::parallel::*;
use super::prepared::{Memory, Prepared};
use super::{kernels, turn};
use crate::error::{DeviceError, Error, Result};
use crate::execution::{ByteSink, Control, Progress, RunReport, Submission};
use crate::kernels::{Access, interface};
use crate::plan::{
    Action, Bindings, BufferId, CHECK_BYTES, HostSource, InputRows, Output, Plan, PlaneExtents, Resource, SlotId, Step,
};

/// Floats that one task copies.
const COPIED: usize = 1 << 16;

impl Prepared {
    /// Runs the plan once on `inputs`, planar f32 `[c, h, w]` each, and hands the result to `sink`
    /// in pieces of whole rows, in order.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Device`], which names the stage, if a kernel panics, which is
    /// a bug; or an error of `sink`.
    pub async fn run(
        &mut self,
        inputs: &[&[f32]],
        control: &mut Control<'_>,
        sink: &mut ByteSink<'_>,
    ) -> Result<RunReport> {
        let start = Instant::now();
        let plan = std::sync::Arc::clone(&self.plan);
        let (total, target) = (plan.macs(), control.target(plan.kind));
        let mut sink_time = Duration::ZERO;
        let mut submissions = Vec::new();
        let (mut step, mut done) = (0, 0);
        while step < plan.steps.len() {
            turn::end().await;
            control.check()?;
            let begin = Instant::now();
            let steps = match plan.steps[step].action {
                Action::Output { .. } if !plan.steps[step].runs(self.turn) => step..step + 1,
                Action::Output { from, rows } => {
                    self.output(from, rows, sink)?;
                    sink_time += begin.elapsed();
                    step..step + 1
                }
                _ => self.compute(inputs, step, target)?,
            };
            step = steps.end;
            done += plan.steps[steps.clone()].iter().map(|step| step.macs).sum::<u64>();
            let stage = plan.stages[plan.steps[step - 1].stage].as_str();
            submissions.push(Submission { steps, seconds: begin.elapsed().as_secs_f64() });
            if let Some(progress) = &mut control.progress {
                progress(Progress { done, total, step, steps: plan.steps.len(), stage });
            }
        }
        let (seconds, sink_seconds) = (start.elapsed().as_secs_f64(), sink_time.as_secs_f64());
        Ok(RunReport { seconds, sink_seconds, submissions, stage_seconds: None })
    }

    /// Runs steps from `first` on until `target` has passed or a part of the result is there.
    /// Returns the steps.
    fn compute(&mut self, inputs: &[&[f32]], first: usize, target: Duration) -> Result<Range<usize>> {
        let Self { cpu, plan, memory, turn, .. } = self;
        let (arch, start, mut reached) = (cpu.inner.arch, Instant::now(), first);
        let work = || {
            for step in &plan.steps[first..] {
                if matches!(step.action, Action::Output { .. }) || (reached > first && start.elapsed() >= target) {
                    break;
                }
                if step.runs(*turn) {
                    memory.step(plan, arch, step, inputs);
                }
                reached += 1;
            }
        };
        cpu.inner.threads.run(work).map_err(|panic| {
            let stage = &plan.stages[plan.steps[reached].stage];
            Error::Device(DeviceError::Failed { doing: format!("running \"{stage}\""), reason: message(&*panic) })
        })?;
        Ok(first..reached)
    }

    /// Hands out rows of the result, or copies them to their place in the picture.
    fn output(&mut self, from: BufferId, rows: (u32, u32), sink: &mut ByteSink<'_>) -> Result<()> {
        let content: &[u8] = bytemuck::cast_slice(self.memory.content(&self.plan, from));
        let row = self.plan.row_bytes().0;
        let bytes = index(u64::from(rows.1 - rows.0) * row);
        match self.plan.output {
            Output::Rgba8 | Output::Raw | Output::Tile => sink(rows, &content[..bytes]),
            Output::Picture(_) => {
                if let Some(picture) = &mut self.picture {
                    let picture: &mut [u8] = bytemuck::cast_slice_mut(&mut picture.values);
                    picture[index(u64::from(rows.0) * row)..][..bytes].copy_from_slice(&content[..bytes]);
                }
                sink(rows, &content[bytes..][..index(CHECK_BYTES.0)])
            }
        }
    }
}

/// Returns the message of a panic.
fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a kernel panicked: {}", text.unwrap_or("no message"))
}

fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl Memory {
    /// Returns the slot of a buffer, and its range of f32 there.
    fn place(plan: &Plan, buffer: BufferId) -> (SlotId, Range<usize>) {
        let buffer = &plan.buffers[buffer.0];
        let start = index(buffer.offset.0 / 4);
        (buffer.slot, start..start + index(buffer.bytes.0.div_ceil(4)))
    }

    fn content(&self, plan: &Plan, buffer: BufferId) -> &[f32] {
        let (slot, range) = Self::place(plan, buffer);
        &self.slots[slot.0].values[range]
    }

    fn content_mut(&mut self, plan: &Plan, buffer: BufferId) -> &mut [f32] {
        let (slot, range) = Self::place(plan, buffer);
        &mut self.slots[slot.0].values[range]
    }

    fn step(&mut self, plan: &Plan, arch: pulp::Arch, step: &Step, inputs: &[&[f32]]) {
        match &step.action {
            Action::Dispatch { variant, workgroups, params, bindings } => {
                let variant = &plan.variants[*variant];
                let bindings = self.bind(plan, interface(variant.file).bindings, bindings);
                let params = &plan.params[params.clone()];
                kernels::run(Call { arch, variant, params, workgroups: *workgroups, bindings });
            }
            Action::Copy { from, to, bytes } => {
                let ((source, from_range), (target, to_range)) = (Self::place(plan, from.0), Self::place(plan, to.0));
                let [from, to] =
                    [(from_range, from.1), (to_range, to.1)].map(|(range, at)| range.start + index(at / 4));
                let count = index(*bytes / 4);
                // WebGPU refuses a copy within one buffer, so no plan has one.
                if let Ok([source, target]) = self.slots.get_disjoint_mut([source.0, target.0]) {
                    copy(&source.values[from..from + count], &mut target.values[to..to + count]);
                }
            }
            Action::Fetch { from: HostSource::Input(rows), to } => {
                fetch_input(plan.inputs[rows.input], *rows, inputs[rows.input], self.content_mut(plan, *to));
            }
            Action::Fetch { from: HostSource::Weight(weight), to } => {
                let weight = std::sync::Arc::clone(&self.weights[*weight]);
                copy(&weight.values, self.content_mut(plan, *to));
            }
            Action::Fetch { from: HostSource::Parked(place), to } => {
                let (slot, range) = Self::place(plan, *to);
                copy(&self.parked[place.0].values, &mut self.slots[slot.0].values[range]);
            }
            Action::Park { from, to } => {
                let (slot, range) = Self::place(plan, *from);
                copy(&self.slots[slot.0].values[range], &mut self.parked[to.0].values);
            }
            Action::Recall { state, part, to } => {
                let (slot, range) = Self::place(plan, *to);
                let content = self.states.part(self.states_of_plan[state.0], *part);
                copy(content, &mut self.slots[slot.0].values[range]);
            }
            Action::Keep { from, state, part, bytes } => {
                let (slot, range) = Self::place(plan, *from);
                let content = &self.slots[slot.0].values[range][..index(*bytes / 4)];
                copy(content, self.states.part(self.states_of_plan[state.0], *part));
            }
            Action::Output { .. } => {}
        }
    }

    /// Lends the memory of a launch to its bindings.
    fn bind(&mut self, plan: &Plan, declared: &[(&str, Access)], bindings: &Bindings) -> ArrayVec<Binding<'_>, 8> {
        let mut lent: ArrayVec<Binding<'_>, 8> = bindings.iter().map(|_| Binding::Unused).collect();
        let mut uses: ArrayVec<(usize, SlotId, Range<usize>, Access), 8> = ArrayVec::new();
        for (place, (binding, (_, access))) in bindings.iter().zip(declared).enumerate() {
            match binding {
                Resource::Buffer(buffer) => {
                    let (slot, range) = Self::place(plan, *buffer);
                    uses.push((place, slot, range, *access));
                }
                Resource::Weight(weight) => lent[place] = Binding::Read(&self.weights[weight.0].values),
                Resource::Unused => {}
            }
        }
        for (slot, buffer) in self.slots.iter_mut().enumerate() {
            let mut of_slot = uses.iter().filter(|(_, used, ..)| used.0 == slot);
            let Some((place, _, range, access)) = of_slot.next() else { continue };
            if *access == Access::ReadWrite {
                assert!(of_slot.next().is_none(), "a launch writes a slot that it uses twice");
                lent[*place] = Binding::Write(&mut buffer.values[range.clone()]);
                continue;
            }
            let values = &buffer.values;
            lent[*place] = Binding::Read(&values[range.clone()]);
            for (place, _, range, access) in of_slot {
                assert_eq!(*access, Access::Read, "a launch writes a slot that it uses twice");
                lent[*place] = Binding::Read(&values[range.clone()]);
            }
        }
        lent
    }
}

/// Copies as much as both have.
fn copy(from: &[f32], to: &mut [f32]) {
    let count = from.len().min(to.len());
    let parts = from[..count].par_chunks(COPIED).zip(to[..count].par_chunks_mut(COPIED));
    parts.for_each(|(from, to)| to.copy_from_slice(from));
}

/// Copies rows of an input, one channel after the other.
fn fetch_input(planes: PlaneExtents, InputRows { rows, .. }: InputRows, input: &[f32], to: &mut [f32]) {
    let width = planes.size.width as usize;
    let plane = width * planes.size.height as usize;
    let (start, part) = (rows.0 as usize * width, (rows.1 - rows.0) as usize * width);
    for (to, plane) in to.chunks_mut(part).zip(input.chunks_exact(plane)) {
        to.copy_from_slice(&plane[start..start + part]);
    }
}
