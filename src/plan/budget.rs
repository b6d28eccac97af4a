//! Finds the fastest plan that keeps a memory budget: how large chunks are, how much is computed
//! again, how much waits on the host.
//!
//! For some sizes of chunks, [`crate::plan::residence`] is told to fill the budget. Where
//! activations may be parked it is also told to fill more than there is: what does not fit then
//! waits in host memory ([`crate::plan::spill`]). Schedules are compared by the time that they
//! predict, which is cheap; only the best is lowered. What slots and parameters take beside chunks
//! is known after that, and room is given back until the plan fits.
//!
//! # Budgets are monotone
//!
//! That search follows the budget, so it may find a plan for 32 MiB and none for 33. A second
//! search, [`Search::smallest`], never sees the budget. It tries a fixed list of rooms in large
//! chunks, and then bisects budgets for small chunks, from the smallest peak so far downwards. The
//! smallest peak that it finds is the smallest budget there is.
//!
//! 1. A budget is accepted if, and only if, it is at least the smallest peak: what fits a budget
//!    fits all larger ones.
//! 2. No plan with a peak below the smallest is returned, so every peak that is reported is itself
//!    a budget that is accepted.
//! 3. The smallest peak is the peak of a plan that was made, so it is accepted, and one byte less
//!    is not.
//!
//! Most acceptances do not need the smallest peak. One plan of the second search that takes no more
//! than the plan to be returned shows that the smallest peak is no larger, either, and
//! [`Search::smallest`] ends with that.
//!
//! Every search has an [`Allowance`], counted in chunks looked at and steps lowered, so that a
//! budget that cannot be kept, or an odd network, ends as soon as any.

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
use crate::plan::{BufferUse, Memory, Plan, PlanOptions, Step, Weights, lower, pace};
use crate::tensor::Bytes;

/// Chunks larger than this part of a budget leave too little choice, and smaller than that too many
/// steps.
const COARSEST: u64 = 32;
const FINEST: u64 = 1024;
/// How many rooms are tried for the smallest peak, each a fifth smaller than the one before.
const ROOMS: usize = 24;
/// Then budgets are bisected down to this part of the smallest peak so far,
const MOST_SMALLER: u64 = 16;
/// until one with a plan and one without are apart by this part.
const NEAREST: u64 = 24;

/// Finds the fastest plan that takes at most `budget`. See the text of the module.
///
/// # Errors
/// [`Error::Budget`] with the smallest peak, where that is beyond `budget`. Those of [`Plan::new`]
/// when there is no plan at all.
pub(super) fn within(
    fused: &Fused,
    limits: &DeviceLimits,
    options: &PlanOptions,
    whole: &Plan,
    budget: Bytes,
) -> Result<Plan> {
    let mut search = Search { fused, limits, options, allowance: Allowance::new(whole) };
    let fastest = search.fastest(whole, budget);
    let enough = fastest.as_ref().map_or(budget, |plan| plan.memory.peak());
    let smallest = search.smallest(whole, enough);
    let peak = smallest.as_ref().map(|plan| plan.memory.peak());
    match (fastest, smallest) {
        (Some(fastest), _) if peak.is_some_and(|peak| peak <= enough) => Ok(fastest),
        (_, Some(smallest)) if peak.is_some_and(|peak| peak <= budget) => Ok(smallest),
        (_, smallest) => {
            let smaller = smallest.as_ref().filter(|plan| plan.memory.peak() <= whole.memory.peak());
            if smaller.is_none() {
                whole.check(limits)?;
            }
            let smallest = smaller.unwrap_or(whole);
            let (smallest, seconds) = (smallest.memory.peak(), smallest.predicted_seconds());
            let image = [whole.input().size, whole.result.size].into_iter().max_by_key(|size| size.pixels());
            Err(Error::Budget { budget, image: image.unwrap_or(whole.result.size), smallest, seconds })
        }
    }
}

/// A search for plans of one decode. Ends when it has done what it may: what it has found by then
/// counts.
struct Search<'a> {
    fused: &'a Fused,
    limits: &'a DeviceLimits,
    options: &'a PlanOptions,
    allowance: Allowance,
}

impl Search<'_> {
    /// The fastest plan found for `budget`.
    fn fastest(&mut self, whole: &Plan, budget: Bytes) -> Option<Plan> {
        // A plan this much slower than the whole one is as good as any.
        const NEAR: f64 = 1.15;
        let mut best: Option<Plan> = None;
        let mut tried_after = 0;
        for cut in cuts(self.fused, self.limits, self.options, budget) {
            // Smaller chunks leave more choice and cost more steps: after the first cut that fits
            // one more is tried.
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

    /// Finds the plan with the smallest peak; or, as soon as it is found, one that takes at most
    /// `enough`. What counts follows from `whole` alone.
    fn smallest(&mut self, whole: &Plan, enough: Bytes) -> Option<Plan> {
        let mut smallest = Smallest { plan: None, enough };
        let next = |room: &u64| Some(room - room / 5);
        let mut rooms: Vec<u64> = std::iter::successors(Some(whole.memory.slots.0), next).take(ROOMS).collect();
        // Those likely to be small enough come first. The order decides nothing: each has its own
        // allowance, and no plan takes less than its room.
        rooms.sort_by_key(|room| room.abs_diff(enough.0 / 8 * 5));
        for room in rooms {
            self.allowance = Allowance(Allowance::new(whole).0 / 16);
            if room < smallest.peak(whole) && self.squeezed(room).is_some_and(|plan| smallest.take(plan)) {
                return smallest.plan;
            }
        }
        self.allowance = Allowance::new(whole);
        let mut high = smallest.peak(whole);
        let mut low = high / MOST_SMALLER;
        // The plan for a budget may take less than another budget for which none was found.
        while high > low + high / NEAREST {
            let budget = geometric_mean(low, high);
            match self.finest(Bytes(budget)) {
                Some(plan) => {
                    high = plan.memory.peak().0;
                    if smallest.take(plan) {
                        break;
                    }
                }
                None => low = budget,
            }
        }
        smallest.plan
    }

    /// The plan for `budget` with the smallest chunks that has one.
    fn finest(&mut self, budget: Bytes) -> Option<Plan> {
        let finest = cuts(self.fused, self.limits, self.options, budget).into_iter().rev().take(2);
        finest.into_iter().find_map(|cut| self.fit(&cut, budget, f64::INFINITY))
    }

    /// The plan in large chunks that is scheduled and spilled for `room`, if there is one and it
    /// takes no less.
    fn squeezed(&mut self, room: u64) -> Option<Plan> {
        let cut = cut(self.fused, self.limits, self.options, Bytes(room * 2), COARSEST);
        let nodes = nodes(self.fused, self.limits, &cut).ok()?;
        if room < least_room(&nodes, &cut) {
            return None;
        }
        let start = Start::whole(&nodes, &cut, &mut self.allowance)?;
        let residence = self.cheapest(&nodes, &cut, &start, room - room / 8)?;
        let mut lowered = self.lower(&nodes, residence.schedule, &cut, None)?;
        if !lowered.spill(&cut, room) {
            return None;
        }
        lowered.plan.place(self.limits, &cut);
        let counts = lowered.plan.memory.peak().0 >= room && lowered.plan.check(self.limits).is_ok();
        counts.then_some(lowered.plan)
    }

    /// The plan of one cut that keeps `budget` and should take less than `most` seconds, if there
    /// is one.
    fn fit(&mut self, cut: &PlanOptions, budget: Bytes, most: f64) -> Option<Plan> {
        const TRIES: usize = 5;
        let nodes = &nodes(self.fused, self.limits, cut).ok()?;
        // Parameters, staging, and what slots lose: the first plan says how much it is.
        let mut room = budget.0 - budget.0 / 16;
        if cut.weights == Weights::Device {
            room = room.checked_sub(nodes.iter().map(|node| node.weights).sum())?;
        }
        // What the schedule may take. Less than `room`, where something that must stay would exceed
        // that.
        let mut scheduled = room;
        let least = least_room(nodes, cut);
        let mut before = None;
        let mut spilled = true;
        let mut whole = None;
        for _ in 0..TRIES {
            if scheduled < least {
                return None;
            }
            if whole.is_none() {
                whole = Start::whole(nodes, cut, &mut self.allowance);
            }
            let residence = self.cheapest(nodes, cut, whole.as_ref()?, scheduled)?;
            // What one step uses was too much for all of the room, and would be again.
            if !spilled && before.as_ref().is_some_and(|before: &Lowered| before.schedule == residence.schedule) {
                return None;
            }
            let mut lowered = self.lower(nodes, residence.schedule, cut, before.take())?;
            spilled = lowered.spill(cut, room);
            if !spilled {
                scheduled -= scheduled / 8;
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
            room = less_room(room, &lowered.plan.memory, budget)?;
            before = Some(lowered);
            scheduled = scheduled.min(room);
        }
        None
    }

    /// The schedule that promises to be fastest with `room` bytes, of those that begin with `all`,
    /// which keeps everything; where parking is allowed, one that takes more may be.
    fn cheapest(&mut self, nodes: &[Node], cut: &PlanOptions, all: &Start, room: u64) -> Option<Residence> {
        let mut within = |room| residence::within(nodes, all, cut, room, &mut self.allowance);
        let own = within(room);
        if !cut.parking {
            return own;
        }
        let more = [room.saturating_add(room / 2), room.saturating_mul(3)].map(within);
        let seconds = |residence: &Residence| {
            // What exceeds the room in a pass goes to the host and comes back.
            let moved = residence.excess(room) * 2;
            let steps = residence.schedule.tasks.len() * STEPS_PER_TASK;
            pace::seconds(self.limits.kind, residence.schedule.macs, steps, Bytes(moved))
        };
        let ways = own.into_iter().chain(more.into_iter().flatten()).chain([all.residence.clone()]);
        ways.min_by(|left, right| seconds(left).total_cmp(&seconds(right)))
    }

    /// The lowered plan of `schedule`: that of the try `before`, which had a little more room,
    /// where nothing else is kept.
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

/// The plan with the smallest peak so far.
struct Smallest {
    plan: Option<Plan>,
    /// A peak that is small enough.
    enough: Bytes,
}

impl Smallest {
    /// The smallest peak so far: that of `whole` before there is a smaller one.
    fn peak(&self, whole: &Plan) -> u64 {
        let peaks = self.plan.iter().chain([whole]).map(|plan| plan.memory.peak().0);
        peaks.min().unwrap_or_default()
    }

    /// Keeps `plan` if its peak is smaller. True if it is small enough.
    fn take(&mut self, plan: Plan) -> bool {
        let peak = plan.memory.peak();
        if self.plan.as_ref().is_none_or(|smallest| peak < smallest.memory.peak()) {
            self.plan = Some(plan);
        }
        peak <= self.enough
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
    /// Makes the plan, with everything on the host that has to be there to keep `room` bytes. False
    /// if that is not enough.
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

/// What of `room` to try next, where plans of it take `memory` and may take `budget`: slots lose
/// between a hundredth and half of their bytes to what lies in them at other times, and about as
/// much of less.
fn less_room(room: u64, memory: &Memory, budget: Bytes) -> Option<u64> {
    let slots = memory.slots.0;
    let wanted = slots.checked_sub(memory.peak().0.checked_sub(budget.0)?)?;
    let room = u64::try_from(u128::from(room) * u128::from(wanted) / u128::from(slots.max(1))).ok()?;
    Some(room - room / 24)
}

/// Ways to cut for `budget`: ever smaller chunks, with as much scratch.
fn cuts(fused: &Fused, limits: &DeviceLimits, options: &PlanOptions, budget: Bytes) -> Vec<PlanOptions> {
    let parts = std::iter::successors(Some(COARSEST), |part| Some(part * 2)).take_while(|part| *part <= FINEST);
    let mut cuts: Vec<_> = parts.map(|part| cut(fused, limits, options, budget, part)).collect();
    cuts.dedup();
    cuts
}

/// Chunks of so small a `part` of `budget`. Not smaller than the fewest rows of the widest tensor,
/// so that all chunks are of about one size and can take each other's place.
fn cut(fused: &Fused, limits: &DeviceLimits, options: &PlanOptions, budget: Bytes, part: u64) -> PlanOptions {
    let outputs = fused.stages.iter().filter_map(Stage::output).map(|output| fused.shape(output));
    let rows = outputs.map(|shape| u64::from(shape.width) * u64::from(shape.pixel4()) * u64::from(ROW_STEP));
    let least = rows.max().unwrap_or_default() * options.storage.vec4_bytes();
    let choice = options.choice(limits);
    let chunk = (budget.0 / part).max(least).min(options.chunk_limit.0);
    let scratch = (budget.0 / COARSEST / 2).min(choice.winograd_scratch_bytes).max(1 << 16);
    let choice = Some(Choice { winograd_scratch_bytes: scratch, ..choice });
    PlanOptions { chunk_limit: Bytes(chunk), choice, ..options.clone() }
}

fn geometric_mean(low: u64, high: u64) -> u64 {
    u64::try_from((u128::from(low) * u128::from(high)).isqrt()).unwrap_or(high)
}

/// Bytes that no plan of `nodes` does without, so that nobody searches for one with less. Where
/// activations may be parked, what one launch binds; where they may not, what a stage takes while
/// it computes its first chunk.
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
            let mut search =
                Search { fused: &fused, limits: &limits, options: &options, allowance: Allowance(allowance) };
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
