//! Records steps of a plan into one submission: passes, copies, and transfers as far as the staging
//! buffers have room.

use std::ops::Range;

use super::prepared::Prepared;
use super::ring::Piece;
use crate::error::Result;
use crate::plan::memory::Staging;
use crate::plan::{Action, BufferId, CHECK_BYTES, HostSource, InputRows, Output, ParkedId, StateId, StatePart};

/// The position up to which a plan is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// The next step.
    pub(super) step: usize,
    /// Bytes of that step that are already transferred, if it is a transfer.
    pub(super) bytes: u64,
}

/// A submission that is being recorded.
pub(super) struct Recorder<'a> {
    prepared: &'a mut Prepared,
    /// The data of the plan's inputs.
    inputs: &'a [&'a [f32]],
    encoder: wgpu::CommandEncoder,
    at: Position,
    end: usize,
}

impl<'a> Recorder<'a> {
    /// Starts a submission from `at` up to step `end`.
    pub(super) fn new(prepared: &'a mut Prepared, inputs: &'a [&'a [f32]], at: Position, end: usize) -> Self {
        let label = &prepared.plan.stages[prepared.plan.steps[at.step].stage];
        let descriptor = wgpu::CommandEncoderDescriptor { label: Some(label) };
        let encoder = prepared.gpu.inner.device.create_command_encoder(&descriptor);
        Self { prepared, inputs, encoder, at, end }
    }

    /// Returns the recorded commands, and the position after them.
    pub(super) fn end(self) -> (wgpu::CommandEncoder, Position) {
        (self.encoder, self.at)
    }

    /// Records the steps: one compute pass for each stage, with copies and transfers between
    /// passes. Stops at a transfer that has to wait for staging.
    pub(super) fn record(&mut self) -> Result<()> {
        let plan = std::sync::Arc::clone(&self.prepared.plan);
        while self.at.step < self.end {
            let step = &plan.steps[self.at.step];
            let runs = step.runs(self.prepared.turn);
            let whole = match &step.action {
                Action::Dispatch { .. } => {
                    let end = self.record_pass();
                    self.at.step = end;
                    continue;
                }
                _ if !runs => true,
                Action::Copy { from, to, bytes } => {
                    let ((source, from), (target, to)) = (self.prepared.place(*from), self.prepared.place(*to));
                    self.encoder.copy_buffer_to_buffer(&source.raw, from, &target.raw, to, Some(*bytes));
                    true
                }
                Action::Fetch { from: HostSource::Input(rows), to } => self.fetch_input(*rows, *to)?,
                Action::Fetch { from, to } => self.fetch(*from, *to)?,
                Action::Park { from, to } => self.park(*from, *to),
                Action::Recall { state, part, to } => self.recall(*state, *part, *to)?,
                Action::Keep { from, state, part, bytes } => self.keep(*from, *state, *part, *bytes),
                Action::Output { from, rows } => self.output(*from, *rows),
            };
            if !whole {
                return Ok(());
            }
            self.at = Position { step: self.at.step + 1, bytes: 0 };
        }
        Ok(())
    }

    /// Records the next launches that belong to one stage, as far as it is their turn. Returns the
    /// step after them.
    fn record_pass(&mut self) -> usize {
        let Prepared { plan, commands, timestamps, turn, .. } = &*self.prepared;
        let (start, stage) = (self.at.step, plan.steps[self.at.step].stage);
        let belongs = |at: &usize| plan.steps[*at].stage == stage && commands.is_launch(*at);
        let end = (start..self.end).take_while(belongs).last().map_or(start, |last| last + 1);
        let mut launches = (start..end).filter(|step| plan.steps[*step].runs(*turn)).peekable();
        if launches.peek().is_none() && timestamps.is_none() {
            return end;
        }
        let timestamp_writes = timestamps.as_ref().and_then(|timestamps| timestamps.writes(plan, start..end));
        let descriptor = wgpu::ComputePassDescriptor { label: Some(&plan.stages[stage]), timestamp_writes };
        let mut pass = self.encoder.begin_compute_pass(&descriptor);
        for step in launches {
            commands.record(&mut pass, step);
        }
        end
    }

    /// Uploads data from the host into `to`. Returns true if all of it is recorded.
    fn fetch(&mut self, from: HostSource, to: BufferId) -> Result<bool> {
        let Prepared { gpu, plan, slots, host, uploads, .. } = &mut *self.prepared;
        let buffer = &plan.buffers[to.0];
        let Some(len) = host.fetched_len(from, buffer.bytes) else { return Ok(false) };
        let bytes = buffer.bytes.0.min(len);
        while self.at.bytes < bytes {
            let Some(room) = uploads.room() else { return Ok(false) };
            let end = bytes.min(self.at.bytes + room);
            let piece = host.read(from, self.at.bytes..end);
            uploads.write(gpu, &mut self.encoder, &piece, &slots[buffer.slot.0], buffer.offset.0 + self.at.bytes)?;
            self.at.bytes = end;
        }
        Ok(true)
    }

    /// Uploads `rows` of the input, one channel after the other, into `to`. Returns true if all of
    /// them are recorded.
    fn fetch_input(&mut self, InputRows { input, rows }: InputRows, to: BufferId) -> Result<bool> {
        let Prepared { gpu, plan, slots, uploads, .. } = &mut *self.prepared;
        let (buffer, planes) = (&plan.buffers[to.0], plan.inputs[input]);
        let content: &[u8] = bytemuck::cast_slice(self.inputs[input]);
        let row = u64::from(planes.size.width) * 4;
        let (plane, part) = (row * u64::from(planes.size.height), row * u64::from(rows.1 - rows.0));
        while self.at.bytes < part * u64::from(planes.planes()) {
            let Some(room) = uploads.room() else { return Ok(false) };
            let (channel, within) = (self.at.bytes / part, self.at.bytes % part);
            let bytes = room.min(part - within);
            let start = channel * plane + u64::from(rows.0) * row + within;
            let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
            let piece = &content[index(start)..index(start + bytes)];
            uploads.write(gpu, &mut self.encoder, piece, &slots[buffer.slot.0], buffer.offset.0 + self.at.bytes)?;
            self.at.bytes += bytes;
        }
        Ok(true)
    }

    /// Copies `from` to host memory. Returns true if all of it is recorded.
    fn park(&mut self, from: BufferId, to: ParkedId) -> bool {
        let Prepared { plan, slots, host, readbacks, .. } = &mut *self.prepared;
        let buffer = &plan.buffers[from.0];
        while self.at.bytes < buffer.bytes.0 {
            let Some(room) = readbacks.room(Staging::ALIGNMENT) else { return false };
            if self.at.bytes == 0 {
                host.clear(to);
            }
            let end = buffer.bytes.0.min(self.at.bytes + room);
            let range = buffer.offset.0 + self.at.bytes..buffer.offset.0 + end;
            self.at.bytes = end;
            readbacks.copy(&mut self.encoder, &slots[buffer.slot.0], std::iter::once(range), Piece::Parked(to));
        }
        true
    }

    /// Copies a part of a state into `to`. Returns true if all of it is recorded.
    fn recall(&mut self, state: StateId, part: StatePart, to: BufferId) -> Result<bool> {
        let Prepared { gpu, plan, slots, states, states_of_plan, uploads, .. } = &mut *self.prepared;
        let (buffer, state) = (&plan.buffers[to.0], states_of_plan[state.0]);
        let (target, bytes) = (&slots[buffer.slot.0], buffer.bytes.0);
        let start = match part {
            StatePart::Frames(start) => start,
            StatePart::Table => {
                if let Some(table) = states.table(state) {
                    self.encoder.copy_buffer_to_buffer(&table.raw, 0, &target.raw, buffer.offset.0, Some(bytes));
                }
                return Ok(true);
            }
        };
        if let Some(frames) = states.on_host(state) {
            while self.at.bytes < bytes {
                let Some(room) = uploads.room() else { return Ok(false) };
                let end = bytes.min(self.at.bytes + room);
                let piece = frames.read(start + self.at.bytes..start + end);
                uploads.write(gpu, &mut self.encoder, &piece, target, buffer.offset.0 + self.at.bytes)?;
                self.at.bytes = end;
            }
            return Ok(true);
        }
        let mut offset = buffer.offset.0;
        for (source, at, bytes) in states.on_device(state, start..start + bytes) {
            self.encoder.copy_buffer_to_buffer(&source.raw, at, &target.raw, offset, Some(bytes));
            offset += bytes;
        }
        Ok(true)
    }

    /// Copies the first `bytes` of `from` into a part of a state. Returns true if all of them are
    /// recorded.
    fn keep(&mut self, from: BufferId, state: StateId, part: StatePart, bytes: u64) -> bool {
        let Prepared { plan, slots, states, states_of_plan, readbacks, .. } = &mut *self.prepared;
        let (buffer, index) = (&plan.buffers[from.0], states_of_plan[state.0]);
        let source = &slots[buffer.slot.0];
        let start = match part {
            StatePart::Frames(start) => start,
            StatePart::Table => {
                if let Some(table) = states.table(index) {
                    self.encoder.copy_buffer_to_buffer(&source.raw, buffer.offset.0, &table.raw, 0, Some(bytes));
                }
                return true;
            }
        };
        if states.on_host(index).is_some() {
            while self.at.bytes < bytes {
                let Some(room) = readbacks.room(Staging::ALIGNMENT) else { return false };
                let end = bytes.min(self.at.bytes + room);
                let range = buffer.offset.0 + self.at.bytes..buffer.offset.0 + end;
                let piece = Piece::Kept(state, start + self.at.bytes);
                readbacks.copy(&mut self.encoder, source, std::iter::once(range), piece);
                self.at.bytes = end;
            }
            return true;
        }
        let mut offset = buffer.offset.0;
        for (target, at, bytes) in states.on_device(index, start..start + bytes) {
            self.encoder.copy_buffer_to_buffer(&source.raw, offset, &target.raw, at, Some(bytes));
            offset += bytes;
        }
        true
    }

    /// Copies `rows` of the result from `from`. Returns true if all of them are recorded.
    fn output(&mut self, from: BufferId, rows: (u32, u32)) -> bool {
        match self.prepared.plan.output {
            Output::Rgba8 => self.output_rows(from, rows, u64::from(self.prepared.plan.result.frames)),
            Output::Raw | Output::Tile => self.output_rows(from, rows, u64::from(self.prepared.plan.result.planes())),
            Output::Picture(_) => self.output_picture(from, rows),
        }
    }

    /// Copies `rows` to their place in the picture, and the words of `image_check` into staging.
    /// Returns true if both are recorded.
    fn output_picture(&mut self, from: BufferId, rows: (u32, u32)) -> bool {
        let Prepared { plan, slots, readbacks, picture, .. } = &mut *self.prepared;
        let Some(room) = readbacks.room(CHECK_BYTES.0) else { return false };
        debug_assert!(room >= CHECK_BYTES.0, "a readback holds no check");
        let buffer = &plan.buffers[from.0];
        let source = &slots[buffer.slot.0];
        let row = plan.row_bytes().0;
        let (start, bytes) = (u64::from(rows.0) * row, u64::from(rows.1 - rows.0) * row);
        if let Some(picture) = picture {
            self.encoder.copy_buffer_to_buffer(&source.raw, buffer.offset.0, &picture.raw, start, Some(bytes));
        }
        let check = buffer.offset.0 + bytes..buffer.offset.0 + bytes + CHECK_BYTES.0;
        readbacks.copy(&mut self.encoder, source, std::iter::once(check), Piece::Rows(rows));
        true
    }

    /// Copies `rows` of `planes` planes to the host, in pieces of whole rows. Returns true if all
    /// of them are recorded.
    fn output_rows(&mut self, from: BufferId, rows: (u32, u32), planes: u64) -> bool {
        let Prepared { plan, slots, readbacks, .. } = &mut *self.prepared;
        let buffer = &plan.buffers[from.0];
        let (row, count) = (plan.row_bytes().0, u64::from(rows.1 - rows.0));
        while self.at.bytes < count * row {
            let Some(room) = readbacks.room(row) else { return false };
            let done = self.at.bytes / row;
            let more = (room / row).min(count - done);
            let ranges = (0..planes).map(|plane| {
                let range = plane_range(row / planes, plane * count + done, more);
                buffer.offset.0 + range.start..buffer.offset.0 + range.end
            });
            let first = rows.0 + u32::try_from(done).unwrap_or(u32::MAX);
            let piece = Piece::Rows((first, first + u32::try_from(more).unwrap_or(u32::MAX)));
            readbacks.copy(&mut self.encoder, &slots[buffer.slot.0], ranges, piece);
            self.at.bytes += more * row;
        }
        true
    }
}

/// Returns the byte range of `count` rows of one plane, of `row` bytes each.
fn plane_range(row: u64, first: u64, count: u64) -> Range<u64> {
    first * row..(first + count) * row
}
