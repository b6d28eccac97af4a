//! The ring that the host writes. A submission copies its content to its place on the device.
//!
//! A buffer is mapped, filled, and unmapped before the submission that copies from it. It is mapped
//! again when that submission is done.

use super::Gpu;
use super::buffers::{GpuBuffer, Usage};
use super::ring::Ring;
use crate::error::Result;
use crate::tensor::Bytes;

pub(super) struct Uploads(Ring);

impl Uploads {
    pub(super) async fn new(gpu: &Gpu, slot: Bytes) -> Result<Self> {
        Ring::new(gpu, Usage::Upload, slot).await.map(Self)
    }

    /// Returns the bytes that can be written now; see [`Ring::room`].
    pub(super) fn room(&mut self) -> Option<u64> {
        self.0.room(1)
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
        let slot = &mut self.0.slots[self.0.current];
        let bytes = data.len() as u64;
        let mapped = slot.buffer.raw.get_mapped_range_mut(slot.used..slot.used + bytes);
        let mut view = mapped.map_err(|error| gpu.failure(self.0.doing, &error))?;
        view.copy_from_slice(data);
        drop(view);
        encoder.copy_buffer_to_buffer(&slot.buffer.raw, slot.used, &target.raw, offset, Some(bytes));
        slot.fill(bytes);
        Ok(())
    }

    /// Unmaps the buffers that were written. Must be called before the submission.
    pub(super) fn close(&mut self) {
        for slot in self.0.slots.iter().filter(|slot| slot.used > 0 && slot.mapping.is_none()) {
            slot.buffer.raw.unmap();
        }
    }

    /// Starts to map these buffers again. Must be called after the submission. Returns the number
    /// of buffers.
    pub(super) fn recall(&mut self, gpu: &Gpu, submission: &wgpu::SubmissionIndex) -> usize {
        self.0.map(gpu, submission)
    }

    /// Waits until the oldest buffer in flight can be written again. Returns true if there was one.
    pub(super) async fn wait(&mut self, gpu: &Gpu) -> Result<bool> {
        let found = self.0.mapped(gpu).await?.is_some();
        self.0.release();
        Ok(found)
    }

    /// Makes all buffers writable again, in whatever state an earlier run left them.
    pub(super) async fn reset(&mut self, gpu: &Gpu) -> Result<()> {
        while self.wait(gpu).await? {}
        self.0.slots.iter_mut().for_each(|slot| slot.used = 0);
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
