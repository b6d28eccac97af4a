//! A ring of buffers that the host reads. Submissions copy data from the device into them.
//!
//! A submission fills a buffer. When it is done, the buffer is mapped, read by the host, and
//! unmapped.

use std::collections::VecDeque;
use std::ops::Range;

use super::Gpu;
use super::buffers::{GpuBuffer, Usage};
use super::upload::Mapping;
use crate::error::Result;
use crate::plan::memory::Staging;
use crate::plan::{ParkedId, StateId};
use crate::tensor::Bytes;

pub(super) struct Readbacks {
    slots: Vec<Slot>,
    /// The slot that the next bytes go to.
    current: usize,
    /// Slots that submissions write and the host has not read yet, oldest first.
    under_way: VecDeque<usize>,
}

struct Slot {
    buffer: GpuBuffer,
    used: u64,
    pieces: Vec<(Range<u64>, Piece)>,
    /// The map operation, from the submission until the host has read the buffer.
    mapping: Option<Mapping>,
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

impl Readbacks {
    pub(super) async fn new(gpu: &Gpu, slot: Bytes) -> Result<Self> {
        let mut slots = Vec::new();
        for index in 0..Staging::SLOTS {
            let buffer = GpuBuffer::new(gpu, &format!("readback {index}"), slot, Usage::Readback).await?;
            slots.push(Slot { buffer, used: 0, pieces: Vec::new(), mapping: None });
        }
        Ok(Self { slots, current: 0, under_way: VecDeque::new() })
    }

    /// Returns the bytes that can be copied now, at least `least`. `None` if less is free.
    pub(super) fn room(&mut self, least: u64) -> Option<u64> {
        let room = |slot: &Slot| match slot.mapping {
            None => slot.buffer.bytes().0.saturating_sub(slot.used),
            Some(_) => 0,
        };
        if room(&self.slots[self.current]) < least {
            let next = (self.current + 1) % self.slots.len();
            // Only an empty slot will do, because pieces must be read in order.
            if self.slots[next].used > 0 || self.slots[next].mapping.is_some() {
                return None;
            }
            self.current = next;
        }
        let room = room(&self.slots[self.current]);
        (room >= least).then_some(room)
    }

    /// Copies `ranges` of `source`, one after the other. Together they must fit into
    /// [`Self::room`].
    pub(super) fn copy(
        &mut self,
        encoder: &mut wgpu::CommandEncoder,
        source: &GpuBuffer,
        ranges: impl IntoIterator<Item = Range<u64>>,
        piece: Piece,
    ) {
        let slot = &mut self.slots[self.current];
        let start = slot.used;
        let mut end = start;
        for range in ranges {
            let bytes = range.end - range.start;
            encoder.copy_buffer_to_buffer(source.raw(), range.start, slot.buffer.raw(), end, Some(bytes));
            end += bytes;
        }
        slot.pieces.push((start..end, piece));
        slot.used = Bytes(end).align_up(Staging::ALIGNMENT).0;
    }

    /// Starts to map the buffers that were written. Must be called after the submission. Returns
    /// the number of buffers.
    pub(super) fn map(&mut self, gpu: &Gpu, submission: &wgpu::SubmissionIndex) -> usize {
        let before = self.under_way.len();
        let count = self.slots.len();
        // The oldest slot follows the current one.
        for index in (1..=count).map(|step| (self.current + step) % count) {
            let slot = &mut self.slots[index];
            if slot.used > 0 && slot.mapping.is_none() {
                slot.mapping = Some(gpu.inner.waiter.wait(DOING, Some(submission.clone()), |done| {
                    slot.buffer.raw().map_async(wgpu::MapMode::Read, .., move |result| done.with(result));
                }));
                self.under_way.push_back(index);
            }
        }
        if self.slots[self.current].mapping.is_some() {
            self.current = (self.current + 1) % count;
        }
        self.under_way.len() - before
    }

    /// Waits for the oldest buffer in flight, and hands its pieces to `sink` in the order of the
    /// copies.
    pub(super) async fn read(&mut self, gpu: &Gpu, sink: &mut dyn FnMut(Piece, &[u8]) -> Result<()>) -> Result<()> {
        let Some(oldest) = self.under_way.front() else { return Ok(()) };
        let slot = &mut self.slots[*oldest];
        if let Some(mapping) = &mut slot.mapping {
            let mapped = mapping.end().await?;
            gpu.check_alive(DOING)?;
            mapped.map_err(|error| gpu.failure(DOING, &error))?;
        }
        let buffer = slot.buffer.raw();
        let delivered = slot.pieces.drain(..).try_for_each(|(range, piece)| {
            let view = buffer.get_mapped_range(range).map_err(|error| gpu.failure(DOING, &error))?;
            sink(piece, &view)
        });
        buffer.unmap();
        (slot.mapping, slot.used) = (None, 0);
        self.under_way.pop_front();
        delivered
    }

    /// Discards data that an earlier run left unread.
    pub(super) async fn reset(&mut self, gpu: &Gpu) -> Result<()> {
        let forget = || {
            for slot in &mut self.slots {
                if slot.mapping.take().is_some() {
                    slot.buffer.raw().unmap();
                }
                slot.pieces.clear();
                slot.used = 0;
            }
            self.under_way.clear();
        };
        gpu.scoped(DOING, forget).await
    }

    /// Reads the first `bytes` of `source`, in as many submissions as needed. No other read may be
    /// in progress.
    pub(super) async fn read_all(&mut self, gpu: &Gpu, source: &GpuBuffer, bytes: Bytes) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        let mut at = 0;
        while at < bytes.0 {
            let Some(room) = self.room(Staging::ALIGNMENT) else {
                return Err(gpu.failure(DOING, &"another read is under way"));
            };
            let end = bytes.0.min(at + room);
            let copy = || {
                let mut encoder = gpu.inner.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                self.copy(&mut encoder, source, std::iter::once(at..end), Piece::Other);
                let submission = gpu.inner.queue.submit([encoder.finish()]);
                self.map(gpu, &submission);
            };
            gpu.scoped(DOING, copy).await?;
            let mut keep = |_, piece: &[u8]| {
                data.extend_from_slice(piece);
                Ok(())
            };
            self.read(gpu, &mut keep).await?;
            at = end;
        }
        Ok(data)
    }
}

const DOING: &str = "reading from the device";
