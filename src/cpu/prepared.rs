//! A plan with its buffers on the host. Allocates; `executor` runs it.

use std::sync::Arc;

use super::states::ClipStates;
use super::{Cpu, CpuBuffer};
use crate::error::Result;
use crate::plan::Plan;
use crate::plan::turns::Turn;
use crate::tensor::Bytes;

/// A plan with its buffers on the host.
pub struct Prepared {
    pub(super) cpu: Cpu,
    pub(super) plan: Arc<Plan>,
    pub(super) memory: Memory,
    pub(super) picture: Option<CpuBuffer>,
    /// The part of the clip that the next run is for.
    pub(super) turn: Turn,
}

/// Everything that steps read and write.
pub(super) struct Memory {
    pub(super) slots: Vec<CpuBuffer>,
    /// One for each weight of the plan, in its order.
    pub(super) weights: Vec<Arc<CpuBuffer>>,
    pub(super) parked: Vec<CpuBuffer>,
    /// The states of the clip that the plan is for.
    pub(super) states: ClipStates,
    /// For each state of the plan, its index in `states`.
    pub(super) states_of_plan: Vec<usize>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("result", &self.plan.result)
            .field("steps", &self.plan.steps.len())
            .finish_non_exhaustive()
    }
}

impl Prepared {
    /// Allocates the plan's buffers. `weights` has one entry for each of the plan's weights, in its
    /// order.
    ///
    /// # Errors
    /// [`crate::Error::Device`], which names the buffer, if the host has too little memory.
    pub fn new(cpu: &Cpu, plan: Arc<Plan>, weights: Vec<Arc<CpuBuffer>>) -> Result<Self> {
        assert_eq!(weights.len(), plan.weights.len(), "weights of another plan");
        let (mut slots, mut parked) = (Vec::new(), Vec::new());
        for (index, bytes) in plan.slots.iter().enumerate() {
            slots.push(CpuBuffer::new(cpu, &format!("slot {index}"), *bytes)?);
        }
        for (index, bytes) in plan.parked.iter().enumerate() {
            parked.push(CpuBuffer::new(cpu, &format!("parked {index}"), *bytes)?);
        }
        let picture = match plan.memory.picture {
            Bytes(0) => None,
            bytes => Some(CpuBuffer::new(cpu, "picture", bytes)?),
        };
        let memory = Memory { slots, weights, parked, states: ClipStates::default(), states_of_plan: Vec::new() };
        Ok(Self { cpu: cpu.clone(), plan, memory, picture, turn: Turn::default() })
    }

    /// Returns the picture that the last run left, with its padded rows. `None` if the plan leaves
    /// none.
    pub fn picture(&self) -> Option<&[u8]> {
        self.picture.as_ref().map(|picture| bytemuck::cast_slice(&picture.values))
    }

    /// Sets the states of the clip, which the next run reads and writes, and its part of the clip.
    ///
    /// # Panics
    /// If `states` lacks a state of the plan, which is a bug in this crate.
    pub fn put_states(&mut self, states: ClipStates, turn: Turn) {
        self.turn = turn;
        self.memory.states_of_plan = states.find(&self.plan.states);
        assert!(!self.memory.states_of_plan.contains(&usize::MAX), "states of another clip");
        self.memory.states = states;
    }

    /// Takes out the states of the clip.
    pub fn take_states(&mut self) -> ClipStates {
        std::mem::take(&mut self.memory.states)
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}
