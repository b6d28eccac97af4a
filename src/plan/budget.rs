//! Finds the fastest plan that keeps a memory budget: how large chunks are, how much is computed again, how much waits on the host.
//!
//! For some sizes of chunks, [`crate::plan::residence`] is told to fill the budget. Where activations may be parked it is also told to fill more than
//! there is: what does not fit then waits in host memory ([`crate::plan::spill`]). Schedules are compared by the time that they predict, which is cheap;
//! only the best is lowered. What slots and parameters take beside chunks is known after that, and room is given back until the plan fits.
//!
//! All of it has an [`Allowance`], counted in chunks looked at and steps lowered, so that a budget that cannot be kept, or an odd network, ends as soon as any.
//! Where no plan was found, the smallest budget that has one is looked for with another: an error names what that finds.

use crate::error::{Error, Result};
use crate::kernels::choice::Choice;
use crate::limits::DeviceLimits;
use crate::ordered::Ordered as _;
use crate::plan::bounds::{self, Allowance};
use crate::plan::fused::{Fused, Stage};
use crate::plan::node::Node;
use crate::plan::nodes::nodes;
use crate::plan::partition::ROW_STEP;
use crate::plan::residence::{self, Residence, Start};
use crate::plan::schedule::Schedule;
use crate::plan::spill::{self, May};
use crate::plan::{BufferUse, Plan, PlanOptions, Step, Weights, lower, pace};
use crate::tensor::Bytes;

/// Chunks larger than this part of a budget leave too little choice, and smaller than that too many steps.
const COARSEST: u64 = 32;
const FINEST: u64 = 1024;

/// The fastest plan found that takes at most `budget`.
///
/// # Errors
/// [`Error::Budget`] with the smallest budget for which a plan was found. Those of [`Plan::new`] when there is none without a budget, either.
pub(super) fn within(
    fused: &Fused,
    limits: &DeviceLimits,
    options: &PlanOptions,
    whole: &Plan,
    budget: Bytes,
) -> Result<Plan> {
    // The search is no proof: where it finds nothing it may find a plan for a smaller budget.
    const NEXT: usize = 2;
    let ladder = ladder(whole);
    let below = || ladder.iter().copied().filter(|step| *step < budget);
    let mut search = Search { fused, limits, options, allowance: Allowance::new(whole), failed: Vec::new() };
    let found = search.fastest(whole, budget);
    if let Some(plan) = found.or_else(|| below().take(NEXT).find_map(|step| search.finest(step))) {
        return Ok(plan);
    }
    // With an allowance of its own, so that it does not depend on what was asked for.
    search.allowance = Allowance::new(whole);
    match search.smallest(&ladder) {
        Some(smallest) if smallest.memory.peak() <= budget => {
            let mut between = below().skip(NEXT).filter(|step| *step >= smallest.memory.peak());
            Ok(between.find_map(|step| search.finest(step)).unwrap_or(smallest))
        }
        smallest => {
            if smallest.is_none() {
                whole.check(limits)?;
            }
            let least = smallest.as_ref().unwrap_or(whole);
            let (smallest, seconds) = (least.memory.peak(), least.predicted_seconds());
            let image = [whole.input().size, whole.result.size].into_iter().max_by_key(|size| size.pixels());
            Err(Error::Budget { budget, image: image.unwrap_or(whole.result.size), smallest, seconds })
        }
    }
}

/// Budgets that are tried whatever was asked for, from that of the whole plan downwards.
fn ladder(whole: &Plan) -> Vec<Bytes> {
    const STEPS: usize = 40;
    std::iter::successors(Some(whole.memory.peak()), |step| Some(Bytes(step.0 - step.0 / 10))).take(STEPS).collect()
}

/// A search for plans of one decode. Ends when it has done what it may: what it has found by then counts.
struct Search<'a> {
    fused: &'a Fused,
    limits: &'a DeviceLimits,
    options: &'a PlanOptions,
    allowance: Allowance,
    /// Budgets for which [`Self::finest`] found none, though it might have gone on, and how many looks that took.
    failed: Vec<(Bytes, u64)>,
}

impl Search<'_> {
    /// The fastest plan found for `budget`.
    fn fastest(&mut self, whole: &Plan, budget: Bytes) -> Option<Plan> {
        // A plan this much slower than the whole one is as good as any.
        const NEAR: f64 = 1.15;
        let mut best: Option<Plan> = None;
        let mut tried_after = 0;
        for cut in cuts(self.fused, self.limits, self.options, budget) {
            // Smaller chunks leave more choice and cost more steps: after the first cut that fits one more is tried.
            tried_after += usize::from(best.is_some());
            let near = |best: &Plan| best.predicted_seconds() <= NEAR * whole.predicted_seconds();
            if tried_after > 1 || best.as_ref().is_some_and(near) {
                break;
            }
            let most = best.as_ref().map_or(f64::INFINITY, Plan::predicted_seconds);
            if let Some(plan) = self.fit(&cut, budget, most) {
                best = Some(plan);
            }
        }
        best
    }

    /// The plan for the smallest step of `ladder` that was found to have one, by bisection: larger steps mostly have one, too.
    fn smallest(&mut self, ladder: &[Bytes]) -> Option<Plan> {
        let (mut found, mut above, mut below) = (None, 0, ladder.len());
        while below - above > 1 {
            let middle = usize::midpoint(above, below);
            match self.finest(ladder[middle]) {
                Some(plan) => (found, above) = (Some(plan), middle),
                None => below = middle,
            }
        }
        // Between steps with a plan there may be one without.
        let beyond = ladder.iter().skip(below + 1).take(2).find_map(|step| self.finest(*step));
        beyond.or(found)
    }

    /// The plan for `budget` with the smallest chunks that has one.
    fn finest(&mut self, budget: Bytes) -> Option<Plan> {
        if let Some((_, looks)) = self.failed.iter().find(|(failed, _)| *failed == budget) {
            // As if it were done again, so that what follows is the same.
            self.allowance.count_looks(*looks);
            return None;
        }
        let before = self.allowance.0;
        let finest = cuts(self.fused, self.limits, self.options, budget).into_iter().rev().take(2);
        let found = finest.into_iter().find_map(|cut| self.fit(&cut, budget, f64::INFINITY));
        if found.is_none() && self.allowance.0 > 0 {
            self.failed.push((budget, before - self.allowance.0));
        }
        found
    }

    /// The plan of one cut that keeps `budget` and should take less than `most` seconds, if there is one.
    fn fit(&mut self, cut: &PlanOptions, budget: Bytes, most: f64) -> Option<Plan> {
        const TRIES: usize = 5;
        let nodes = &nodes(self.fused, self.limits, cut).ok()?;
        // Parameters, staging, and what slots lose: the first plan says how much it is.
        let mut room = budget.0 - budget.0 / 16;
        if cut.weights == Weights::Device {
            room = room.checked_sub(nodes.iter().map(|node| node.weights).sum())?;
        }
        // What the schedule may take. Less than `room`, where something that must stay would exceed that.
        let mut scheduled = room;
        let least = least_room(nodes, cut);
        let mut before = None;
        let mut whole = None;
        for _ in 0..TRIES {
            if scheduled < least {
                return None;
            }
            if whole.is_none() {
                whole = Start::whole(nodes, cut, &mut self.allowance);
            }
            let residence = self.cheapest(nodes, cut, whole.as_ref()?, scheduled)?;
            let mut lowered = self.lower(nodes, residence.schedule, cut, before.take())?;
            if !lowered.spill(cut, room) {
                scheduled -= scheduled / 32;
                before = Some(lowered);
                continue;
            }
            // Less room makes nothing faster.
            if lowered.plan.predicted_seconds() >= most {
                return None;
            }
            lowered.plan.place(self.limits, cut);
            self.allowance.count_places(&lowered.plan);
            let peak = lowered.plan.memory.peak();
            if peak <= budget {
                return lowered.plan.check(self.limits).is_ok().then_some(lowered.plan);
            }
            before = Some(lowered);
            let excess = peak.0 - budget.0;
            room = room.checked_sub(excess + excess / 8)?;
            scheduled = scheduled.min(room);
        }
        None
    }

    /// The schedule that promises to be fastest with `room` bytes, of those that begin with `all`, which keeps everything; where parking is allowed, one that takes
    /// more may be.
    fn cheapest(&mut self, nodes: &[Node], cut: &PlanOptions, all: &Start, room: u64) -> Option<Residence> {
        let mut within = |room| residence::within(nodes, all, cut, room, &mut self.allowance);
        let own = within(room);
        if !cut.parking {
            return own;
        }
        let more = [room + room / 2, room * 3].map(within);
        let seconds = |residence: &Residence| {
            // What exceeds the room in a pass goes to the host and comes back.
            let moved = residence.excess(room) * 2;
            let steps = residence.schedule.tasks.len() * STEPS_PER_TASK;
            pace::seconds(self.limits.kind, residence.schedule.macs, steps, Bytes(moved))
        };
        let ways = own.into_iter().chain(more.into_iter().flatten()).chain([all.residence.clone()]);
        ways.min_by(|left, right| seconds(left).total_cmp(&seconds(right)))
    }

    /// The lowered plan of `schedule`: that of the try `before`, which had a little more room, where nothing else is kept.
    fn lower(
        &mut self,
        nodes: &[Node],
        schedule: Schedule,
        cut: &PlanOptions,
        before: Option<Lowered>,
    ) -> Option<Lowered> {
        if let Some(before) = before.filter(|before| before.schedule == schedule) {
            self.allowance.count_steps(before.steps.len());
            return Some(before);
        }
        let lowered = lower::lower(self.fused, nodes, &schedule, self.limits, cut);
        self.allowance.count_steps(lowered.as_ref().map_or(bounds::MOST_STEPS, |plan| plan.steps.len()));
        let mut plan = lowered.ok()?;
        let (steps, buffers) = (std::mem::take(&mut plan.steps), std::mem::take(&mut plan.buffers));
        Some(Lowered { schedule, steps, buffers, plan })
    }
}

/// What was lowered of a schedule, and the plan that it becomes.
struct Lowered {
    schedule: Schedule,
    steps: Vec<Step>,
    buffers: Vec<BufferUse>,
    plan: Plan,
}

impl Lowered {
    /// Makes the plan, with everything on the host that has to be there to keep `room` bytes. False if that is not enough.
    fn spill(&mut self, cut: &PlanOptions, room: u64) -> bool {
        let may = May { park: cut.parking, weights: cut.weights };
        if may.park || may.weights == Weights::Host {
            return spill::spill(&mut self.plan, &self.steps, &self.buffers, Bytes(room), may).is_some();
        }
        self.plan.steps.clone_from(&self.steps);
        self.plan.buffers.clone_from(&self.buffers);
        true
    }
}

/// Ways to cut: ever smaller chunks, with as much scratch. None smaller than the fewest rows of the widest tensor, so that all chunks are of about one
/// size and can take each other's place.
fn cuts(fused: &Fused, limits: &DeviceLimits, options: &PlanOptions, budget: Bytes) -> Vec<PlanOptions> {
    let outputs = fused.stages.iter().filter_map(Stage::output).map(|output| fused.shape(output));
    let rows = outputs.map(|shape| u64::from(shape.width) * u64::from(shape.pixel4()) * u64::from(ROW_STEP));
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
        let read = node.reads.iter().flat_map(|read| read.spans[0].clone().map(|index| (read.stage, index))).into_set();
        let read: u64 = read.into_iter().map(|(stage, index)| chunk(stage, index)).sum();
        let weights = if cut.weights == Weights::Host { node.weights } else { 0 };
        let own = if node.replaces.is_none() { chunk(stage, 0) } else { 0 };
        scratch.without_filters() + scratch.filters + weights + read + own
    };
    nodes.iter().enumerate().map(least).max().unwrap_or_default()
}

/// About so many steps compute a chunk.
const STEPS_PER_TASK: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::config::Family;
    use crate::model::networks::decoder;
    use crate::plan::{Output, fuse};
    use crate::tensor::{Size, Storage};

    #[test]
    fn a_search_ends_when_it_has_done_what_it_may() {
        let config = Family::find("sd15").expect("a published one").config();
        let graph = decoder(&config, Size { width: 32, height: 32 }, false);
        let (fused, limits) = (fuse::fuse(&graph, 1.0), DeviceLimits::webgpu_default());
        let options = PlanOptions { weights: Weights::Host, ..PlanOptions::new(Storage::F32, Output::Rgba8) };
        let whole = Plan::of(&fused, &limits, &options).expect("without a budget");
        let budget = Bytes(whole.memory.peak().0 / 3 * 2);
        let found = |allowance| {
            let mut search = Search {
                fused: &fused,
                limits: &limits,
                options: &options,
                allowance: Allowance(allowance),
                failed: Vec::new(),
            };
            let plan = search.fastest(&whole, budget);
            assert!(plan.as_ref().is_none_or(|plan| plan.memory.peak() <= budget), "beyond {budget}");
            (plan.is_some(), allowance - search.allowance.0)
        };
        let (is_found, needed) = found(u64::MAX);
        assert!(is_found && needed < Allowance::new(&whole).0 / 4, "{needed} looks");
        // Fewer than one schedule takes.
        assert_eq!(found(64), (false, 64));
        assert_eq!(found(needed), (true, needed));
    }
}
