//! Decides how many chunks of each stage stay in GPU memory for later passes, so that no pass takes
//! more than it may. The rest is computed again.
//!
//! Starts with a schedule that computes nothing twice. As long as a pass takes too much, one stage
//! that is live at its fullest moment keeps fewer chunks: the stage that costs the fewest
//! multiply-adds for each byte by which all passes together come closer to what they may take. A
//! schedule is cheap to make (microseconds for each hundred chunks, and the passes before the
//! stage's own are made already), so every choice is tried out, not estimated.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::kernels::group_norm::NORM_VEC4_BYTES;
use crate::ordered::Ordered as _;
use crate::plan::bounds::Allowance;
use crate::plan::node::{Node, pass_scratch};
use crate::plan::schedule::{Keep, Schedule, Traced};
use crate::plan::{PlanOptions, Weights};

/// A schedule and what it takes.
#[derive(Debug, Clone)]
pub struct Residence {
    /// What is computed, in order.
    pub schedule: Schedule,
    /// Bytes that each pass takes at most: chunks, scratch, and the weights where they come and go.
    pub taken: Vec<u64>,
    /// Of those, what is not chunks.
    beside: Vec<u64>,
}

impl Residence {
    /// What `schedule` takes. Its first passes are those of another, which take `beside`.
    fn new(nodes: &[Node], schedule: Schedule, mut beside: Vec<u64>, options: &PlanOptions) -> Self {
        let rest = &schedule.passes[beside.len()..];
        beside.extend(
            rest.iter().map(|pass| beside_chunks(nodes, &schedule.stages(pass, nodes.len()), pass.goal, options)),
        );
        let taken = schedule.peaks().into_iter().zip(&beside).map(|(chunks, beside)| chunks + beside).collect();
        Self { schedule, taken, beside }
    }

    /// By how much all passes together exceed `room`.
    pub fn excess(&self, room: u64) -> u64 {
        self.taken.iter().map(|taken| taken.saturating_sub(room)).sum()
    }
}

/// A residence, and how far others that keep less are the same.
#[derive(Debug, Clone)]
pub struct Start {
    keep: Keep,
    traced: Traced,
    /// What it takes.
    pub residence: Residence,
}

impl Start {
    /// With all that saves computing anything twice. `None` if nothing may be scheduled any more.
    pub fn whole(nodes: &[Node], options: &PlanOptions, allowance: &mut Allowance) -> Option<Self> {
        let (keep, most) = (Keep::whole(nodes), allowance.most_looks());
        let traced = Traced::new(nodes, &keep, most);
        allowance.count_looks(traced.as_ref().map_or(most, |traced| traced.schedule.looks));
        let traced = traced?;
        let residence = Residence::new(nodes, traced.schedule.clone(), Vec::new(), options);
        Some(Self { keep, traced, residence })
    }

    /// That of `keep`, which is less from stage `first` on.
    fn keeping(
        &self,
        nodes: &[Node],
        keep: &Keep,
        first: usize,
        options: &PlanOptions,
        allowance: &mut Allowance,
    ) -> Option<Residence> {
        let most = allowance.most_looks();
        let found = self.traced.keeping(nodes, keep, first, most);
        allowance.count_looks(found.as_ref().map_or(most, |(schedule, _)| schedule.looks));
        let (schedule, same) = found?;
        Some(Residence::new(nodes, schedule, self.residence.beside[..same].to_vec(), options))
    }

    /// Goes on from `residence`, which is that of `keep`.
    fn moved(&self, nodes: &[Node], keep: Keep, residence: Residence) -> Option<Self> {
        let first = (0..nodes.len()).find(|stage| keep.0[*stage] != self.keep.0[*stage])?;
        let traced = self.traced.traced(nodes, &keep, first, residence.schedule.looks)?;
        Some(Self { keep, traced, residence })
    }
}

/// What a pass over `stages` takes beside chunks.
fn beside_chunks(nodes: &[Node], stages: &[usize], goal: usize, options: &PlanOptions) -> u64 {
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

/// The cheapest residence that was found whose passes take at most `room` bytes each, starting with
/// `whole`. `None` when there seems to be none, or the search has done what it may.
pub fn within(
    nodes: &[Node],
    whole: &Start,
    options: &PlanOptions,
    room: u64,
    allowance: &mut Allowance,
) -> Option<Residence> {
    let mut start = Cow::Borrowed(whole);
    while start.residence.excess(room) > 0 {
        let taken = &start.residence.taken;
        let worst = (0..taken.len()).max_by_key(|pass| (taken[*pass], std::cmp::Reverse(*pass)))?;
        let excess = taken[worst] - room;
        let mut cheapest: Option<(f64, Keep, Residence)> = None;
        for stage in candidates(nodes, &start.keep, &start.residence.schedule, worst) {
            let tried = drop_chunks(nodes, options, room, &start, (stage, excess), allowance);
            let Some((score, tried, residence)) = tried else { continue };
            if cheapest.as_ref().is_none_or(|(least, ..)| score < *least) {
                cheapest = Some((score, tried, residence));
            }
        }
        let (_, fewer, residence) = cheapest?;
        start = Cow::Owned(start.moved(nodes, fewer, residence)?);
    }
    Some(match start {
        Cow::Borrowed(whole) => whole.residence.clone(),
        Cow::Owned(start) => start.residence,
    })
}

/// Lets `stage` keep as many chunks fewer as it takes to come closer to `room`: first as many as
/// fill `excess`, then ever more, because what is computed on the way takes memory as well. `None`
/// if none helps.
fn drop_chunks(
    nodes: &[Node],
    options: &PlanOptions,
    room: u64,
    start: &Start,
    (stage, excess): (usize, u64),
    allowance: &mut Allowance,
) -> Option<(f64, Keep, Residence)> {
    let (keep, best) = (&start.keep, &start.residence);
    let chunk = nodes[stage].row_bytes * u64::from(nodes[stage].partition.rows);
    let mut fewer = usize::try_from(excess.div_ceil(chunk)).unwrap_or(usize::MAX);
    let before = best.excess(room);
    // A step that hardly helps leads nowhere, however cheap.
    let helps = |residence: &Residence| residence.excess(room) + excess / 8 < before;
    let own = root(nodes, stage);
    loop {
        let left = keep.0[stage].saturating_sub(fewer);
        let mut alone = keep.clone();
        alone.0[stage] = left;
        let mut chain = keep.clone();
        for other in (0..nodes.len()).filter(|other| root(nodes, *other) == own) {
            chain.0[other] = chain.0[other].min(left);
        }
        let chain = (chain != alone).then_some(chain);
        let ways = std::iter::once((alone, stage)).chain(chain.map(|chain| (chain, own)));
        let tried =
            ways.filter_map(|(keep, first)| Some((start.keeping(nodes, &keep, first, options, allowance)?, keep)));
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
    let mut stages = live.filter_map(|place| stage_then(place.stage)).into_set();
    // The residual that a goal replaces is in the same places.
    stages.extend(nodes[goal].replaces);
    // Latents are small, and the input they are made of would have to stay instead.
    stages.retain(|stage| nodes[*stage].row_macs > 0);
    // Without the last sum of a level, the sums before it would be overwritten by whoever wants it.
    stages.retain(|stage| keep.0[*stage] > 0 && (nodes[*stage].barrier || nodes[*stage].replaces.is_none()));
    stages
}
