//! Finds the plan that keeps a memory budget and moves least over the host's link. What a plan leaves on the host is
//! [`crate::plan::spill`]'s; this only tries sizes of chunks and scratch, and how much room to ask for.

use crate::error::{Error, Result};
use crate::kernels::choice::Choice;
use crate::limits::DeviceLimits;
use crate::plan::{Plan, PlanOptions, fuse, lower, spill};
use crate::tensor::Bytes;

impl Plan {
    /// The plan that moves least over the host's link and takes at most `budget`.
    pub(super) fn within(
        fused: &fuse::Fused,
        limits: &DeviceLimits,
        options: &PlanOptions,
        budget: Bytes,
    ) -> Result<Self> {
        // Smaller chunks seldom move less: after the first way that fits, only the next few are tried.
        const MORE: usize = 6;
        let mut best: Option<Self> = None;
        let mut smallest: Option<Bytes> = None;
        let mut more = MORE;
        for candidate in candidates(limits, options) {
            if best.is_some() {
                if more == 0 {
                    break;
                }
                more -= 1;
            }
            let Ok(nodes) = crate::plan::nodes::nodes(fused, limits, &candidate) else { continue };
            let schedule = crate::plan::schedule::Schedule::new(&nodes, &crate::plan::schedule::Keep::all(&nodes));
            let lowered = lower::lower(fused, &nodes, &schedule, limits, &candidate);
            if let Some(plan) = lowered.spilled_within(limits, options, budget)
                && best.as_ref().is_none_or(|best| plan.transfer_cost() < best.transfer_cost())
            {
                best = Some(plan);
            }
            if best.is_none() {
                let least = spill::spill(&lowered, spill::least_room(&lowered));
                let peak = least.map(|plan| plan.placed(limits, options).memory.peak());
                smallest = smallest.into_iter().chain(peak).min();
            }
        }
        best.ok_or_else(|| Error::TooLarge {
            what: "the smallest plan for this size".to_owned(),
            needed: smallest.unwrap_or_default(),
            limit: budget,
        })
    }

    /// This lowered plan with so much of it in host memory that its peak is at most `budget`.
    fn spilled_within(&self, limits: &DeviceLimits, options: &PlanOptions, budget: Bytes) -> Option<Self> {
        // More room moves less. Slots are not perfectly shared, so how much room a peak allows has to be searched for.
        const TRIES: usize = 6;
        let fitting = |room: Bytes| {
            let plan = spill::spill(self, room)?.placed(limits, options);
            (plan.memory.peak() <= budget).then_some(plan)
        };
        let (mut fits, mut exceeds) = (spill::least_room(self), budget);
        let mut best = fitting(fits)?;
        for _ in 0..TRIES {
            let room = Bytes(fits.0.midpoint(exceeds.0));
            match fitting(room) {
                Some(plan) => (best, fits) = (plan, room),
                None => exceeds = room,
            }
        }
        Some(best)
    }

    /// What the plan costs beside its arithmetic, in bytes over the host's link. A launch counts as so many bytes.
    fn transfer_cost(&self) -> u64 {
        const STEP_BYTES: u64 = 64 << 10;
        self.transferred().0 + self.steps.len() as u64 * STEP_BYTES
    }
}

/// Ways to cut a plan that has to fit a budget: ever smaller chunks, ever less scratch.
fn candidates(limits: &DeviceLimits, options: &PlanOptions) -> Vec<PlanOptions> {
    let choice = options.choice.unwrap_or_else(|| Choice::for_device(limits));
    let mut candidates = Vec::new();
    for shift in 0..5 {
        for scratch_bytes in [choice.winograd_scratch_bytes, 4 << 20, 1 << 20] {
            candidates.push(PlanOptions {
                chunk_limit: Bytes(options.chunk_limit.0 >> shift),
                choice: Some(Choice {
                    winograd_scratch_bytes: scratch_bytes.min(choice.winograd_scratch_bytes),
                    ..choice
                }),
                ..options.clone()
            });
        }
    }
    candidates
}
