//! Decides how many chunks of each stage stay in GPU memory for later passes, so that no pass takes more than it may. The rest is computed again.
//!
//! Starts with a schedule that computes nothing twice. As long as a pass takes too much, one stage that is live at its fullest moment keeps
//! fewer chunks: the stage that costs the fewest multiply-adds for each byte by which all passes together come closer to what they may take. A schedule is
//! cheap to make (microseconds for each hundred chunks), so every choice is tried out, not estimated.

use std::collections::BTreeSet;

use crate::kernels::group_norm::NORM_VEC4_BYTES;
use crate::plan::bounds::Allowance;
use crate::plan::node::{Node, pass_scratch};
use crate::plan::schedule::{Keep, Schedule};
use crate::plan::{PlanOptions, Weights};

/// A schedule and what it takes.
#[derive(Debug, Clone)]
pub struct Residence {
    /// What is computed, in order.
    pub schedule: Schedule,
    /// Bytes that each pass takes at most: chunks, scratch, and the weights where they come and go.
    pub taken: Vec<u64>,
}

impl Residence {
    /// The residence of `keep`. `None` if nothing may be scheduled any more.
    pub fn new(nodes: &[Node], keep: &Keep, options: &PlanOptions, allowance: &mut Allowance) -> Option<Self> {
        let most = allowance.most_looks();
        let schedule = Schedule::new(nodes, keep, most);
        allowance.count_looks(schedule.as_ref().map_or(most, |schedule| schedule.looks));
        let schedule = schedule?;
        let peaks = schedule.peaks();
        let taken = schedule.passes.iter().zip(peaks);
        let taken =
            taken.map(|(pass, chunks)| chunks + beside(nodes, &schedule.stages(pass, nodes.len()), pass.goal, options));
        let taken = taken.collect();
        Some(Self { schedule, taken })
    }

    /// By how much all passes together exceed `room`.
    pub fn excess(&self, room: u64) -> u64 {
        self.taken.iter().map(|taken| taken.saturating_sub(room)).sum()
    }
}

/// What a pass over `stages` takes beside chunks.
fn beside(nodes: &[Node], stages: &[usize], goal: usize, options: &PlanOptions) -> u64 {
    let (sizes, own_filters) = pass_scratch(nodes, stages, options);
    let sum = |of: fn(&Node) -> u64| stages.iter().map(|stage| of(&nodes[*stage])).sum::<u64>();
    let filters = if own_filters { sum(|node| node.scratch.filters) } else { sizes.filters };
    let weights = match options.weights {
        Weights::Device => 0,
        Weights::Host => sum(|node| node.weights),
    };
    // Tables of norms are few and small; every stage of a pass may read one.
    let norms = stages.len() as u64 * 1024 * NORM_VEC4_BYTES;
    sizes.without_filters() + filters + weights + norms + nodes[goal].moments
}

/// The cheapest residence that was found whose passes take at most `room` bytes each, starting with `keep`. `None` when there seems to be none, or the
/// search has done what it may.
pub fn within(
    nodes: &[Node],
    mut keep: Keep,
    options: &PlanOptions,
    room: u64,
    allowance: &mut Allowance,
) -> Option<Residence> {
    let mut best = Residence::new(nodes, &keep, options, allowance)?;
    while best.excess(room) > 0 {
        let worst = (0..best.taken.len()).max_by_key(|pass| (best.taken[*pass], std::cmp::Reverse(*pass)))?;
        let excess = best.taken[worst] - room;
        let mut cheapest: Option<(f64, Keep, Residence)> = None;
        for stage in candidates(nodes, &keep, &best.schedule, worst) {
            let tried = drop_chunks(nodes, options, room, &keep, &best, (stage, excess), allowance);
            let Some((score, tried, residence)) = tried else { continue };
            if cheapest.as_ref().is_none_or(|(least, ..)| score < *least) {
                cheapest = Some((score, tried, residence));
            }
        }
        let (_, fewer, residence) = cheapest?;
        (keep, best) = (fewer, residence);
    }
    Some(best)
}

/// Lets `stage` keep as many chunks fewer as it takes to come closer to `room`: first as many as fill `excess`, then ever more, because what is computed
/// on the way takes memory as well. `None` if none helps.
fn drop_chunks(
    nodes: &[Node],
    options: &PlanOptions,
    room: u64,
    keep: &Keep,
    best: &Residence,
    (stage, excess): (usize, u64),
    allowance: &mut Allowance,
) -> Option<(f64, Keep, Residence)> {
    let chunk = nodes[stage].row_bytes * u64::from(nodes[stage].partition.rows);
    let mut fewer = usize::try_from(excess.div_ceil(chunk)).unwrap_or(usize::MAX);
    let before = best.excess(room);
    // A step that hardly helps leads nowhere, however cheap.
    let helps = |residence: &Residence| residence.excess(room) + excess / 8 < before;
    loop {
        let left = keep.0[stage].saturating_sub(fewer);
        let mut alone = keep.clone();
        alone.0[stage] = left;
        let mut chain = keep.clone();
        for other in (0..nodes.len()).filter(|other| root(nodes, *other) == root(nodes, stage)) {
            chain.0[other] = chain.0[other].min(left);
        }
        let chain = (chain != alone).then_some(chain);
        let ways = std::iter::once(alone).chain(chain);
        let tried = ways.filter_map(|keep| Some((Residence::new(nodes, &keep, options, allowance)?, keep)));
        let scored = tried.filter(|(residence, _)| helps(residence)).map(|(residence, keep)| {
            #[expect(clippy::cast_precision_loss, reason = "a score")]
            let score =
                (residence.schedule.macs as f64 - best.schedule.macs as f64) / (before - residence.excess(room)) as f64;
            (score, keep, residence)
        });
        let cheapest = scored.min_by(|left, right| left.0.total_cmp(&right.0));
        if cheapest.is_some() || left == 0 {
            return cheapest;
        }
        fewer = fewer.saturating_mul(2);
    }
}

/// The stage whose places `stage` takes over, through all sums between.
fn root(nodes: &[Node], mut stage: usize) -> usize {
    while let Some(replaced) = nodes[stage].replaces {
        stage = replaced;
    }
    stage
}

/// Stages that keep chunks which exist when pass `pass` takes most.
fn candidates(nodes: &[Node], keep: &Keep, schedule: &Schedule, pass: usize) -> BTreeSet<usize> {
    let at = schedule.fullest(pass);
    let goal = schedule.passes[pass].goal;
    let live = schedule.places.iter().filter(|place| place.born <= at && at <= place.last);
    let stage_then = |last: usize| {
        // A later sum may have taken the place since; what it replaced was there before.
        let mut stage = last;
        while stage > goal {
            stage = nodes[stage].replaces?;
        }
        Some(stage)
    };
    let mut stages: BTreeSet<usize> = live.filter_map(|place| stage_then(place.stage)).collect();
    // The residual that a goal replaces is in the same places.
    stages.extend(nodes[goal].replaces);
    // Latents are small, and the input they are made of would have to stay instead.
    stages.retain(|stage| nodes[*stage].row_macs > 0);
    // Without the last sum of a level, the sums before it would be overwritten by whoever wants it.
    stages.retain(|stage| keep.0[*stage] > 0 && (nodes[*stage].barrier || nodes[*stage].replaces.is_none()));
    stages
}
