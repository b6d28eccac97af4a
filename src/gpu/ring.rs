//! A ring of staging buffers that the host maps in turn. Submissions copy from them or into them.

use std::collections::VecDeque;
use std::ops::Range;

use super::Gpu;
use super::buffers::{GpuBuffer, Usage};
use super::wait::Wait;
use crate::error::Result;
use crate::plan::memory::Staging;
use crate::plan::{ParkedId, StateId};
use crate::tensor::Bytes;

pub(super) struct Ring {
    pub(super) slots: Vec<Slot>,
    /// The slot that the next bytes go to.
    pub(super) current: usize,
    /// Slots in flight, oldest first: from their submission until [`Self::release`].
    pub(super) under_way: VecDeque<usize>,
    mode: wgpu::MapMode,
    /// The operation that errors name.
    pub(super) doing: &'static str,
}

pub(super) struct Slot {
    pub(super) buffer: GpuBuffer,
    pub(super) used: u64,
    /// Ranges that a submission copies into this buffer, and their destinations.
    pub(super) pieces: Vec<(Range<u64>, Piece)>,
    /// The map operation, from the submission until the host has the buffer again.
    pub(super) mapping: Option<Wait<std::result::Result<(), wgpu::BufferAsyncError>>>,
}

/// The destination of a piece of data that was read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Piece {
    /// The end of this parked buffer.
    Parked(ParkedId),
    /// A state of the clip, from this byte of its frames on.
    Kept(StateId, u64),
    /// Rows of the image: the first, and the one after the last.
    Rows((u32, u32)),
    /// The caller that waits for the data.
    Other,
}

impl Slot {
    /// Returns the bytes that are free; 0 in flight.
    pub(super) fn room(&self) -> u64 {
        if self.mapping.is_some() { 0 } else { self.buffer.bytes().0.saturating_sub(self.used) }
    }

    /// Counts the next `bytes` of the buffer as used.
    pub(super) fn fill(&mut self, bytes: u64) {
        self.used = Bytes(self.used + bytes).align_up(Staging::ALIGNMENT).0;
    }
}

impl Ring {
    /// Allocates the buffers, of `bytes` each, for one direction.
    pub(super) async fn new(gpu: &Gpu, usage: Usage, bytes: Bytes) -> Result<Self> {
        let (name, mode, doing) = match usage {
            Usage::Upload => ("upload", wgpu::MapMode::Write, "mapping a buffer to write"),
            _ => ("readback", wgpu::MapMode::Read, "reading from the device"),
        };
        let mut slots = Vec::new();
        for index in 0..Staging::SLOTS {
            let buffer = GpuBuffer::new(gpu, &format!("{name} {index}"), bytes, usage).await?;
            slots.push(Slot { buffer, used: 0, pieces: Vec::new(), mapping: None });
        }
        Ok(Self { slots, current: 0, under_way: VecDeque::new(), mode, doing })
    }

    /// Returns the bytes that are free now, at least `least`. `None` if less is free, or half of
    /// the slots are filled for the next submission: the host needs the other half while the device
    /// works on it. Moves on only to an empty slot: slots in flight must be used again in the order
    /// of their submissions.
    // Measured on an H100 before: TAESD at 1024x1024 in fast filled all slots with one submission,
    // so the device waited three times for the host to empty them.
    pub(super) fn room(&mut self, least: u64) -> Option<u64> {
        let next = (self.current + 1) % self.slots.len();
        let filled = self.slots.iter().filter(|slot| slot.used > 0 && slot.mapping.is_none()).count();
        let (current, after) = (&self.slots[self.current], &self.slots[next]);
        if current.room() < least && 2 * filled < self.slots.len() && after.used == 0 && after.mapping.is_none() {
            self.current = next;
        }
        Some(self.slots[self.current].room()).filter(|room| *room >= least)
    }

    /// Starts to map the buffers in use. Must be called after the submission. Returns the number of
    /// buffers.
    pub(super) fn map(&mut self, gpu: &Gpu, submission: &wgpu::SubmissionIndex) -> usize {
        let before = self.under_way.len();
        let count = self.slots.len();
        // The oldest slot follows the current one.
        for index in (1..=count).map(|step| (self.current + step) % count) {
            let slot = &mut self.slots[index];
            if slot.used > 0 && slot.mapping.is_none() {
                slot.mapping = Some(gpu.inner.waiter.wait(self.doing, Some(submission.clone()), |done| {
                    slot.buffer.raw.map_async(self.mode, .., move |result| done.with(result));
                }));
                self.under_way.push_back(index);
            }
        }
        if self.slots[self.current].mapping.is_some() {
            self.current = (self.current + 1) % count;
        }
        self.under_way.len() - before
    }

    /// Waits until the oldest buffer in flight is mapped, and returns its slot. `None` if no buffer
    /// is in flight.
    pub(super) async fn mapped(&mut self, gpu: &Gpu) -> Result<Option<&mut Slot>> {
        let Some(oldest) = self.under_way.front() else { return Ok(None) };
        let slot = &mut self.slots[*oldest];
        if let Some(mapping) = &mut slot.mapping {
            let mapped = mapping.end().await;
            gpu.check_alive(self.doing)?;
            mapped?.map_err(|error| gpu.failure(self.doing, &error))?;
        }
        Ok(Some(slot))
    }

    /// Makes the oldest buffer in flight free again.
    pub(super) fn release(&mut self) {
        if let Some(oldest) = self.under_way.pop_front() {
            (self.slots[oldest].mapping, self.slots[oldest].used) = (None, 0);
        }
    }
}
