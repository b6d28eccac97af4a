//! The ring that the host reads. Submissions copy data from the device into it.
//!
//! A submission fills a buffer. When it is done, the buffer is mapped, read by the host, and
//! unmapped.

use std::ops::Range;

use super::Gpu;
use super::buffers::{GpuBuffer, Usage};
use super::ring::{Piece, Ring};
use crate::error::Result;
use crate::plan::memory::Staging;
use crate::tensor::Bytes;

wasm_not! {
    Send;
    /// A function that takes the pieces of results, in the order of their copies.
    type PieceSink<'a> = dyn FnMut(Piece, &[u8]) -> Result<()> + 'a
}

pub(super) struct Readbacks(Ring);

impl Readbacks {
    pub(super) async fn new(gpu: &Gpu, slot: Bytes) -> Result<Self> {
        Ring::new(gpu, Usage::Readback, slot).await.map(Self)
    }

    /// Returns the bytes that can be copied now, at least `least`. `None` if less is free.
    pub(super) fn room(&mut self, least: u64) -> Option<u64> {
        self.0.room(least)
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
        let slot = &mut self.0.slots[self.0.current];
        let (start, mut end) = (slot.used, slot.used);
        for range in ranges {
            let bytes = range.end - range.start;
            encoder.copy_buffer_to_buffer(&source.raw, range.start, &slot.buffer.raw, end, Some(bytes));
            end += bytes;
        }
        slot.pieces.push((start..end, piece));
        slot.fill(end - start);
    }

    /// Starts to map the buffers that were written. Must be called after the submission. Returns
    /// the number of buffers.
    pub(super) fn map(&mut self, gpu: &Gpu, submission: &wgpu::SubmissionIndex) -> usize {
        self.0.map(gpu, submission)
    }

    /// Waits for the oldest buffer in flight, and hands its pieces to `sink` in the order of the
    /// copies.
    pub(super) async fn read(&mut self, gpu: &Gpu, sink: &mut PieceSink<'_>) -> Result<()> {
        let doing = self.0.doing;
        let Some(slot) = self.0.mapped(gpu).await? else { return Ok(()) };
        let buffer = &slot.buffer.raw;
        let delivered = slot.pieces.drain(..).try_for_each(|(range, piece)| {
            let view = buffer.get_mapped_range(range).map_err(|error| gpu.failure(doing, &error))?;
            sink(piece, &view)
        });
        buffer.unmap();
        self.0.release();
        delivered
    }

    /// Discards data that an earlier run left unread.
    pub(super) async fn reset(&mut self, gpu: &Gpu) -> Result<()> {
        let Ring { slots, under_way, doing, .. } = &mut self.0;
        let forget = || {
            for slot in slots {
                if slot.mapping.take().is_some() {
                    slot.buffer.raw.unmap();
                }
                slot.pieces.clear();
                slot.used = 0;
            }
            under_way.clear();
        };
        gpu.scoped(doing, forget).await
    }

    /// Reads the first `bytes` of `source`, in as many submissions as needed. No other read may be
    /// in progress.
    pub(super) async fn read_all(&mut self, gpu: &Gpu, source: &GpuBuffer, bytes: Bytes) -> Result<Vec<u8>> {
        let doing = self.0.doing;
        let mut data = Vec::new();
        let mut at = 0;
        while at < bytes.0 {
            let Some(room) = self.room(Staging::ALIGNMENT) else {
                return Err(gpu.failure(doing, &"another read is under way"));
            };
            let end = bytes.0.min(at + room);
            let copy = || {
                let mut encoder = gpu.inner.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
                self.copy(&mut encoder, source, std::iter::once(at..end), Piece::Other);
                let submission = gpu.inner.queue.submit([encoder.finish()]);
                self.map(gpu, &submission);
            };
            gpu.scoped(doing, copy).await?;
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
