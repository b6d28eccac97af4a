//! Executes a [`Plan`]. Allocates its slots, makes its bind groups, then per step: pipeline, bind group, dispatch.
//!
//! The one thing it settles itself is how many steps go into a submission: as many as should take the time allowed, by the speed
//! measured on the submissions before. Between two of them it reports progress and honours a cancel.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;
use web_time::Instant;

use super::Gpu;
use super::buffers::{GpuBuffer, Usage};
use super::pipelines::Pipeline;
use crate::error::{DeviceError, Error, Result};
use crate::kernels::interface;
use crate::limits::DeviceKind;
use crate::plan::{Action, BufferId, HostSource, Plan, Resource, UNUSED_BYTES};
use crate::tensor::Bytes;

/// Submissions that may be under way at once: one runs while the next is being recorded.
const IN_FLIGHT: usize = 2;

/// How a run is watched and stopped.
#[derive(Default)]
pub struct Control<'a> {
    /// Called after each submission.
    pub progress: Option<&'a mut dyn FnMut(Progress<'_>)>,
    /// Set to true, from any thread, to stop the run before its next submission.
    pub cancel: Option<Arc<AtomicBool>>,
    /// How long one submission should take; `None` for what suits the device. Zero submits every step by itself.
    pub submission_target: Option<Duration>,
}

impl std::fmt::Debug for Control<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("progress", &self.progress.is_some()).field("cancel", &self.cancel).finish()
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Multiply-adds done, of `total`.
    pub done: u64,
    /// Multiply-adds of the whole plan.
    pub total: u64,
    /// The stage that was reached, in diffusers' spelling.
    pub stage: &'a str,
}

/// What a run took.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// From the upload of the latents until the result is in host memory.
    pub seconds: f64,
    /// Each submission.
    pub submissions: Vec<Submission>,
    /// GPU time of each stage in seconds, by timestamps; `None` where the device has none or the plan did not ask.
    pub stage_seconds: Option<Vec<f64>>,
}

/// Steps that were submitted together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Submission {
    /// By index into the plan's steps.
    pub steps: Range<usize>,
    /// From the end of the submission before to the end of this one, as the host saw it.
    pub seconds: f64,
}

enum Command {
    Dispatch { pipeline: Arc<Pipeline>, bind_group: usize, offset: u32, workgroups: [u32; 3] },
    Copy { from: (BufferId, u64), to: (BufferId, u64), bytes: u64 },
    Transfer,
}

/// The weights of a plan, in its order.
#[derive(Debug, Clone)]
pub enum Weights<'a> {
    /// On the GPU: for a plan that binds them.
    Gpu(Vec<&'a GpuBuffer>),
    /// Packed, in host memory: for a plan that fetches them.
    Host(Vec<Arc<[u8]>>),
}

/// A plan with everything it needs on a device. Running it again only submits.
pub struct Prepared {
    gpu: Gpu,
    plan: Arc<Plan>,
    slots: Vec<GpuBuffer>,
    staging: GpuBuffer,
    commands: Vec<Command>,
    bind_groups: Vec<wgpu::BindGroup>,
    timestamps: Option<Timestamps>,
    /// Packed weights, where the plan fetches them.
    host_weights: Vec<Arc<[u8]>>,
    /// Multiply-adds per second, as measured last.
    pace: f64,
    // Bound by the bind groups.
    _params: GpuBuffer,
    _unused: GpuBuffer,
}

struct Timestamps {
    queries: wgpu::QuerySet,
    resolved: GpuBuffer,
    read: GpuBuffer,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("image", &self.plan.image)
            .field("steps", &self.plan.steps.len())
            .finish_non_exhaustive()
    }
}

impl Prepared {
    /// Allocates and compiles. `weights` are those of the plan, in its order.
    ///
    /// # Errors
    /// [`Error::Device`], naming the buffer or kernel.
    pub async fn new(gpu: &Gpu, plan: Arc<Plan>, weights: Weights<'_>) -> Result<Self> {
        let (weights, host_weights) = match weights {
            Weights::Gpu(weights) => (weights, Vec::new()),
            Weights::Host(weights) => (Vec::new(), weights),
        };
        assert_eq!(weights.len() + host_weights.len(), plan.weights.len(), "weights of another plan");
        let mut pipelines = Vec::new();
        for variant in &plan.variants {
            pipelines.push(gpu.inner.pipelines.get(gpu, variant).await?);
        }
        let mut slots = Vec::new();
        for (index, bytes) in plan.slots.iter().enumerate() {
            slots.push(GpuBuffer::new(gpu, &format!("slot {index}"), *bytes, Usage::Storage).await?);
        }
        let params = GpuBuffer::new(gpu, "params", Bytes(plan.params.len() as u64), Usage::Uniform).await?;
        gpu.scoped("uploading parameters", || gpu.inner.queue.write_buffer(params.raw(), 0, &plan.params)).await?;
        let unused = GpuBuffer::new(gpu, "unused", Bytes(UNUSED_BYTES), Usage::Storage).await?;
        let staging = GpuBuffer::new(gpu, "staging", plan.memory.staging, Usage::Staging).await?;
        let timestamps = match plan.memory.timestamps.0 {
            0 => None,
            _ => Some(Timestamps::new(gpu, &plan).await?),
        };

        let resources = Resources { plan: &plan, slots: &slots, weights: &weights, params: &params, unused: &unused };
        let (commands, bind_groups) =
            gpu.scoped("binding buffers", || resources.commands(&gpu.inner.device, &pipelines)).await?;
        let pace = match plan.kind {
            DeviceKind::Cpu => 1e10,
            DeviceKind::Gpu => 2e11,
        };
        Ok(Self {
            gpu: gpu.clone(),
            plan,
            slots,
            staging,
            commands,
            bind_groups,
            timestamps,
            host_weights,
            pace,
            _params: params,
            _unused: unused,
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Runs the plan once on `latents`, planar f32 `[c, h, w]`, and hands each part of the result to `sink` with its rows, in their order.
    ///
    /// # Errors
    /// [`Error::Cancelled`], or [`Error::Device`] naming the stage that was reached.
    pub async fn run(
        &mut self,
        latents: &[f32],
        control: &mut Control<'_>,
        sink: &mut dyn FnMut((u32, u32), &[u8]),
    ) -> Result<RunReport> {
        let start = Instant::now();
        let input = self.slot(self.plan.input);
        let upload = || self.gpu.inner.queue.write_buffer(input.raw(), 0, bytemuck::cast_slice(latents));
        self.gpu.scoped("uploading latents", upload).await?;
        let submissions = self.submit_all(control, sink).await?;
        let seconds = start.elapsed().as_secs_f64();
        let stage_seconds = match &self.timestamps {
            Some(timestamps) => Some(self.stage_seconds(timestamps).await?),
            None => None,
        };
        Ok(RunReport { seconds, submissions, stage_seconds })
    }

    fn slot(&self, buffer: BufferId) -> &GpuBuffer {
        &self.slots[self.plan.buffers[buffer.0].slot.0]
    }

    /// Submits all steps, at most [`IN_FLIGHT`] submissions ahead of the device. Returns how long each took.
    async fn submit_all(
        &mut self,
        control: &mut Control<'_>,
        sink: &mut dyn FnMut((u32, u32), &[u8]),
    ) -> Result<Vec<Submission>> {
        let plan = Arc::clone(&self.plan);
        let stage_at = |end: usize| plan.stages[plan.steps[end - 1].stage].as_str();
        let total = plan.macs();
        let (mut at, mut done) = (0, 0);
        let mut under_way = VecDeque::new();
        let mut parked: Vec<Vec<u8>> = vec![Vec::new(); plan.parked.len()];
        let mut submissions = Vec::new();
        let target = control.submission_target.unwrap_or_else(|| submission_target(plan.kind));
        let mut last_end = Instant::now();
        loop {
            let reads = plan
                .steps
                .get(at)
                .is_some_and(|step| matches!(step.action, Action::Park { .. } | Action::Output { .. }));
            // The host reads when all that was submitted before is done.
            if at < plan.steps.len() && under_way.len() < IN_FLIGHT && (!reads || under_way.is_empty()) {
                if control.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
                    return Err(Error::Cancelled);
                }
                if plan.steps[at].action.is_transfer() {
                    self.transfer(&plan.steps[at].action, &mut parked, sink).await?;
                    at += 1;
                    last_end = Instant::now();
                    continue;
                }
                let steps = at..plan.submission_end(at, self.submission_macs(target));
                at = steps.end;
                let submission = self.submit(steps.clone()).await?;
                let inner = &self.gpu.inner;
                let wait = inner.waiter.wait(stage_at(at), Some(submission), |done| {
                    inner.queue.on_submitted_work_done(move || done.with(()));
                });
                under_way.push_back((steps, wait));
                continue;
            }
            let Some((steps, wait)) = under_way.pop_front() else { return Ok(submissions) };
            wait.end().await?;
            let stage = stage_at(steps.end);
            self.gpu.check_alive(&format!("running \"{stage}\""))?;
            let took = last_end.elapsed().as_secs_f64();
            last_end = Instant::now();
            let macs: u64 = plan.steps[steps.clone()].iter().map(|step| step.macs).sum();
            submissions.push(Submission { steps, seconds: took });
            done += macs;
            self.adapt(macs, took);
            if let Some(progress) = &mut control.progress {
                progress(Progress { done, total, stage });
            }
        }
    }

    /// Moves a buffer's content between host and device.
    async fn transfer(
        &self,
        action: &Action,
        parked: &mut [Vec<u8>],
        sink: &mut dyn FnMut((u32, u32), &[u8]),
    ) -> Result<()> {
        match action {
            Action::Fetch { from, to } => {
                let content: &[u8] = match from {
                    HostSource::Weight(weight) => &self.host_weights[*weight],
                    HostSource::Parked(place) => &parked[place.0],
                };
                let buffer = &self.plan.buffers[to.0];
                let upload = || self.gpu.inner.queue.write_buffer(self.slot(*to).raw(), 0, content);
                self.gpu.scoped(&format!("fetching \"{}\"", buffer.name), upload).await
            }
            Action::Park { from, to } => {
                let bytes = self.plan.buffers[from.0].bytes;
                let place = &mut parked[to.0];
                self.read(self.slot(*from), &self.staging, bytes, |data| data.clone_into(place)).await
            }
            Action::Output { from, rows } => {
                let bytes = self.plan.buffers[from.0].bytes;
                self.read(self.slot(*from), &self.staging, bytes, |data| sink(*rows, data)).await
            }
            Action::Dispatch { .. } | Action::Copy { .. } => unreachable!("not a transfer"),
        }
    }

    /// How much work a submission may hold that should take `target`.
    fn submission_macs(&self, target: Duration) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive count far below 2^63")]
        let macs = (self.pace * target.as_secs_f64()) as u64;
        macs
    }

    /// Moves the pace halfway to what was just measured. Submissions of little work say little about speed.
    fn adapt(&mut self, macs: u64, seconds: f64) {
        const TELLING_MACS: u64 = 50_000_000;
        if macs >= TELLING_MACS && seconds > 0.0 {
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let measured = macs as f64 / seconds;
            self.pace = 0.5 * (self.pace + measured);
        }
    }

    /// Records and submits `range` of the steps: one compute pass for each stage, ended by copies.
    async fn submit(&self, range: Range<usize>) -> Result<wgpu::SubmissionIndex> {
        let stage = &self.plan.stages[self.plan.steps[range.end - 1].stage];
        let record = || {
            let mut encoder =
                self.gpu.inner.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some(stage) });
            let mut at = range.start;
            while at < range.end {
                at = match &self.commands[at] {
                    Command::Copy { from, to, bytes } => {
                        let (source, target) = (self.slot(from.0).raw(), self.slot(to.0).raw());
                        encoder.copy_buffer_to_buffer(source, from.1, target, to.1, Some(*bytes));
                        at + 1
                    }
                    Command::Transfer => unreachable!("a transfer is no part of a submission"),
                    Command::Dispatch { .. } => self.record_pass(&mut encoder, at..range.end),
                };
            }
            self.gpu.inner.queue.submit([encoder.finish()])
        };
        self.gpu.scoped(&format!("running \"{stage}\""), record).await
    }

    /// Records the dispatches at the start of `range` that belong to one stage. Returns the step after them.
    fn record_pass(&self, encoder: &mut wgpu::CommandEncoder, range: Range<usize>) -> usize {
        let stage = self.plan.steps[range.start].stage;
        let belongs =
            |at: &usize| self.plan.steps[*at].stage == stage && matches!(self.commands[*at], Command::Dispatch { .. });
        let end = range.clone().take_while(belongs).last().map_or(range.start, |last| last + 1);
        let timestamp_writes =
            self.timestamps.as_ref().and_then(|timestamps| timestamps.writes(&self.plan, stage, range.start..end));
        let descriptor = wgpu::ComputePassDescriptor { label: Some(&self.plan.stages[stage]), timestamp_writes };
        let mut pass = encoder.begin_compute_pass(&descriptor);
        for command in &self.commands[range.start..end] {
            if let Command::Dispatch { pipeline, bind_group, offset, workgroups: [x, y, z] } = command {
                pass.set_pipeline(&pipeline.pipeline);
                pass.set_bind_group(0, &self.bind_groups[*bind_group], &[*offset]);
                pass.dispatch_workgroups(*x, *y, *z);
            }
        }
        end
    }

    /// Copies the first `bytes` of `source` to `staging`, waits, and shows them to `sink`.
    async fn read(
        &self,
        source: &GpuBuffer,
        staging: &GpuBuffer,
        bytes: Bytes,
        sink: impl FnOnce(&[u8]),
    ) -> Result<()> {
        const DOING: &str = "reading the result";
        let copy = || {
            let mut encoder = self.gpu.inner.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            encoder.copy_buffer_to_buffer(source.raw(), 0, staging.raw(), 0, Some(bytes.0));
            self.gpu.inner.queue.submit([encoder.finish()]);
        };
        self.gpu.scoped(DOING, copy).await?;
        let mapped = self.gpu.inner.waiter.wait(DOING, None, |done| {
            staging.raw().map_async(wgpu::MapMode::Read, 0..bytes.0, move |result| done.with(result));
        });
        let failed = |reason: String| Error::Device(DeviceError::Failed { doing: DOING.to_owned(), reason });
        mapped.end().await?.map_err(|error| failed(error.to_string()))?;
        self.gpu.check_alive(DOING)?;
        let view = staging.raw().get_mapped_range(0..bytes.0).map_err(|error| failed(error.to_string()))?;
        sink(&view);
        drop(view);
        staging.raw().unmap();
        Ok(())
    }

    async fn stage_seconds(&self, timestamps: &Timestamps) -> Result<Vec<f64>> {
        let count = self.plan.stages.len() * 2;
        let resolve = || {
            let mut encoder = self.gpu.inner.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            encoder.resolve_query_set(&timestamps.queries, 0..count, timestamps.resolved.raw(), 0);
            self.gpu.inner.queue.submit([encoder.finish()]);
        };
        self.gpu.scoped("reading timestamps", resolve).await?;
        let period = f64::from(self.gpu.inner.queue.get_timestamp_period()) * 1e-9;
        let mut seconds = Vec::new();
        self.read(&timestamps.resolved, &timestamps.read, Bytes(count as u64 * 8), |data| {
            let ticks: Vec<u64> = bytemuck::pod_collect_to_vec(data);
            #[expect(clippy::cast_precision_loss, reason = "a duration")]
            seconds.extend(ticks.chunks_exact(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64 * period));
        })
        .await?;
        Ok(seconds)
    }
}

/// How long one submission should take: short enough for watchdogs, progress and cancel, long enough to be worth submitting.
fn submission_target(kind: DeviceKind) -> Duration {
    match kind {
        DeviceKind::Cpu => Duration::from_millis(200),
        DeviceKind::Gpu => Duration::from_millis(60),
    }
}

impl Timestamps {
    async fn new(gpu: &Gpu, plan: &Plan) -> Result<Self> {
        let count = u32::try_from(plan.stages.len() * 2).unwrap_or(u32::MAX);
        let descriptor = wgpu::QuerySetDescriptor { label: Some("timestamps"), ty: wgpu::QueryType::Timestamp, count };
        let queries = gpu.scoped("creating timestamps", || gpu.inner.device.create_query_set(&descriptor)).await?;
        let bytes = Bytes(plan.memory.timestamps.0 / 2);
        let resolved = GpuBuffer::new(gpu, "timestamps", bytes, Usage::Timestamps).await?;
        let read = GpuBuffer::new(gpu, "timestamps staging", bytes, Usage::Staging).await?;
        Ok(Self { queries, resolved, read })
    }

    /// What the pass over `range` of `stage` writes: the stage's begin in its first pass, its end in its last.
    fn writes(&self, plan: &Plan, stage: usize, range: Range<usize>) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        let is_dispatch =
            |step: &crate::plan::Step| step.stage == stage && matches!(step.action, Action::Dispatch { .. });
        let begins = !plan.steps[..range.start].iter().rev().take_while(|step| step.stage == stage).any(is_dispatch);
        let ends = !plan.steps[range.end..].iter().take_while(|step| step.stage == stage).any(is_dispatch);
        let query = u32::try_from(stage * 2).unwrap_or(u32::MAX);
        (begins || ends).then_some(wgpu::ComputePassTimestampWrites {
            query_set: &self.queries,
            beginning_of_pass_write_index: begins.then_some(query),
            end_of_pass_write_index: ends.then_some(query + 1),
        })
    }
}

/// What bindings refer to.
struct Resources<'a> {
    plan: &'a Plan,
    slots: &'a [GpuBuffer],
    weights: &'a [&'a GpuBuffer],
    params: &'a GpuBuffer,
    unused: &'a GpuBuffer,
}

impl Resources<'_> {
    /// Commands and bind groups. Launches that bind the same buffers share a bind group; they differ in the offset of `params`.
    fn commands(&self, device: &wgpu::Device, pipelines: &[Arc<Pipeline>]) -> (Vec<Command>, Vec<wgpu::BindGroup>) {
        let mut groups = Vec::new();
        let mut known: HashMap<(&str, &[Resource]), usize> = HashMap::new();
        let mut commands = Vec::new();
        for step in &self.plan.steps {
            commands.push(match &step.action {
                Action::Copy { from, to, bytes } => Command::Copy { from: *from, to: *to, bytes: *bytes },
                Action::Fetch { .. } | Action::Park { .. } | Action::Output { .. } => Command::Transfer,
                Action::Dispatch { variant, workgroups, params, bindings } => {
                    let pipeline = Arc::clone(&pipelines[*variant]);
                    let file = self.plan.variants[*variant].file;
                    let bind_group = *known.entry((file, bindings)).or_insert_with(|| {
                        groups.push(self.bind(device, &pipeline.layout, file, bindings));
                        groups.len() - 1
                    });
                    let offset = u32::try_from(params.start).unwrap_or(u32::MAX);
                    Command::Dispatch { pipeline, bind_group, offset, workgroups: *workgroups }
                }
            });
        }
        (commands, groups)
    }

    fn bind(
        &self,
        device: &wgpu::Device,
        layout: &wgpu::BindGroupLayout,
        file: &str,
        bindings: &[Resource],
    ) -> wgpu::BindGroup {
        fn range(buffer: &GpuBuffer, bytes: u64) -> wgpu::BindingResource<'_> {
            let size = std::num::NonZeroU64::new(bytes);
            wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer: buffer.raw(), offset: 0, size })
        }
        let params_bytes = interface(file).params.len() as u64 * 4;
        let mut entries = vec![wgpu::BindGroupEntry { binding: 0, resource: range(self.params, params_bytes) }];
        for (index, binding) in bindings.iter().enumerate() {
            let resource = match binding {
                Resource::Buffer(buffer) => {
                    let buffer = &self.plan.buffers[buffer.0];
                    range(&self.slots[buffer.slot.0], buffer.bytes.0)
                }
                Resource::Weight(weight) => range(self.weights[weight.0], self.weights[weight.0].bytes().0),
                Resource::Unused => range(self.unused, UNUSED_BYTES),
            };
            entries.push(wgpu::BindGroupEntry { binding: u32::try_from(index + 1).unwrap_or(u32::MAX), resource });
        }
        device.create_bind_group(&wgpu::BindGroupDescriptor { label: Some(file), layout, entries: &entries })
    }
}
