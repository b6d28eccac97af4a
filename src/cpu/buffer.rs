//! Memory of a plan on the host, counted by the ledger.

use std::sync::Arc;

use super::Cpu;
use crate::error::{DeviceError, Error, Result};
use crate::execution::Ledger;
use crate::tensor::Bytes;

/// A buffer on the host that the ledger counts.
#[derive(Debug)]
pub struct CpuBuffer {
    pub(super) values: Vec<f32>,
    ledger: Arc<Ledger>,
}

impl CpuBuffer {
    /// Creates a buffer of `bytes` zeros, rounded up to a multiple of four.
    ///
    /// # Errors
    /// [`Error::Device`] if the host has too little memory.
    pub(super) fn new(cpu: &Cpu, name: &str, bytes: Bytes) -> Result<Self> {
        let size = bytes.align_up(4).0;
        let out_of_memory = |reason: String| {
            let doing = format!("allocating \"{name}\" ({bytes})");
            Error::Device(DeviceError::OutOfMemory { doing, reason })
        };
        let ledger = &cpu.inner.ledger;
        ledger.add(size).map_err(out_of_memory)?;
        let count = usize::try_from(size / 4).unwrap_or(usize::MAX);
        // The allocator knows that fresh memory is zero.
        let values = bytemuck::try_zeroed_vec(count).map_err(|()| {
            ledger.fail(size);
            out_of_memory("the host has too little memory".to_owned())
        })?;
        Ok(Self { values, ledger: Arc::clone(ledger) })
    }

    /// Creates a buffer that holds `data`.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub fn with_data(cpu: &Cpu, name: &str, data: &[u8]) -> Result<Self> {
        let mut buffer = Self::new(cpu, name, Bytes(data.len() as u64))?;
        bytemuck::cast_slice_mut(&mut buffer.values)[..data.len()].copy_from_slice(data);
        Ok(buffer)
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.values.len() as u64 * 4)
    }
}

impl Drop for CpuBuffer {
    fn drop(&mut self) {
        self.ledger.remove(self.bytes().0);
    }
}
