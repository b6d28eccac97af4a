//! Decides how many chunks of each stage stay in GPU memory for later passes, so that no pass
//! exceeds the room. The other chunks are computed again.
//!
//! The search starts with a schedule that computes nothing twice. While a pass takes too much, one
//! stage that is live at the fullest moment of that pass keeps fewer chunks. The search takes the
//! stage that costs the fewest multiply-adds for each byte by which all passes together come closer
//! to the room. A schedule is cheap to make: microseconds for each hundred chunks, and the passes
//! before the stage's own are taken over. So the search tries every choice instead of estimating
//! it.

use std::borrow::Cow;

use crate::kernels::group_norm::NORM_VEC4_BYTES;
use crate::ordered::Set;
use crate::plan::PlanOptions;
use crate::plan::bounds::WorkLimit;
use crate::plan::node::{Node, pass_scratch};
use crate::plan::schedule::{RetainedChunks, Schedule, Traced};

/// Weights that a pass holds at once, if they come from the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// All its stages keep theirs.
    All,
    /// One stage at a time has its own: they leave, and come back for its next chunk.
    One,
}

/// A schedule with the memory that it takes.
#[derive(Debug, Clone)]
pub struct Retention {
    /// Tasks in order.
    pub schedule: Schedule,
    /// Most bytes that each pass takes: chunks, scratch, and the weights if they come from the
    /// host.
    pub taken: Vec<u64>,
    /// Task of each pass at which most bytes of chunks exist.
    fullest: Vec<usize>,
    /// Bytes of each pass that are not chunks.
    beside: Vec<u64>,
}

impl Retention {
    /// Returns the retention of `schedule`. `beside` holds the bytes besides chunks of its first
    /// passes, which it shares with another schedule.
    fn new(nodes: &[Node], schedule: Schedule, mut beside: Vec<u64>, options: &PlanOptions, held: Held) -> Self {
        let rest = &schedule.passes[beside.len()..];
        let stages = |pass| schedule.stages(pass, nodes.len());
        beside.extend(rest.iter().map(|pass| beside_chunks(nodes, &stages(pass), pass.goal, options, held)));
        let (chunks, fullest): (Vec<u64>, Vec<usize>) = schedule.peaks().into_iter().unzip();
        let taken = chunks.iter().zip(&beside).map(|(chunks, beside)| chunks + beside).collect();
        Self { schedule, taken, fullest, beside }
    }

    /// Returns the sum over all passes of the bytes that exceed `room`.
    pub fn excess(&self, room: u64) -> u64 {
        self.taken.iter().map(|taken| taken.saturating_sub(room)).sum()
    }
}

/// A retention from which retentions that keep less can be derived.
#[derive(Debug, Clone)]
pub struct Start {
    keep: RetainedChunks,
    traced: Traced,
    held: Held,
    /// Schedule and memory.
    pub retention: Retention,
}

impl Start {
    /// Returns the start that computes nothing twice. Returns `None` if `limit` is used up.
    pub fn whole(nodes: &[Node], options: &PlanOptions, held: Held, limit: &mut WorkLimit) -> Option<Self> {
        let (keep, most) = (RetainedChunks::whole(nodes), limit.most_looks());
        let traced = Traced::new(nodes, &keep, most);
        limit.count_looks(traced.as_ref().map_or(most, |traced| traced.schedule.looks));
        let traced = traced?;
        let retention = Retention::new(nodes, traced.schedule.clone(), Vec::new(), options, held);
        Some(Self { keep, traced, held, retention })
    }

    /// Returns the retention of `keep`, which keeps less from stage `first` on.
    fn keeping(
        &self,
        nodes: &[Node],
        keep: &RetainedChunks,
        first: usize,
        options: &PlanOptions,
        limit: &mut WorkLimit,
    ) -> Option<Retention> {
        let most = limit.most_looks();
        let found = self.traced.keeping(nodes, keep, first, most);
        limit.count_looks(found.as_ref().map_or(most, |(schedule, _)| schedule.looks));
        let (schedule, same) = found?;
        Some(Retention::new(nodes, schedule, self.retention.beside[..same].to_vec(), options, self.held))
    }

    /// Returns the start that continues from `retention`, the retention of `keep`.
    fn moved(&self, nodes: &[Node], keep: RetainedChunks, retention: Retention) -> Option<Self> {
        let first = (0..nodes.len()).find(|stage| keep.0[*stage] != self.keep.0[*stage])?;
        let traced = self.traced.traced(nodes, &keep, first, retention.schedule.looks)?;
        Some(Self { keep, traced, retention, ..*self })
    }
}

/// Returns the bytes that a pass over `stages` takes besides chunks.
fn beside_chunks(nodes: &[Node], stages: &[usize], goal: usize, options: &PlanOptions, held: Held) -> u64 {
    let (sizes, own_filters) = pass_scratch(nodes, stages, options);
    let sum = |of: fn(&Node) -> u64| stages.iter().map(|stage| of(&nodes[*stage])).sum::<u64>();
    let filters = if own_filters { sum(|node| node.scratch.filters) } else { sizes.filters };
    let weights = match held {
        _ if !options.fetches_weights() => 0,
        Held::All => sum(|node| node.weights),
        Held::One => stages.iter().fold(0, |most, stage| nodes[*stage].weights.max(most)),
    };
    // Tables of norms are few and small. Every stage of a pass may read one.
    let norms = stages.len() as u64 * 1024 * NORM_VEC4_BYTES;
    sizes.without_filters() + filters + weights + norms + nodes[goal].moments
}

/// Returns the cheapest retention found whose passes take at most `room` bytes each, starting from
/// `whole`. Returns `None` if the search finds none, if `limit` is used up, or if a retention on
/// the way is `too_slow`: those after it compute even more.
pub fn within(
    nodes: &[Node],
    whole: &Start,
    options: &PlanOptions,
    room: u64,
    too_slow: &dyn Fn(&Retention) -> bool,
    limit: &mut WorkLimit,
) -> Option<Retention> {
    let mut start = Cow::Borrowed(whole);
    while start.retention.excess(room) > 0 {
        if too_slow(&start.retention) {
            return None;
        }
        let taken = &start.retention.taken;
        let worst = (0..taken.len()).max_by_key(|pass| (taken[*pass], std::cmp::Reverse(*pass)))?;
        let excess = taken[worst] - room;
        let mut cheapest: Option<(f64, RetainedChunks, Retention)> = None;
        for stage in candidates(nodes, &start.keep, &start.retention, worst).into_items() {
            let tried = drop_chunks(nodes, options, room, &start, (stage, excess), limit);
            let Some((score, tried, retention)) = tried else { continue };
            if cheapest.as_ref().is_none_or(|(least, ..)| score < *least) {
                cheapest = Some((score, tried, retention));
            }
        }
        let (_, fewer, retention) = cheapest?;
        start = Cow::Owned(start.moved(nodes, fewer, retention)?);
    }
    Some(match start {
        Cow::Borrowed(whole) => whole.retention.clone(),
        Cow::Owned(start) => start.retention,
    })
}

/// Lets `stage` keep fewer chunks until all passes together come closer to `room`: first as many
/// fewer as fill `excess`, then twice as many each time, because recomputing takes memory as well.
/// Returns the score in multiply-adds for each byte, or `None` if no number helps.
fn drop_chunks(
    nodes: &[Node],
    options: &PlanOptions,
    room: u64,
    start: &Start,
    (stage, excess): (usize, u64),
    limit: &mut WorkLimit,
) -> Option<(f64, RetainedChunks, Retention)> {
    let (keep, best) = (&start.keep, &start.retention);
    let chunk = nodes[stage].row_bytes * u64::from(nodes[stage].partition.rows);
    let mut fewer = usize::try_from(excess.div_ceil(chunk)).unwrap_or(usize::MAX);
    let before = best.excess(room);
    // A candidate that hardly helps leads nowhere, however cheap it is.
    let helps = |retention: &Retention| retention.excess(room) + excess / 8 < before;
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
        let tried = ways.filter_map(|(keep, first)| Some((start.keeping(nodes, &keep, first, options, limit)?, keep)));
        let scored = tried.filter(|(retention, _)| helps(retention)).map(|(retention, keep)| {
            #[expect(clippy::cast_precision_loss, reason = "a score")]
            let score =
                (retention.schedule.macs as f64 - best.schedule.macs as f64) / (before - retention.excess(room)) as f64;
            (score, keep, retention)
        });
        let cheapest = scored.min_by(|left, right| left.0.total_cmp(&right.0));
        if cheapest.is_some() || left == 0 {
            return cheapest;
        }
        fewer = fewer.saturating_mul(2);
    }
}

/// Returns the first stage whose places `stage` takes over, through all sums between.
fn root(nodes: &[Node], mut stage: usize) -> usize {
    while let Some(replaced) = nodes[stage].replaces {
        stage = replaced;
    }
    stage
}

/// Returns the stages that keep chunks which exist when pass `pass` takes most.
fn candidates(nodes: &[Node], keep: &RetainedChunks, retention: &Retention, pass: usize) -> Set<usize> {
    let Retention { schedule, fullest, .. } = retention;
    let at = fullest[pass];
    let goal = schedule.passes[pass].goal;
    let live = schedule.places.iter().filter(|place| place.born <= at && at <= place.last);
    let stage_then = |last: usize| {
        // A later sum may have taken the place since; the stage that it replaced was there before.
        let mut stage = last;
        while stage > goal {
            stage = nodes[stage].replaces?;
        }
        Some(stage)
    };
    let mut stages: Set<usize> = live.filter_map(|place| stage_then(place.stage)).collect();
    // The residual that a goal replaces is in the same places.
    stages.extend(nodes[goal].replaces);
    // Latents are small, and the input that they are made of would have to stay instead.
    stages.retain(|stage| nodes[*stage].row_macs > 0);
    // If the last sum of a level were dropped, recomputing it would overwrite the kept sums before
    // it.
    stages.retain(|stage| keep.0[*stage] > 0 && (nodes[*stage].barrier || nodes[*stage].replaces.is_none()));
    stages
}
