//! A ring of buffers that the host writes. A submission copies their content to its place on the
//! device.
//!
//! A buffer is mapped, filled, and unmapped before the submission that copies from it. It is mapped
//! again when that submission is done.

use std::collections::VecDeque;

use super::Gpu;
use super::buffers::{GpuBuffer, Usage};
use super::wait::Wait;
use crate::error::Result;
use crate::plan::memory::Staging;
use crate::tensor::Bytes;

pub(super) type Mapping = Wait<std::result::Result<(), wgpu::BufferAsyncError>>;

pub(super) struct Uploads {
    slots: Vec<Slot>,
    /// The slot that the next bytes go to.
    current: usize,
    /// Slots that submissions in flight copy from, oldest first.
    under_way: VecDeque<usize>,
}

struct Slot {
    buffer: GpuBuffer,
    used: u64,
    /// The pending map operation; `None` while the buffer is mapped, and between [`Uploads::close`]
    /// and [`Uploads::recall`].
    mapping: Option<Mapping>,
}

impl Uploads {
    pub(super) async fn new(gpu: &Gpu, slot: Bytes) -> Result<Self> {
        let mut slots = Vec::new();
        for index in 0..Staging::SLOTS {
            let buffer = GpuBuffer::new(gpu, &format!("upload {index}"), slot, Usage::Upload).await?;
            slots.push(Slot { buffer, used: 0, mapping: None });
        }
        Ok(Self { slots, current: 0, under_way: VecDeque::new() })
    }

    /// Returns the bytes that can be written now; `None` if all buffers are in flight.
    pub(super) fn room(&mut self) -> Option<u64> {
        let current = &self.slots[self.current];
        let next = (self.current + 1) % self.slots.len();
        // Only `recall` moves to a slot in flight, in the order of submissions.
        if current.mapping.is_none()
            && current.used >= current.buffer.bytes().0
            && self.slots[next].mapping.is_none()
            && self.slots[next].used == 0
        {
            self.current = next;
        }
        let current = &self.slots[self.current];
        let room = current.buffer.bytes().0.saturating_sub(current.used);
        (current.mapping.is_none() && room > 0).then_some(room)
    }

    /// Writes `data` into `target` at byte `offset`. `data` must fit into [`Self::room`].
    pub(super) fn write(
        &mut self,
        gpu: &Gpu,
        encoder: &mut wgpu::CommandEncoder,
        data: &[u8],
        target: &GpuBuffer,
        offset: u64,
    ) -> Result<()> {
        let slot = &mut self.slots[self.current];
        let bytes = data.len() as u64;
        let range = slot.used..slot.used + bytes;
        let mut view =
            slot.buffer.raw().get_mapped_range_mut(range.clone()).map_err(|error| gpu.failure(DOING, &error))?;
        view.copy_from_slice(data);
        drop(view);
        encoder.copy_buffer_to_buffer(slot.buffer.raw(), range.start, target.raw(), offset, Some(bytes));
        slot.used = Bytes(range.end).align_up(Staging::ALIGNMENT).0;
        Ok(())
    }

    /// Unmaps the buffers that were written. Must be called before the submission.
    pub(super) fn close(&mut self) {
        for slot in self.slots.iter().filter(|slot| slot.used > 0 && slot.mapping.is_none()) {
            slot.buffer.raw().unmap();
        }
    }

    /// Starts to map these buffers again. Must be called after the submission. Returns the number
    /// of buffers.
    pub(super) fn recall(&mut self, gpu: &Gpu, submission: &wgpu::SubmissionIndex) -> usize {
        let before = self.under_way.len();
        let count = self.slots.len();
        // The oldest slot follows the current one.
        for index in (1..=count).map(|step| (self.current + step) % count) {
            let slot = &mut self.slots[index];
            if slot.used > 0 && slot.mapping.is_none() {
                slot.mapping = Some(gpu.inner.waiter.wait(DOING, Some(submission.clone()), |done| {
                    slot.buffer.raw().map_async(wgpu::MapMode::Write, .., move |result| done.with(result));
                }));
                self.under_way.push_back(index);
            }
        }
        if self.slots[self.current].mapping.is_some() {
            self.current = (self.current + 1) % count;
        }
        self.under_way.len() - before
    }

    /// Waits until the oldest buffer in flight can be written again. Returns true if there was one.
    pub(super) async fn wait(&mut self, gpu: &Gpu) -> Result<bool> {
        let Some(oldest) = self.under_way.front() else { return Ok(false) };
        let slot = &mut self.slots[*oldest];
        if let Some(mapping) = &mut slot.mapping {
            let mapped = mapping.end().await?;
            gpu.check_alive(DOING)?;
            mapped.map_err(|error| gpu.failure(DOING, &error))?;
        }
        (slot.mapping, slot.used) = (None, 0);
        self.under_way.pop_front();
        Ok(true)
    }

    /// Makes all buffers writable again, in whatever state an earlier run left them.
    pub(super) async fn reset(&mut self, gpu: &Gpu) -> Result<()> {
        while self.wait(gpu).await? {}
        self.slots.iter_mut().for_each(|slot| slot.used = 0);
        Ok(())
    }

    /// Uploads `data` into `target` from a byte offset on, in as many submissions as needed.
    pub(super) async fn upload(
        &mut self,
        gpu: &Gpu,
        doing: &str,
        data: &[u8],
        (target, offset): (&GpuBuffer, u64),
    ) -> Result<()> {
        let mut at = 0;
        while at < data.len() {
            let Some(room) = self.room() else {
                self.wait(gpu).await?;
                continue;
            };
            let end = data.len().min(at + usize::try_from(room).unwrap_or(usize::MAX));
            let copy = || -> Result<()> {
                let mut encoder = gpu.inner.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                self.write(gpu, &mut encoder, &data[at..end], target, offset + at as u64)?;
                self.close();
                let submission = gpu.inner.queue.submit([encoder.finish()]);
                self.recall(gpu, &submission);
                Ok(())
            };
            gpu.scoped(doing, copy).await??;
            at = end;
        }
        Ok(())
    }
}

const DOING: &str = "mapping a buffer to write";
