//! Creates GPU buffers, and counts them. Nothing else creates buffers, so the ledger can check
//! every memory prediction.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Gpu;
use crate::error::{DeviceError, Error, Result};
use crate::execution::Ledger;
use crate::tensor::Bytes;

/// Most bytes that wgpu holds copies of while they are uploaded: 16 MiB. The plan does not count
/// them.
const PIECE: usize = 16 << 20;

/// The purpose of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    /// Weights, activations and scratch.
    Storage,
    /// Parameters.
    Uniform,
    /// Data that the host writes. Mapped at creation.
    Upload,
    /// Data that the host reads.
    Readback,
    /// Timestamps, before they are read back.
    Timestamps,
    /// A picture that stays on the device.
    Picture,
    /// Data that a clip keeps from one part to the next.
    Kept,
}

/// A buffer that the ledger counts. Destroyed when dropped: on the web, dropping the handle alone
/// frees nothing.
#[derive(Debug)]
pub struct GpuBuffer {
    /// The handle of wgpu.
    pub(super) raw: wgpu::Buffer,
    bytes: u64,
    ledger: Arc<Ledger>,
}

impl GpuBuffer {
    #[expect(clippy::disallowed_methods, reason = "the one place that creates buffers, and counts them")]
    /// Creates a buffer of `bytes`, rounded up to a multiple of four, as copies need.
    pub(super) async fn new(gpu: &Gpu, name: &str, bytes: Bytes, usage: Usage) -> Result<Self> {
        let size = bytes.align_up(4).0;
        let descriptor = wgpu::BufferDescriptor {
            label: Some(name),
            size,
            usage: flags(usage),
            mapped_at_creation: usage == Usage::Upload,
        };
        let doing = format!("allocating \"{name}\" ({bytes})");
        let ledger = Arc::clone(&gpu.inner.ledger);
        ledger.add(size).map_err(|reason| Error::Device(DeviceError::OutOfMemory { doing: doing.clone(), reason }))?;
        match gpu.scoped(&doing, || gpu.inner.device.create_buffer(&descriptor)).await {
            Ok(raw) => Ok(Self { raw, bytes: size, ledger }),
            Err(error) => {
                ledger.fail(size);
                Err(error)
            }
        }
    }

    /// Creates a storage buffer that holds `data`.
    ///
    /// # Errors
    /// [`Error::Device`] if the device has too little memory or is lost.
    pub async fn with_data(gpu: &Gpu, name: &str, data: &[u8]) -> Result<Self> {
        let buffer = Self::new(gpu, name, Bytes(data.len() as u64), Usage::Storage).await?;
        let doing = format!("uploading \"{name}\"");
        let mut offset = 0;
        for piece in data.chunks(PIECE) {
            let bytes = piece.len() as u64;
            if gpu.inner.pending.fetch_add(bytes, Ordering::Relaxed) + bytes > PIECE as u64 {
                Box::pin(gpu.idle()).await?;
                gpu.inner.pending.fetch_add(bytes, Ordering::Relaxed);
            }
            gpu.scoped(&doing, || gpu.inner.queue.write_buffer(&buffer.raw, offset, piece)).await?;
            offset += bytes;
        }
        Ok(buffer)
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.bytes)
    }
}

impl Drop for GpuBuffer {
    fn drop(&mut self) {
        self.raw.destroy();
        self.ledger.remove(self.bytes);
    }
}

fn flags(usage: Usage) -> wgpu::BufferUsages {
    use wgpu::BufferUsages as Flags;
    match usage {
        Usage::Storage => Flags::STORAGE | Flags::COPY_SRC | Flags::COPY_DST,
        Usage::Uniform => Flags::UNIFORM | Flags::COPY_DST,
        Usage::Upload => Flags::MAP_WRITE | Flags::COPY_SRC,
        Usage::Readback => Flags::MAP_READ | Flags::COPY_DST,
        Usage::Timestamps => Flags::QUERY_RESOLVE | Flags::COPY_SRC,
        Usage::Picture | Usage::Kept => Flags::COPY_SRC | Flags::COPY_DST,
    }
}
