//! Finds the fastest plan that keeps a memory budget: how large chunks are, how much is computed again, how much waits on the host.
//!
//! For some sizes of chunks, [`crate::plan::residence`] is told to fill the budget. Where activations may be parked it is also told to fill more than
//! there is: what does not fit then waits in host memory ([`crate::plan::spill`]). Schedules are compared by the time that they predict, which is cheap;
//! only the best is lowered. What slots and parameters take beside chunks is known after that, and room is given back until the plan fits.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::kernels::choice::Choice;
use crate::kernels::winograd::TILE;
use crate::limits::DeviceLimits;
use crate::plan::fuse::{Fused, Stage};
use crate::plan::nodes::nodes;
use crate::plan::residence::{self, Residence};
use crate::plan::schedule::{Keep, Node};
use crate::plan::spill::{self, May};
use crate::plan::{Plan, PlanOptions, Weights, lower, pace};
use crate::tensor::Bytes;

/// Chunks larger than this part of a budget leave too little choice, and smaller than that too many steps.
const COARSEST: u64 = 32;
const FINEST: u64 = 1024;

/// The fastest plan found that takes at most `budget`.
///
/// # Errors
/// [`Error::Budget`] with the smallest budget that would do.
pub(super) fn within(
    fused: &Fused,
    limits: &DeviceLimits,
    options: &PlanOptions,
    whole: &Plan,
    budget: Bytes,
) -> Result<Plan> {
    // A plan this much slower than the whole one is as good as any.
    const NEAR: f64 = 1.15;
    let mut best: Option<Plan> = None;
    let mut tried_after = 0;
    for cut in cuts(fused, limits, options, budget) {
        // Smaller chunks leave more choice and cost more steps: after the first cut that fits one more is tried.
        tried_after += usize::from(best.is_some());
        let near = |best: &Plan| best.predicted_seconds() <= NEAR * whole.predicted_seconds();
        if tried_after > 1 || best.as_ref().is_some_and(near) {
            break;
        }
        let Ok(nodes) = nodes(fused, limits, &cut) else { continue };
        if let Some(plan) = fit(fused, &nodes, limits, &cut, budget)
            && best.as_ref().is_none_or(|best| plan.predicted_seconds() < best.predicted_seconds())
        {
            best = Some(plan);
        }
    }
    if let Some(plan) = best {
        return Ok(plan);
    }
    // The search is no proof: it may find a plan for a smaller budget, and always the same ones.
    let ladder = ladder(whole);
    let below = ladder.iter().filter(|step| **step < budget);
    if let Some(plan) = below.clone().find_map(|step| finest(fused, limits, options, *step)) {
        return Ok(plan);
    }
    let above = ladder.iter().rev().filter(|step| **step >= budget);
    let smallest =
        above.clone().find_map(|step| Some((*step, finest(fused, limits, options, *step)?.predicted_seconds())));
    let (smallest, seconds) = smallest.unwrap_or((whole.memory.peak(), whole.predicted_seconds()));
    Err(Error::Budget { budget, image: whole.image, smallest, seconds })
}

/// Budgets that are tried whatever was asked for, from that of the whole plan downwards.
fn ladder(whole: &Plan) -> Vec<Bytes> {
    const STEPS: usize = 40;
    std::iter::successors(Some(whole.memory.peak()), |step| Some(Bytes(step.0 - step.0 / 10))).take(STEPS).collect()
}

/// The plan for `budget` with the smallest chunks that has one.
fn finest(fused: &Fused, limits: &DeviceLimits, options: &PlanOptions, budget: Bytes) -> Option<Plan> {
    let finest = cuts(fused, limits, options, budget).into_iter().rev().take(2);
    finest.into_iter().find_map(|cut| fit(fused, &nodes(fused, limits, &cut).ok()?, limits, &cut, budget))
}

/// Ways to cut: ever smaller chunks, with as much scratch. None smaller than the fewest rows of the widest tensor, so that all chunks are of about one
/// size and can take each other's place.
fn cuts(fused: &Fused, limits: &DeviceLimits, options: &PlanOptions, budget: Bytes) -> Vec<PlanOptions> {
    let outputs = fused.stages.iter().filter_map(Stage::output).map(|output| fused.shape(output));
    let rows = outputs.map(|shape| u64::from(shape.width) * u64::from(shape.channels4()) * u64::from(TILE));
    let least = rows.max().unwrap_or_default() * options.storage.vec4_bytes();
    let choice = options.choice(limits);
    let mut cuts = Vec::new();
    let mut part = COARSEST;
    while part <= FINEST {
        let chunk = (budget.0 / part).max(least).min(options.chunk_limit.0);
        let scratch = (budget.0 / COARSEST / 2).min(choice.winograd_scratch_bytes).max(1 << 16);
        cuts.push(PlanOptions {
            chunk_limit: Bytes(chunk),
            choice: Some(Choice { winograd_scratch_bytes: scratch, ..choice }),
            ..options.clone()
        });
        part *= 2;
    }
    cuts.dedup();
    cuts
}

/// The plan of one cut that keeps `budget`, if there is one.
fn fit(fused: &Fused, nodes: &[Node], limits: &DeviceLimits, cut: &PlanOptions, budget: Bytes) -> Option<Plan> {
    const TRIES: usize = 5;
    // Parameters, staging, and what slots lose: the first plan says how much it is.
    let mut room = budget.0 - budget.0 / 16;
    if cut.weights == Weights::Device {
        room = room.checked_sub(nodes.iter().map(|node| node.weights).sum())?;
    }
    for _ in 0..TRIES {
        if room < least_room(nodes, cut) {
            return None;
        }
        let residence = cheapest(nodes, limits, cut, room)?;
        let lowered = lower::lower(fused, nodes, &residence.schedule, limits, cut).ok()?;
        let spilled = if cut.parking || cut.weights == Weights::Host {
            let may = May { park: cut.parking, weights: cut.weights };
            spill::spill(lowered, Bytes(room), may)
        } else {
            Some(lowered)
        };
        let Some(plan) = spilled else {
            // Something that must stay exceeds the room by an unknown amount.
            room -= room / 32;
            continue;
        };
        let plan = plan.placed(limits, cut);
        let peak = plan.memory.peak();
        if peak <= budget {
            return Some(plan);
        }
        room = room.checked_sub((peak.0 - budget.0) + (peak.0 - budget.0) / 8)?;
    }
    None
}

/// Bytes that no plan of `nodes` does without, so that nobody searches for one with less. Where activations may be parked, what one launch binds; where they
/// may not, what a stage takes while it computes its first chunk.
fn least_room(nodes: &[Node], cut: &PlanOptions) -> u64 {
    let chunk =
        |stage: usize, index: usize| u64::from(nodes[stage].partition.chunk(index).count()) * nodes[stage].row_bytes;
    let least = |(stage, node): (usize, &Node)| {
        let scratch = node.scratch;
        if cut.parking {
            return (scratch.v + scratch.m + scratch.filter_part).max(chunk(stage, 0));
        }
        let read: BTreeSet<(usize, usize)> =
            node.reads.iter().flat_map(|read| read.spans[0].clone().map(|index| (read.stage, index))).collect();
        let read: u64 = read.into_iter().map(|(stage, index)| chunk(stage, index)).sum();
        let weights = if cut.weights == Weights::Host { node.weights } else { 0 };
        let own = if node.replaces.is_none() { chunk(stage, 0) } else { 0 };
        scratch.without_filters() + scratch.filters + weights + read + own
    };
    nodes.iter().enumerate().map(least).max().unwrap_or_default()
}

/// The schedule that promises to be fastest with `room` bytes; where parking is allowed, one that takes more may be.
fn cheapest(nodes: &[Node], limits: &DeviceLimits, cut: &PlanOptions, room: u64) -> Option<Residence> {
    let whole = Keep::whole(nodes);
    let own = residence::within(nodes, whole.clone(), cut, room);
    if !cut.parking {
        return own;
    }
    let more =
        [room + room / 2, room * 3].into_iter().filter_map(|room| residence::within(nodes, whole.clone(), cut, room));
    let all = Residence::new(nodes, &whole, cut);
    let seconds = |residence: &Residence| {
        // What exceeds the room in a pass goes to the host and comes back.
        let moved = residence.excess(room) * 2;
        pace::seconds(limits.kind, residence.macs, residence.schedule.tasks.len() * STEPS_PER_TASK, Bytes(moved))
    };
    let ways = own.into_iter().chain(more).chain([all]);
    ways.min_by(|left, right| seconds(left).total_cmp(&seconds(right)))
}

/// About so many steps compute a chunk.
const STEPS_PER_TASK: usize = 6;
