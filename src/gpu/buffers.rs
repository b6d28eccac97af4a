//! Creates GPU buffers, and counts them. The only place that does: the ledger is the measured side of every prediction.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Gpu;
use crate::error::Result;
use crate::tensor::Bytes;

/// Bytes and numbers of the buffers created on a device.
#[derive(Debug, Default)]
pub struct Ledger {
    current: AtomicU64,
    peak: AtomicU64,
    created: AtomicU64,
}

impl Ledger {
    /// Bytes that exist now.
    pub fn current(&self) -> Bytes {
        Bytes(self.current.load(Ordering::Relaxed))
    }

    /// The most that ever existed at once.
    pub fn peak(&self) -> Bytes {
        Bytes(self.peak.load(Ordering::Relaxed))
    }

    /// Buffers created since the device was opened.
    pub fn created(&self) -> u64 {
        self.created.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: u64) {
        let current = self.current.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak.fetch_max(current, Ordering::Relaxed);
        self.created.fetch_add(1, Ordering::Relaxed);
    }

    fn remove(&self, bytes: u64) {
        self.current.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What a buffer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    /// Weights, activations and scratch.
    Storage,
    /// Parameters.
    Uniform,
    /// Read by the host.
    Staging,
    /// Timestamps, before they go to staging.
    Timestamps,
}

/// A buffer on the ledger. Destroyed when dropped: on the web, dropping alone frees nothing.
#[derive(Debug)]
pub struct GpuBuffer {
    buffer: wgpu::Buffer,
    bytes: u64,
    ledger: Arc<Ledger>,
}

impl GpuBuffer {
    #[expect(clippy::disallowed_methods, reason = "the one place that creates buffers, and counts them")]
    /// Creates a buffer of `bytes`, rounded up to the four bytes that copies need.
    pub(super) async fn new(gpu: &Gpu, name: &str, bytes: Bytes, usage: Usage) -> Result<Self> {
        let size = bytes.align_up(4).0;
        let usage = match usage {
            Usage::Storage => wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
            Usage::Uniform => wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            Usage::Staging => wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            Usage::Timestamps => wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
        };
        let descriptor = wgpu::BufferDescriptor { label: Some(name), size, usage, mapped_at_creation: false };
        let buffer = gpu
            .scoped(&format!("allocating \"{name}\" ({bytes})"), || gpu.inner.device.create_buffer(&descriptor))
            .await?;
        let ledger = Arc::clone(&gpu.inner.ledger);
        ledger.add(size);
        Ok(Self { buffer, bytes: size, ledger })
    }

    /// A storage buffer that holds `data`.
    pub async fn with_data(gpu: &Gpu, name: &str, data: &[u8]) -> Result<Self> {
        let buffer = Self::new(gpu, name, Bytes(data.len() as u64), Usage::Storage).await?;
        gpu.scoped(&format!("uploading \"{name}\""), || gpu.inner.queue.write_buffer(&buffer.buffer, 0, data)).await?;
        Ok(buffer)
    }

    /// wgpu's handle.
    pub(super) fn raw(&self) -> &wgpu::Buffer {
        &self.buffer
    }

    /// Its size.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.bytes)
    }
}

impl Drop for GpuBuffer {
    fn drop(&mut self) {
        self.buffer.destroy();
        self.ledger.remove(self.bytes);
    }
}
