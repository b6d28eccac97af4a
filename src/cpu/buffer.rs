//! Memory of a plan on the host, counted by the ledger.

use std::collections::TryReserveError;
use std::sync::Arc;

use super::Cpu;
use crate::error::{DeviceError, Error, Result};
use crate::execution::Ledger;
use crate::tensor::Bytes;

/// A buffer on the host.
#[derive(Debug)]
pub struct CpuBuffer {
    values: Vec<f32>,
    /// The ledger that counts it; `None` for what a plan declares as host memory.
    ledger: Option<Arc<Ledger>>,
}

impl CpuBuffer {
    /// Creates a buffer of `bytes` zeros, rounded up to a multiple of four.
    ///
    /// # Errors
    /// [`Error::Device`] if the host has too little memory.
    pub(super) fn new(cpu: &Cpu, name: &str, bytes: Bytes) -> Result<Self> {
        let mut buffer = Self::reserve(cpu, name, bytes)?;
        buffer.values.resize(buffer.values.capacity(), 0.0);
        Ok(buffer)
    }

    /// Creates a buffer that holds `data`.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub fn with_data(cpu: &Cpu, name: &str, data: &[u8]) -> Result<Self> {
        let mut buffer = Self::reserve(cpu, name, Bytes(data.len() as u64))?;
        buffer.values.resize(buffer.values.capacity(), 0.0);
        bytemuck::cast_slice_mut(&mut buffer.values)[..data.len()].copy_from_slice(data);
        Ok(buffer)
    }

    /// Creates a buffer of `bytes` zeros that no ledger counts, for `what` a plan keeps in host
    /// memory.
    ///
    /// # Errors
    /// [`Error::HostMemory`].
    pub(super) fn uncounted(what: &str, bytes: Bytes) -> Result<Self> {
        let mut values = values(bytes).map_err(|error| {
            log::warn!("{what}: {error}");
            Error::HostMemory { what: what.to_owned(), needed: bytes }
        })?;
        values.resize(values.capacity(), 0.0);
        Ok(Self { values, ledger: None })
    }

    /// Allocates and counts a buffer of `bytes`, without content.
    fn reserve(cpu: &Cpu, name: &str, bytes: Bytes) -> Result<Self> {
        let out_of_memory = |reason: String| {
            let doing = format!("allocating \"{name}\" ({bytes})");
            Error::Device(DeviceError::OutOfMemory { doing, reason })
        };
        let ledger = &cpu.inner.ledger;
        let size = bytes.align_up(4).0;
        ledger.add(size).map_err(out_of_memory)?;
        let values = values(bytes).map_err(|error| {
            ledger.fail(size);
            out_of_memory(error.to_string())
        })?;
        Ok(Self { values, ledger: Some(Arc::clone(ledger)) })
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.values.capacity() as u64 * 4)
    }

    pub(super) fn values(&self) -> &[f32] {
        &self.values
    }

    pub(super) fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }
}

impl Drop for CpuBuffer {
    fn drop(&mut self) {
        if let Some(ledger) = &self.ledger {
            ledger.remove(self.bytes().0);
        }
    }
}

/// Reserves room for `bytes`, rounded up to a multiple of four.
fn values(bytes: Bytes) -> std::result::Result<Vec<f32>, TryReserveError> {
    let mut values = Vec::new();
    values.try_reserve_exact(usize::try_from(bytes.align_up(4).0 / 4).unwrap_or(usize::MAX))?;
    Ok(values)
}
