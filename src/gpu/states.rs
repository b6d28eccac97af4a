//! The states of a clip, which it keeps from one part to the next: frames, on the device or in host
//! memory as the plan says, and the tables of their norms.

use std::ops::Range;

use super::buffers::{GpuBuffer, Usage};
use super::{Gpu, HostBytes};
use crate::error::{Error, Result};
use crate::limits::DeviceLimits;
use crate::plan::{Home, StateUse};
use crate::tensor::Bytes;

/// The place of the frames of one state.
#[derive(Debug)]
enum Frames {
    /// Buffers of this many bytes each; the last may be smaller. Devices limit the size of a
    /// buffer.
    Device(Vec<GpuBuffer>, u64),
    Host(HostBytes),
}

#[derive(Debug)]
struct HeldState {
    name: String,
    frames: Frames,
    table: Option<GpuBuffer>,
}

/// The states of a clip, initially zeros.
#[derive(Debug, Default)]
pub struct ClipStates(Vec<HeldState>);

impl ClipStates {
    /// Allocates `states`, those of a plan of a clip.
    ///
    /// # Errors
    /// See [`Self::add`].
    pub async fn new(gpu: &Gpu, states: &[StateUse]) -> Result<Self> {
        let mut kept = Self::default();
        kept.add(gpu, states).await?;
        Ok(kept)
    }

    /// True if all of `states`, those of a plan, are allocated.
    pub fn hold(&self, states: &[StateUse]) -> bool {
        !self.find(states).contains(&usize::MAX)
    }

    /// Allocates those of `states`, the states of a plan, that are not allocated yet.
    ///
    /// # Errors
    /// [`Error::Device`], [`Error::HostMemory`].
    pub async fn add(&mut self, gpu: &Gpu, states: &[StateUse]) -> Result<()> {
        for state in states {
            if self.hold(std::slice::from_ref(state)) {
                continue;
            }
            let frames = match state.home {
                Home::Host => Frames::Host(zeros(states, state.bytes())?),
                Home::Device => on_device(gpu, state, gpu.limits()).await?,
            };
            let table = match state.table {
                Bytes(0) => None,
                bytes => Some(GpuBuffer::new(gpu, &format!("kept norm of {}", state.name), bytes, Usage::Kept).await?),
            };
            self.0.push(HeldState { name: state.name.clone(), frames, table });
        }
        Ok(())
    }

    /// Returns the index of each of `states`, by name; `usize::MAX` if it is missing.
    pub(super) fn find(&self, states: &[StateUse]) -> Vec<usize> {
        let index = |state: &StateUse| self.0.iter().position(|kept| kept.name == state.name);
        states.iter().map(|state| index(state).unwrap_or(usize::MAX)).collect()
    }

    /// Returns the buffer of the norm's table of state `index`.
    pub(super) fn table(&self, index: usize) -> Option<&GpuBuffer> {
        self.0.get(index)?.table.as_ref()
    }

    /// Returns the places of bytes `range` of the frames of state `index` on the device: buffer,
    /// first byte in it, and length. Empty if the frames are on the host.
    pub(super) fn on_device(&self, index: usize, range: Range<u64>) -> impl Iterator<Item = (&GpuBuffer, u64, u64)> {
        let (buffers, size) = match self.0.get(index).map(|state| &state.frames) {
            Some(Frames::Device(buffers, size)) => (buffers.as_slice(), *size),
            Some(Frames::Host(_)) | None => (&[][..], 1),
        };
        (0..).zip(buffers).filter_map(move |(number, buffer)| {
            let first: u64 = number * size;
            let (start, end) = (range.start.max(first), range.end.min(first + size));
            (start < end).then(|| (buffer, start - first, end - start))
        })
    }

    /// Returns the frames of state `index`, if they are on the host.
    pub(super) fn on_host(&mut self, index: usize) -> Option<&mut HostBytes> {
        match &mut self.0.get_mut(index)?.frames {
            Frames::Host(bytes) => Some(bytes),
            Frames::Device(..) => None,
        }
    }
}

async fn on_device(gpu: &Gpu, state: &StateUse, limits: &DeviceLimits) -> Result<Frames> {
    let size = state.piece_bytes(limits).0;
    let mut buffers = Vec::new();
    let mut left = state.bytes().0;
    while left > 0 {
        let bytes = Bytes(left.min(size));
        buffers.push(GpuBuffer::new(gpu, &format!("kept of {}", state.name), bytes, Usage::Kept).await?);
        left -= bytes.0;
    }
    Ok(Frames::Device(buffers, size))
}

fn zeros(states: &[StateUse], bytes: Bytes) -> Result<HostBytes> {
    HostBytes::zeros(bytes).ok_or_else(|| Error::HostMemory {
        what: "the states of a clip".to_owned(),
        needed: states.iter().filter(|state| state.home == Home::Host).map(StateUse::bytes).sum(),
    })
}
