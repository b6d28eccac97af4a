//! The states of a clip, which it keeps from one part to the next: frames, and the tables of their
//! norms.

use super::{Cpu, CpuBuffer};
use crate::error::Result;
use crate::plan::{StatePart, StateUse};
use crate::tensor::Bytes;

#[derive(Debug)]
struct HeldState {
    name: String,
    frames: CpuBuffer,
    table: Option<CpuBuffer>,
}

/// The states of a clip, initially zeros.
#[derive(Debug, Default)]
pub struct ClipStates(Vec<HeldState>);

impl ClipStates {
    /// Allocates the `states` of a plan that are not allocated yet.
    ///
    /// # Errors
    /// [`crate::Error::Device`] if the host has too little memory.
    pub fn add(&mut self, cpu: &Cpu, states: &[StateUse]) -> Result<()> {
        for state in states {
            if self.hold(std::slice::from_ref(state)) {
                continue;
            }
            let frames = CpuBuffer::new(cpu, &format!("kept of {}", state.name), state.bytes())?;
            let table = match state.table {
                Bytes(0) => None,
                bytes => Some(CpuBuffer::new(cpu, &format!("kept norm of {}", state.name), bytes)?),
            };
            self.0.push(HeldState { name: state.name.clone(), frames, table });
        }
        Ok(())
    }

    /// True if all `states` of a plan are allocated.
    pub fn hold(&self, states: &[StateUse]) -> bool {
        !self.find(states).contains(&usize::MAX)
    }

    /// Returns the index of each of `states`, by name; `usize::MAX` if it is missing.
    pub(super) fn find(&self, states: &[StateUse]) -> Vec<usize> {
        let index = |state: &StateUse| self.0.iter().position(|kept| kept.name == state.name);
        states.iter().map(|state| index(state).unwrap_or(usize::MAX)).collect()
    }

    /// Returns a part of state `index`: its frames from a byte on, or its table.
    pub(super) fn part(&mut self, index: usize, part: StatePart) -> &mut [f32] {
        let state = &mut self.0[index];
        match part {
            StatePart::Frames(start) => &mut state.frames.values[usize::try_from(start / 4).unwrap_or(usize::MAX)..],
            StatePart::Table => state.table.as_mut().map_or(&mut [], |table| &mut table.values),
        }
    }
}
