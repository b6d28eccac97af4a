//! Finds the fastest plan within a memory budget: how large chunks are, how much is recomputed, and
//! how much waits on the host.
//!
//! For some sizes of chunks, the search asks [`crate::plan::retention`] to fill the budget. If
//! activations may be parked, it also asks for retentions that fill more than there is:
//! [`crate::plan::spill`] then moves the rest to host memory. The search compares schedules by
//! their predicted time, which is cheap, and lowers only the best one. Only lowering shows how much
//! parameters add. If activations may be parked, slots take what is left; otherwise the search
//! reduces the room until the plan fits.
//!
//! # Budgets are monotone
//!
//! The first search follows the budget, so it may find a plan for 32 MiB and none for 33. A second
//! search, [`Search::smallest`], does not depend on the budget. It tries a fixed list of rooms with
//! large chunks. Then it bisects budgets with small chunks, from the smallest peak so far
//! downwards. The smallest peak that it finds is the smallest budget that planning accepts.
//!
//! 1. Planning accepts a budget if, and only if, it is at least the smallest peak. So what fits a
//!    budget fits all larger ones.
//! 2. Planning returns no plan with a peak below the smallest. So every peak that it reports is
//!    itself an accepted budget.
//! 3. The smallest peak is the peak of a plan that was made. So planning accepts it, and rejects
//!    one byte less.
//!
//! Where activations may be parked, a budget that is rejected is searched for without parking, too,
//! so the smaller of two smallest peaks counts. This search is left out where the smallest peak is
//! below what any search without parking has found.
//!
//! Most budgets are accepted without the exact smallest peak. It is enough that the second search
//! finds one plan that takes no more than the plan to be returned: then the smallest peak is no
//! larger either. [`Search::smallest`] stops there.
//!
//! Every search has a [`WorkLimit`], counted in looks at chunks and steps lowered. So the search
//! for an impossible budget, or for an unusual network, ends as early as any other.

use crate::error::{Error, Result};
use crate::kernels::choice::KernelChoice;
use crate::limits::DeviceLimits;
use crate::ordered::{Set, by_key};
use crate::plan::bounds::{self, WorkLimit};
use crate::plan::device_class::DeviceClass;
use crate::plan::fused::{Fused, Stage};
use crate::plan::least::Least;
use crate::plan::node::{Node, Shared};
use crate::plan::nodes::nodes;
use crate::plan::ops::band_frames;
use crate::plan::options::MAY_MOVE;
use crate::plan::partition::ROW_STEP;
use crate::plan::places::Places;
use crate::plan::retention::{self, Held, Retention, Start};
use crate::plan::schedule::{self, Schedule};
use crate::plan::slots;
use crate::plan::spill::{self, May, Unplaced};
use crate::plan::uses::Uses;
use crate::plan::{BufferUse, Memory, Plan, PlanOptions, Step, liveness, lower, memory};
use crate::tensor::Bytes;

/// Largest chunk is the budget divided by `COARSEST`: larger chunks leave too little choice.
/// Smallest chunk is the budget divided by `FINEST`: smaller chunks need too many steps. Where
/// activations may be parked, chunks are smaller, down to half of these sizes.
const COARSEST: u64 = 32;
const FINEST: u64 = 1024;
/// Parts of the budget for bands. Large ones keep a GPU busy; small ones leave more to chunks, so
/// that less is computed again.
const LARGE_BANDS: u64 = 16;
const SMALL_BANDS: u64 = 64;
/// Least number of rooms tried for the smallest peak. Each is a fifth smaller than the one before.
const ROOMS: usize = 24;
/// Lower end of the bisection of budgets: the smallest peak so far divided by this.
const MOST_SMALLER: u64 = 16;
/// A smallest peak below the whole plan's, divided by this, is not searched for without parking: of
/// 1,390 decodes and encodes of 64x64 to 640x768 pixels, none took less than a twelfth without it.
const LEAST_UNPARKED: u64 = 16;
/// The bisection ends when its two ends differ by at most the upper end divided by this.
const NEAREST: u64 = 24;

/// Finds the fastest plan that takes at most `budget`. See the module's text.
///
/// # Errors
/// [`Error::Budget`] with the smallest peak, if that is above `budget`; the errors of [`Plan::new`]
/// if there is no plan at all.
pub(super) fn within(
    fused: &Fused,
    limits: &DeviceLimits,
    options: &PlanOptions,
    whole: &Plan,
    budget: Bytes,
) -> Result<Plan> {
    let unparked = PlanOptions { parking: false, ..options.clone() };
    let streams = nodes(fused, limits, options).is_ok_and(|nodes| schedule::streams(&nodes));
    let spare = if streams { 2 } else { 1 };
    let of = |options| Search { fused, limits, options, spare, work_limit: WorkLimit::new(whole) };
    let most = whole.memory.peak();
    let mut found = of(options).within(whole, budget);
    let peak = found.as_ref().map_or(most, |plan| plan.memory.peak().min(most));
    if options.parks() && peak > budget && peak.0 > most.0 / LEAST_UNPARKED {
        // Slots that are chosen before their buffers may lose more than parking gains, mostly for
        // small images.
        let smallest = of(&unparked).smallest(whole, budget).filter(|plan| plan.memory.peak() < peak);
        found = match &smallest {
            Some(plan) if plan.memory.peak() <= budget => of(&unparked).within(whole, budget),
            Some(_) => smallest,
            None => found,
        };
    }
    let smaller = found.filter(|plan| plan.memory.peak() <= most.max(budget));
    if smaller.is_none() {
        whole.check(limits)?;
    }
    let plan = smaller.as_ref().unwrap_or(whole);
    let (smallest, seconds) = (plan.memory.peak(), plan.predicted_seconds());
    if let Some(plan) = smaller.filter(|plan| plan.memory.peak() <= budget) {
        return Ok(plan);
    }
    let image = [whole.input().size, whole.result.size].into_iter().max_by_key(|size| size.pixels());
    Err(Error::Budget { budget, image: image.unwrap_or(whole.result.size), smallest, seconds })
}

/// A search for plans of one decode. It ends when its work limit is used up, with the best plan
/// found until then.
struct Search<'a> {
    fused: &'a Fused,
    limits: &'a DeviceLimits,
    options: &'a PlanOptions,
    /// A plan counts if it takes at least its room, divided by this. Where one pass makes nearly
    /// everything, its weights are counted together but seldom there together.
    spare: u64,
    work_limit: WorkLimit,
}

impl Search<'_> {
    /// Returns a fast plan that takes at most `budget`, or else the plan with the smallest peak.
    fn within(&mut self, whole: &Plan, budget: Bytes) -> Option<Plan> {
        // The search for one budget may lead nowhere where that for a smaller one finds a way.
        let tried = [budget.0, budget.0 - budget.0 / 16, budget.0 - budget.0 / 8];
        let fastest = tried.into_iter().find_map(|budget| self.fastest(whole, Bytes(budget)));
        let enough = fastest.as_ref().map_or(budget, |plan| plan.memory.peak());
        let smallest = self.smallest(whole, enough)?;
        if smallest.memory.peak() <= enough { fastest.or(Some(smallest)) } else { Some(smallest) }
    }

    /// Returns the fastest plan found for `budget`.
    fn fastest(&mut self, whole: &Plan, budget: Bytes) -> Option<Plan> {
        // A plan that is at most this much slower than the whole plan ends the search.
        const NEAR: f64 = 1.15;
        let near = NEAR * whole.predicted_seconds();
        let mut best = None;
        let mut most = f64::INFINITY;
        let bands: &[u64] = if whole.class.is_gpu() { &[LARGE_BANDS, SMALL_BANDS] } else { &[SMALL_BANDS] };
        for cuts in cuts(self.fused, self.limits, self.options, budget, bands) {
            let before = most;
            for cut in cuts {
                if most <= near {
                    return best;
                }
                if let Some(plan) = self.fit(&cut, budget, most) {
                    most = plan.predicted_seconds();
                    best = Some(plan);
                }
            }
            // Smaller chunks leave more choice and cost more steps: smaller ones are tried while
            // that pays.
            if best.is_some() && most >= before {
                break;
            }
        }
        best
    }

    /// Finds the plan with the smallest peak, but stops at the first plan that takes at most
    /// `enough`. Apart from that, the search depends on `whole` alone.
    fn smallest(&mut self, whole: &Plan, enough: Bytes) -> Option<Plan> {
        let mut smallest = Smallest { plan: None, enough };
        let slots = whole.memory.slots.0;
        // Weights that come from the host take slots, too.
        let mut room = if self.options.fetches_weights() { whole.memory.peak().0 } else { slots };
        let mut rooms = Vec::new();
        // A fifth of less than five bytes is none.
        while room > slots.max(4) {
            rooms.push(room);
            room -= room / 5;
        }
        room = slots;
        for _ in 0..ROOMS {
            rooms.push(room);
            room -= room / 5;
        }
        // Rooms that are likely to be small enough come first. The order does not change the
        // result: each room has its own work limit, and no plan takes less than its room, or that
        // divided by `spare`.
        for room in by_key(rooms.iter().map(|room| room.abs_diff(enough.0 / 8 * 5))).map(|index| rooms[index]) {
            self.work_limit = WorkLimit(WorkLimit::new(whole).0 / 16);
            if room / self.spare < smallest.peak(whole) && self.squeezed(room).is_some_and(|plan| smallest.take(plan)) {
                return smallest.plan;
            }
        }
        self.work_limit = WorkLimit::new(whole);
        let mut high = smallest.peak(whole);
        let mut low = high / MOST_SMALLER;
        // The plan for one budget may take less than another budget for which no plan was found.
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

    /// Returns a plan for `budget` in the smallest chunks or, if there is none, in the next larger
    /// ones.
    fn finest(&mut self, budget: Bytes) -> Option<Plan> {
        let cuts = cuts(self.fused, self.limits, self.options, budget, &[SMALL_BANDS]);
        let finest = cuts.into_iter().flatten().rev().take(2);
        finest.into_iter().find_map(|cut| self.fit(&cut, budget, f64::INFINITY))
    }

    /// Returns a plan in large chunks that is scheduled and placed for `room`. Returns `None` if
    /// there is none, or if its peak is below `room`, divided by `spare`.
    fn squeezed(&mut self, room: u64) -> Option<Plan> {
        let parts = Parts { chunk: COARSEST, band: SMALL_BANDS };
        let cut = cut(self.fused, self.limits, self.options, Bytes(room * 2), parts);
        let nodes = self.nodes(&cut)?;
        if room < least_room(&nodes, &cut) {
            return None;
        }
        let start = Start::whole(&nodes, &cut, Held::All, &mut self.work_limit)?;
        let retention = self.cheapest(&nodes, &cut, &start, room - room / 8)?;
        let mut lowered = self.lower(&nodes, retention.schedule, &cut, None)?;
        if cut.parks() {
            self.park(&mut lowered, &cut, Bytes(room))?;
        } else {
            lowered.spill(&cut, Bytes(room))?;
            lowered.plan.place(self.limits, &cut);
        }
        let counts = lowered.plan.memory.peak().0 >= room / self.spare && lowered.plan.check(self.limits).is_ok();
        counts.then_some(lowered.plan)
    }

    /// Returns the nodes of one cut. Returns `None` if a buffer would exceed the device's limits.
    fn nodes(&self, cut: &PlanOptions) -> Option<Vec<Node>> {
        let most = self.limits.largest_bound_buffer().0;
        let nodes = nodes(self.fused, self.limits, cut).ok()?;
        nodes.iter().all(|node| node.scratch.largest() <= most).then_some(nodes)
    }

    /// Returns the plan of one cut that keeps `budget`, if there is one. Returns `None` if the plan
    /// would take at least `most` seconds: [`Least`] mostly shows it before the plan is made.
    fn fit(&mut self, cut: &PlanOptions, budget: Bytes, most: f64) -> Option<Plan> {
        let nodes = self.nodes(cut)?;
        // A smaller copy that is measured uses the weights of the others.
        let resident = || nodes[self.fused.measuring..].iter().map(|node| node.weights).sum::<u64>();
        let weights = if cut.fetches_weights() { 0 } else { resident() + cut.other_weights.0 };
        // The rest is room for parameters, staging, and bytes lost in slots; the first plan shows
        // how much they take.
        let room = (budget.0 - budget.0 / 16).checked_sub(weights)?;
        let most_room = if cut.parks() { budget.0 - weights } else { room };
        if most_room < least_room(&nodes, cut) {
            return None;
        }
        let whole = Start::whole(&nodes, cut, Held::All, &mut self.work_limit)?;
        let least = (MAY_MOVE && most < f64::INFINITY)
            .then(|| Least::new(self.fused, &nodes, self.limits, cut, &mut self.work_limit));
        let is_slow = |schedule: &Schedule| {
            MAY_MOVE && least.as_ref().is_some_and(|least| least.seconds(&schedule.tasks) >= most)
        };
        if is_slow(&whole.retention.schedule) {
            return None;
        }
        let plan = if cut.parks() {
            self.fit_parked(&nodes, cut, &whole, (budget, room), &is_slow)
        } else {
            self.fit_recomputed(&nodes, cut, &whole, (budget, room), most, &is_slow)
        }?;
        let counts = plan.memory.peak() <= budget && plan.predicted_seconds() < most;
        (counts && plan.check(self.limits).is_ok()).then_some(plan)
    }

    /// Returns the plan of one cut that keeps `budget` and may park activations. `room` is about
    /// what is left for slots. Returns `None` if the schedule `is_slow`.
    fn fit_parked(
        &mut self,
        nodes: &[Node],
        cut: &PlanOptions,
        whole: &Start,
        (budget, room): (Bytes, u64),
        is_slow: &dyn Fn(&Schedule) -> bool,
    ) -> Option<Plan> {
        let retention = self.cheapest(nodes, cut, whole, room)?;
        if is_slow(&retention.schedule) {
            return None;
        }
        let mut lowered = self.lower(nodes, retention.schedule, cut, None)?;
        // More than twice what the whole schedule takes is of no use.
        let useful = whole.retention.taken.iter().max()?.saturating_mul(2);
        let room = budget.0.checked_sub(lowered.beside.0)?.min(useful);
        self.park(&mut lowered, cut, Bytes(room))?;
        // The plan may need less besides slots than was set aside.
        let beside = lowered.plan.memory.peak().0 - lowered.plan.memory.slots.0;
        let more = budget.0.saturating_sub(beside).min(useful);
        if more > room + room / 32 {
            let seconds = lowered.plan.predicted_seconds();
            let found = self.park(&mut lowered, cut, Bytes(more));
            let plan = &lowered.plan;
            if found.is_none() || plan.memory.peak() > budget || plan.predicted_seconds() > seconds {
                self.park(&mut lowered, cut, Bytes(room))?;
            }
        }
        Some(lowered.plan)
    }

    /// Makes the plan of `lowered` in slots that take at most `room` bytes together, and moves to
    /// the host what must leave them. Returns `None` if something finds no place.
    fn park(&mut self, lowered: &mut Lowered, cut: &PlanOptions, room: Bytes) -> Option<()> {
        let Lowered { steps, buffers, plan, .. } = lowered;
        let may = May { park: true, weights: cut.weights };
        let uses = Uses::new(plan, steps, buffers, may.weights);
        let unplaced = Unplaced { steps, buffers, uses: &uses, apart: &uses.apart() };
        for slots in slots::choices(&uses, room, cut.chunk_limit, self.limits.max_buffer_size) {
            self.work_limit.count_walk(steps.len());
            if spill::spill(plan, unplaced, Places::slots(&slots), may).is_some() {
                liveness::liveness(plan);
                plan.predict_memory(self.limits, cut);
                self.work_limit.count_places(plan);
                return Some(());
            }
            if self.work_limit.most_looks() == 0 {
                break;
            }
        }
        None
    }

    /// Returns the plan of one cut that keeps `budget` and computes again what does not fit.
    /// `room` is about what is left for slots. Returns `None` if the plan would take at least
    /// `most` seconds, as it does if the schedule `is_slow`.
    fn fit_recomputed(
        &mut self,
        nodes: &[Node],
        cut: &PlanOptions,
        whole: &Start,
        (budget, mut room): (Bytes, u64),
        most: f64,
        is_slow: &dyn Fn(&Schedule) -> bool,
    ) -> Option<Plan> {
        const TRIES: usize = 5;
        // Bytes that the schedule may take. Less than `room` if memory that must stay would exceed
        // `room`.
        let mut scheduled = room;
        let mut before = None;
        let mut spilled = true;
        for _ in 0..TRIES {
            if scheduled < least_room(nodes, cut) {
                return None;
            }
            let retention = self.cheapest(nodes, cut, whole, scheduled)?;
            if is_slow(&retention.schedule) {
                return None;
            }
            // One step used more than all of the room, and would do so again.
            if !spilled && before.as_ref().is_some_and(|before: &Lowered| before.schedule == retention.schedule) {
                return None;
            }
            let mut lowered = self.lower(nodes, retention.schedule, cut, before.take())?;
            spilled = lowered.spill(cut, Bytes(room)).is_some();
            if !spilled {
                scheduled -= scheduled / 8;
                before = Some(lowered);
                continue;
            }
            // Less room makes no plan faster.
            if lowered.plan.predicted_seconds() >= most {
                return None;
            }
            lowered.plan.place(self.limits, cut);
            self.work_limit.count_places(&lowered.plan);
            if lowered.plan.memory.peak() <= budget {
                return Some(lowered.plan);
            }
            room = less_room(room, &lowered.plan.memory, budget)?;
            before = Some(lowered);
            scheduled = scheduled.min(room);
        }
        None
    }

    /// Returns the schedule with the shortest predicted time in `room` bytes, starting from `all`,
    /// which keeps everything. If parking is allowed, the schedule may take more than `room`.
    fn cheapest(&mut self, nodes: &[Node], cut: &PlanOptions, all: &Start, room: u64) -> Option<Retention> {
        let class = DeviceClass::of(self.limits);
        let moving = |retention: &Retention, moved| {
            let steps = retention.schedule.tasks.len() * STEPS_PER_TASK;
            class.seconds(retention.schedule.macs, steps, Bytes(moved))
        };
        // The part that exceeds the room in a pass goes to the host and comes back. It often stays
        // there over several passes: plans of SD 1.5 moved two thirds of twice the excess.
        let seconds = |retention: &Retention| moving(retention, retention.excess(room) * 4 / 3);
        let kept = &all.retention;
        if cut.parks() && seconds(kept) <= MOVING_IS_CHEAP * moving(kept, 0) {
            return Some(kept.clone());
        }
        let limit = &mut self.work_limit;
        let mut within =
            |room, too_slow: &dyn Fn(&Retention) -> bool| retention::within(nodes, all, cut, room, too_slow, limit);
        if !cut.parks() {
            return within(room, &|_| false).or_else(|| {
                // One pass may need more weights than there is room for.
                let one = Start::whole(nodes, cut, Held::One, limit).filter(|_| cut.fetches_weights())?;
                (one.retention.excess(room) == 0).then_some(one.retention)
            });
        }
        let mut best = (seconds(kept), kept.clone());
        // With more room less is computed again, so the first search ends soonest. Of equal ones,
        // the last stays.
        for more in [room.saturating_mul(3), room.saturating_add(room / 2), room] {
            if let Some(found) = within(more, &|retention| moving(retention, 0) > best.0)
                && seconds(&found) <= best.0
            {
                best = (seconds(&found), found);
            }
        }
        Some(best.1)
    }

    /// Lowers `schedule`. Takes over the plan of the try `before`, which had a little more room, if
    /// it has the same schedule.
    fn lower(
        &mut self,
        nodes: &[Node],
        schedule: Schedule,
        cut: &PlanOptions,
        before: Option<Lowered>,
    ) -> Option<Lowered> {
        if let Some(before) = before.filter(|before| before.schedule == schedule) {
            self.work_limit.count_steps(before.steps.len());
            return Some(before);
        }
        let lowered = lower::lower(self.fused, nodes, &schedule, self.limits, cut);
        self.work_limit.count_steps(lowered.as_ref().map_or(bounds::MOST_STEPS, |plan| plan.steps.len()));
        let mut plan = lowered.ok()?;
        let timestamps = cut.profile && self.limits.timestamp_query;
        let beside = || memory::most_beside_slots(&plan, timestamps, cut.other_weights, cut.weights);
        let beside = if cut.parks() { beside() } else { Bytes(0) };
        let (steps, buffers) = (std::mem::take(&mut plan.steps), std::mem::take(&mut plan.buffers));
        Some(Lowered { schedule, steps, buffers, plan, beside })
    }
}

/// The plan with the smallest peak so far.
struct Smallest {
    plan: Option<Plan>,
    /// Peak that is small enough to stop.
    enough: Bytes,
}

impl Smallest {
    /// Returns the smallest peak so far; the peak of `whole` if no plan is smaller.
    fn peak(&self, whole: &Plan) -> u64 {
        let peaks = self.plan.iter().chain([whole]).map(|plan| plan.memory.peak().0);
        peaks.min().unwrap_or_default()
    }

    /// Keeps `plan` if its peak is smaller. Returns true if that peak is small enough.
    fn take(&mut self, plan: Plan) -> bool {
        let peak = plan.memory.peak();
        if self.plan.as_ref().is_none_or(|smallest| peak < smallest.memory.peak()) {
            self.plan = Some(plan);
        }
        peak <= self.enough
    }
}

/// The lowered steps and buffers of a schedule, and the plan made from them.
struct Lowered {
    schedule: Schedule,
    steps: Vec<Step>,
    buffers: Vec<BufferUse>,
    plan: Plan,
    /// Most memory that the plan takes besides slots, if activations may be parked.
    beside: Bytes,
}

impl Lowered {
    /// Makes the plan without slots. If the weights come from the host, they leave and come back,
    /// so that at no step more than `room` bytes exist. Returns `None` if that is not enough.
    fn spill(&mut self, cut: &PlanOptions, room: Bytes) -> Option<()> {
        if !cut.fetches_weights() {
            self.plan.steps.clone_from(&self.steps);
            self.plan.buffers.clone_from(&self.buffers);
            return Some(());
        }
        let may = May { park: false, weights: cut.weights };
        let uses = Uses::new(&self.plan, &self.steps, &self.buffers, may.weights);
        let unplaced = Unplaced { steps: &self.steps, buffers: &self.buffers, uses: &uses, apart: &[] };
        spill::spill(&mut self.plan, unplaced, Places::anywhere(room), may)
    }
}

/// Returns the room to try next after a plan without parking, for `room`, took `memory`, which is
/// too much for `budget`. Slots lose between a hundredth and half of their bytes to fragmentation.
/// A smaller room loses about the same share.
fn less_room(room: u64, memory: &Memory, budget: Bytes) -> Option<u64> {
    let slots = memory.slots.0;
    let wanted = slots.checked_sub(memory.peak().0.checked_sub(budget.0)?)?;
    let room = u64::try_from(u128::from(room) * u128::from(wanted) / u128::from(slots.max(1))).ok()?;
    Some(room - room / 24)
}

/// A cut of all tensors, and of their convolutions.
#[derive(Debug, Clone, Copy)]
struct Parts {
    /// A chunk has this part of the budget.
    chunk: u64,
    /// Each of the two Winograd intermediates of a band has this part of the budget.
    band: u64,
}

/// Returns ways to cut for `budget`: ever smaller chunks, each with these parts of the budget for
/// bands.
fn cuts(
    fused: &Fused,
    limits: &DeviceLimits,
    options: &PlanOptions,
    budget: Bytes,
    bands: &[u64],
) -> Vec<Vec<PlanOptions>> {
    let chunks = std::iter::successors(Some(COARSEST), |chunk| Some(chunk * 2)).take_while(|chunk| *chunk <= FINEST);
    let of_chunk = |chunk| {
        let cut = |band: &u64| cut(fused, limits, options, budget, Parts { chunk, band: *band });
        let mut cuts: Vec<_> = bands.iter().map(cut).collect();
        cuts.dedup();
        cuts
    };
    let mut cuts: Vec<_> = chunks.map(of_chunk).collect();
    cuts.dedup();
    cuts
}

/// Returns options with chunks and bands of these parts of `budget`. A chunk has at least the
/// fewest rows of the widest tensor, so that all chunks have about one size and can take each
/// other's place.
fn cut(fused: &Fused, limits: &DeviceLimits, options: &PlanOptions, budget: Bytes, parts: Parts) -> PlanOptions {
    let outputs = fused.stages.iter().filter_map(Stage::output).map(|output| fused.shape(output));
    let rows = outputs.map(|shape| u64::from(shape.width) * u64::from(shape.pixel4()) * u64::from(ROW_STEP));
    let least = rows.max().unwrap_or_default() * options.storage.vec4_bytes();
    let choice = options.choice(limits);
    let mut chunk = (budget.0 / parts.chunk).max(least).min(options.chunk_limit.0);
    if options.parks() && (1..=chunk).contains(&least) {
        // Widths and channels are mostly powers of two apart, so all chunks have the same size.
        chunk = least << (chunk / least).ilog2();
    }
    // A band has its bytes for each frame.
    let frames = fused.stages.iter().filter_map(Stage::output).map(|output| fused.shape(output).frames).max();
    let frames = u64::from(band_frames(limits.kind, frames.unwrap_or(1)));
    let scratch = (budget.0 / parts.band / frames).min(choice.winograd_scratch_bytes).max(1 << 16);
    let choice = Some(KernelChoice { winograd_scratch_bytes: scratch, ..choice });
    PlanOptions { chunk_limit: Bytes(chunk), choice, ..options.clone() }
}

fn geometric_mean(low: u64, high: u64) -> u64 {
    u64::try_from((u128::from(low) * u128::from(high)).isqrt()).unwrap_or(high)
}

/// Returns the least bytes for which a plan of `nodes` is searched. If activations may be parked,
/// it is what one launch binds. Otherwise it is what a stage takes while it computes its first
/// chunk.
fn least_room(nodes: &[Node], cut: &PlanOptions) -> u64 {
    let chunk =
        |stage: usize, index: usize| u64::from(nodes[stage].partition.chunk(index).count()) * nodes[stage].row_bytes;
    let least = |(stage, node): (usize, &Node)| {
        let scratch = node.scratch;
        if cut.parks() {
            let bound = scratch.bytes(Shared::V) + scratch.bytes(Shared::M) + scratch.filter_part;
            return bound.max(chunk(stage, 0));
        }
        let read = node.reads.iter().flat_map(|read| read.chunks(0).map(|index| (read.stage, index)));
        let read: Set<(usize, usize)> = read.collect();
        let read: u64 = read.into_items().into_iter().map(|(stage, index)| chunk(stage, index)).sum();
        let weights = if cut.fetches_weights() { node.weights } else { 0 };
        let own = if node.replaces.is_none() { chunk(stage, 0) } else { 0 };
        scratch.without_filters() + scratch.filters + weights + read + own
    };
    nodes.iter().enumerate().map(least).max().unwrap_or_default()
}

/// Where moving all that exceeds the room to the host and back makes a schedule at most this many
/// times slower, no schedule that computes something again is searched for. The search takes long,
/// and what it finds is rarely much faster: SD 1.5's encoder would take 0.21 s in 480 MiB, not
/// 0.24.
const MOVING_IS_CHEAP: f64 = 1.33;
/// Typical number of steps that compute one chunk.
const STEPS_PER_TASK: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::config::{Family, LatentSpace};
    use crate::model::networks::decoder;
    use crate::plan::{Output, Weights, fuse};
    use crate::tensor::{Size, Storage};

    #[test]
    fn a_search_ends_when_it_has_done_what_it_may() {
        let config = Family::find("sd15").expect("a published one").config();
        let graph = decoder(&config, Size { width: 32, height: 32 }, LatentSpace::Vae);
        let (fused, limits) = (fuse::fuse(&graph, 1.0), DeviceLimits::webgpu_default());
        let options = PlanOptions { weights: Weights::Host, ..PlanOptions::new(Storage::F32, Output::Rgba8) };
        let whole = Plan::of(&fused, &limits, &options).expect("without a budget");
        let budget = Bytes(whole.memory.peak().0 / 3 * 2);
        let found = |limit| {
            let (work_limit, spare) = (WorkLimit(limit), 1);
            let mut search = Search { fused: &fused, limits: &limits, options: &options, spare, work_limit };
            let plan = search.fastest(&whole, budget);
            assert!(plan.as_ref().is_none_or(|plan| plan.memory.peak() <= budget), "beyond {budget}");
            (plan.is_some(), limit - search.work_limit.0)
        };
        let (is_found, needed) = found(u64::MAX);
        assert!(is_found && needed < WorkLimit::new(&whole).0 / 4, "{needed} looks");
        // Fewer looks than one schedule takes.
        assert_eq!(found(64), (false, 64));
        assert_eq!(found(needed), (true, needed));
    }
}
