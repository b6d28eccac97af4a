//! The plans that a request needs: one for each size of tile and each part of a clip.

use std::sync::Arc;

use super::request::{Job, Request};
use crate::error::{Error, Result};
use crate::model::blocks::Part;
use crate::ordered::by_key;
use crate::plan::{Home, HostStates, Plan, StateUse};
use crate::tensor::{Bytes, Size};
use crate::tiling::Grid;

/// All plans of one request. An image has one plan. A clip has one for its first part and one for
/// every later part, or one for all. In tiles, each size of tile has its own. Only one plan is
/// prepared at a time.
///
/// Each part of a clip has one frame of latents. In the first part that is one frame of pixels (in
/// an encode by TAEHV, several), in the others several.
#[derive(Debug, Clone, PartialEq)]
pub struct Plans {
    /// The tiles of each size, or the whole image. Never empty.
    sizes: Vec<Arc<TilesOfSize>>,
}

/// The plans of the tiles of one size. Each tile of a clip is a clip of its own.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TilesOfSize {
    /// The request for one tile. Its budget is the part that the other tiles leave.
    pub(super) request: Request,
    /// The states that are kept in host memory between parts.
    pub(super) host_states: HostStates,
    /// The plan of each part: of an image, or of a clip's first part and of the others. One plan if
    /// all parts have the same.
    parts: Vec<Plan>,
    /// The number of tiles.
    count: u64,
}

impl Plans {
    /// Plans `request`, each job by `plan`.
    pub(super) fn new(request: &Request, plan: &dyn Fn(&Job) -> Result<Plan>) -> Result<Self> {
        let sizes = match request.tiling.grid(request.size) {
            Some(grid) => in_tiles(request, &grid, plan)?,
            None => vec![TilesOfSize::whole(*request, plan)?],
        };
        Ok(Self { sizes: sizes.into_iter().map(Arc::new).collect() })
    }

    /// Returns the plan of part `index`. In tiles, it is that of the tiles that take the most
    /// memory, as with all plans here. An image has one part.
    pub fn part(&self, index: u64) -> &Plan {
        self.largest().part(index)
    }

    /// Returns the plan of the first part, or of an image.
    pub fn first(&self) -> &Plan {
        self.part(0)
    }

    /// Returns the plan of every part but the first.
    pub fn later(&self) -> &Plan {
        self.part(1)
    }

    /// Returns the plan of the first part, or of an image.
    pub fn into_first(self) -> Plan {
        self.first().clone()
    }

    /// Returns the plan of the first part for each size of tile, and the number of such tiles.
    pub fn tiles(&self) -> impl Iterator<Item = (&Plan, u64)> {
        self.sizes.iter().map(|tiles| (tiles.part(0), tiles.count))
    }

    /// Returns the number of tiles; 1 if there are none.
    pub fn count(&self) -> u64 {
        self.sizes.iter().map(|tiles| tiles.count).sum()
    }

    /// Returns the predicted peak of all GPU memory, bytes. It does not depend on the length of a
    /// clip, except by [`Request::clip_latents`].
    pub fn peak(&self) -> Bytes {
        self.peak_of(0).max(self.peak_of(1))
    }

    /// Returns the predicted peak of part `index`. It includes everything that all tiles keep on
    /// the device: on a GPU, the norms' tables.
    fn peak_of(&self, index: u64) -> Bytes {
        let alone =
            |tiles: &Arc<TilesOfSize>| tiles.part(index).memory.peak().saturating_sub(tiles.part(index).memory.states);
        let most = self.sizes.iter().map(alone).max().unwrap_or_default();
        most + kept_bytes(self.sizes.iter().map(Arc::as_ref), index)
    }

    /// Returns the host memory that is taken for states, weights and parked data, bytes. It does
    /// not depend on the length of a clip, except by [`Request::clip_latents`].
    pub fn host_bytes(&self) -> Bytes {
        let own = |tiles: &TilesOfSize| tiles.parts.iter().map(|plan| plan.host_bytes().0).max().unwrap_or_default();
        let kept = |tiles: &TilesOfSize| {
            let states = tiles.part(1).states.iter().filter(|state| state.home == Home::Host);
            states.map(|state| state.bytes().0).sum::<u64>()
        };
        // The states of all tiles, and the data that waits while one of them is decoded.
        let all = self.sizes.iter().map(|tiles| kept(tiles) * tiles.count).sum::<u64>();
        Bytes(all + self.sizes.iter().map(|tiles| own(tiles).saturating_sub(kept(tiles))).max().unwrap_or_default())
    }

    /// Returns the bytes of all states that a clip keeps, on the device and in host memory.
    pub fn state_bytes(&self) -> Bytes {
        Bytes(self.sizes.iter().map(|tiles| tiles.state_bytes().0 * tiles.count).sum())
    }

    /// Returns the multiply-adds of `parts` parts, in all tiles. Attention over earlier frames
    /// counts as in the last part.
    pub fn macs(&self, parts: u64) -> u64 {
        self.sum(parts, Plan::macs)
    }

    /// Returns the bytes that `parts` parts move between host and device because of the budget, in
    /// all tiles.
    pub fn transferred(&self, parts: u64) -> Bytes {
        Bytes(self.sum(parts, |plan| plan.transferred().0))
    }

    /// Sums up `of` the plans of `parts` parts in all tiles. Too large a sum becomes the largest.
    fn sum(&self, parts: u64, of: impl Fn(&Plan) -> u64) -> u64 {
        let all = |tiles: &TilesOfSize| {
            let later = of(tiles.part(1)).saturating_mul(parts.saturating_sub(1));
            later.saturating_add(of(tiles.part(0))).saturating_mul(tiles.count)
        };
        self.sizes.iter().fold(0, |sum, tiles| sum.saturating_add(all(tiles)))
    }

    /// Returns the predicted time of `parts` parts in all tiles, on a device of this kind, seconds.
    #[expect(clippy::cast_precision_loss, reason = "as many tiles and parts as people have")]
    pub fn predicted_seconds(&self, parts: u64) -> f64 {
        let all = |tiles: &TilesOfSize| {
            let [first, later] = [0, 1].map(|index| tiles.part(index).predicted_seconds());
            (first + later * parts.saturating_sub(1) as f64) * tiles.count as f64
        };
        self.sizes.iter().map(|tiles| all(tiles)).sum()
    }

    /// Returns the tiles of `size` latents, or the whole image if it is of that size.
    ///
    /// # Panics
    /// If there are no such tiles.
    pub(super) fn of_size(&self, size: Size) -> &Arc<TilesOfSize> {
        let found = self.sizes.iter().find(|tiles| tiles.request.size == size);
        found.expect("every tile has one of the planned sizes")
    }

    /// Returns the tiles that take the most memory.
    pub(super) fn largest(&self) -> &TilesOfSize {
        let largest = self.sizes.iter().max_by_key(|tiles| tiles.peak());
        largest.expect("an image has at least one tile")
    }
}

impl std::fmt::Display for Plans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.largest().parts.as_slice() {
            [first, later] => write!(f, "first part\n{first}\nother parts\n{later}"),
            parts => parts.iter().try_for_each(|plan| plan.fmt(f)),
        }
    }
}

impl TilesOfSize {
    /// Plans a request that has no tiles. States stay on the device as far as the budget leaves
    /// room for them; the others are kept in host memory.
    fn whole(request: Request, plan: &dyn Fn(&Job) -> Result<Plan>) -> Result<Self> {
        let with = |host_states| Self::with(request, host_states, 1, plan);
        let (Some(budget), [_, _]) = (request.memory_budget, request.parts()) else { return with(HostStates::None) };
        match with(HostStates::All) {
            // The CPU has no other memory for them.
            Ok(plans) if plans.part(1).states.iter().all(|state| state.home == Home::Device) => Ok(plans),
            Ok(plans) => {
                // With less room for the rest, the search may end with a slower plan. If that costs
                // more than it gains, all states stay in host memory. With fewer states there, the
                // peak may also be a size that fails when it is given as a budget, because a budget
                // is checked with all states there, or with none.
                let is_a_budget =
                    |filled: &Self| filled.host_states == HostStates::None || filled.peak() >= plans.peak();
                let better = |filled: &Self| filled.pace() <= plans.pace() && is_a_budget(filled);
                let mut filled = plans.fillings(budget).into_iter().filter_map(|fewer| with(fewer).ok().filter(better));
                Ok(filled.next().unwrap_or(plans))
            }
            // Staging for host memory takes room as well, for a small clip more than its states.
            Err(error @ Error::Budget { .. }) => with(HostStates::None).map_err(|none| easier(error, none)),
            Err(error) => Err(error),
        }
    }

    /// Plans all parts with the same `host_states`.
    fn with(
        request: Request,
        host_states: HostStates,
        count: u64,
        plan: &dyn Fn(&Job) -> Result<Plan>,
    ) -> Result<Self> {
        let (mut parts, mut refused) = (Vec::new(), None);
        for &part in request.parts() {
            match plan(&Job { request, part, host_states: host_states.clone() }) {
                Ok(plan) => parts.push(plan),
                Err(error) => refused = Some(hardest(refused, error)),
            }
        }
        if let Some(error) = refused {
            return Err(error);
        }
        if let [first, later] = parts.as_slice() {
            check_states(first, later);
            // A clip that is prepared once is not allocated anew for its second part.
            if first == later {
                parts.truncate(1);
            }
        }
        Ok(Self { request, host_states, parts, count })
    }

    /// Returns the plan of part `index`.
    pub(super) fn part(&self, index: u64) -> &Plan {
        if index > 0 { &self.parts[self.parts.len() - 1] } else { &self.parts[0] }
    }

    /// Returns the job of part `index`.
    pub(super) fn job(&self, index: u64) -> Job {
        let parts = &self.request.parts()[..self.parts.len()];
        let part = if index > 0 { parts[parts.len() - 1] } else { parts[0] };
        Job { request: self.request, part, host_states: self.host_states.clone() }
    }

    fn peak(&self) -> Bytes {
        self.part(0).memory.peak().max(self.part(1).memory.peak())
    }

    fn state_bytes(&self) -> Bytes {
        self.part(1).states.iter().map(|state| state.bytes() + state.table).sum()
    }

    /// Returns the predicted seconds of a part, to compare plans.
    fn pace(&self) -> f64 {
        self.part(1).predicted_seconds()
    }

    /// Returns which states may stay in host memory, in plans that keep all there, once the rest of
    /// `budget` is filled. Those that leave the least there come first.
    fn fillings(&self, budget: Bytes) -> Vec<HostStates> {
        let (all, peak, staging) = (self.state_bytes().0, self.peak().0, self.part(1).memory.staging.0);
        let mut fillings = Vec::new();
        // No state goes through host memory then, so staging is not counted.
        if all + peak - staging <= budget.0 {
            fillings.push(HostStates::None);
        }
        fillings.extend(self.filling(budget.0.saturating_sub(peak)).map(|left| HostStates::Of(left.into())));
        fillings
    }

    /// Returns the names of the states that stay in host memory when the largest that fit into
    /// `room` bytes move to the device. `None` if no state moves.
    fn filling(&self, mut room: u64) -> Option<Vec<String>> {
        let all = &self.part(1).states;
        let largest_first = by_key(all.iter().map(|state| u64::MAX - state.bytes().0));
        let states = largest_first.map(|index| &all[index]);
        let fits = |state: &&StateUse| {
            let fits = state.bytes().0 <= room;
            room -= if fits { state.bytes().0 } else { 0 };
            fits
        };
        let (moved, left): (Vec<_>, Vec<_>) = states.partition(fits);
        (!moved.is_empty()).then(|| left.into_iter().map(|state| state.name.clone()).collect())
    }
}

/// Plans `request` in the tiles of `grid`. The states of all tiles of a clip are in host memory,
/// except the tables of norms. Those of the other tiles reduce the budget of each.
fn in_tiles(request: &Request, grid: &Grid, plan: &dyn Fn(&Job) -> Result<Plan>) -> Result<Vec<TilesOfSize>> {
    let with = |size, memory_budget, count| {
        let request = Request { memory_budget, ..request.of_tile(size) };
        let host_states = if request.parts().contains(&Part::Next) { HostStates::All } else { HostStates::None };
        TilesOfSize::with(request, host_states, count, plan)
    };
    let sizes = grid.sizes().into_iter().map(|(size, count)| (size, count as u64));
    let Some(budget) = request.memory_budget else {
        return sizes.map(|(size, count)| with(size, None, count)).collect();
    };
    // Without a budget, a plan shows the tables that its tile keeps. An image keeps none.
    let free = match request.parts() {
        [_] => Vec::new(),
        _ => sizes.clone().map(|(size, count)| with(size, None, count)).collect::<Result<_>>()?,
    };
    let all = kept_bytes(free.iter(), 1);
    let (mut planned, mut refused) = (Vec::new(), None);
    for (index, (size, count)) in sizes.enumerate() {
        let own = free.get(index).map_or(Bytes(0), |tiles| tiles.part(1).memory.states);
        let others = all.saturating_sub(own);
        match with(size, Some(budget.saturating_sub(others)), count) {
            Ok(tiles) => planned.push(tiles),
            Err(error @ Error::Budget { .. }) => refused = Some(hardest(refused, beside(budget, others, error))),
            Err(error) => return Err(error),
        }
    }
    refused.map_or(Ok(planned), Err)
}

/// Chooses between the errors of several plans that have to stay within one budget: the error of
/// the plan that needs the most memory.
fn hardest(before: Option<Error>, error: Error) -> Error {
    match (before, &error) {
        (Some(before @ Error::Budget { smallest, .. }), Error::Budget { smallest: other, .. })
            if *other <= smallest =>
        {
            before
        }
        (None | Some(Error::Budget { .. }), _) => error,
        (Some(before), _) => before,
    }
}

/// Chooses between the error with all states in host memory and the error with none: the one with
/// the smaller budget, because either plan will do.
fn easier(all: Error, none: Error) -> Error {
    match (&all, &none) {
        (Error::Budget { smallest, .. }, Error::Budget { smallest: other, .. }) if other < smallest => none,
        _ => all,
    }
}

/// Returns the bytes that all tiles keep on the device, in part `index`: on a GPU the norms'
/// tables.
fn kept_bytes<'a>(tiles: impl Iterator<Item = &'a TilesOfSize>, index: u64) -> Bytes {
    Bytes(tiles.map(|tiles| tiles.part(index).memory.states.0 * tiles.count).sum())
}

/// Converts the error about a tile's budget into one about the clip's `budget`, of which other
/// tiles take `others` bytes.
fn beside(budget: Bytes, others: Bytes, error: Error) -> Error {
    match error {
        Error::Budget { image, smallest, seconds, .. } => {
            Error::Budget { budget, image, smallest: smallest + others, seconds }
        }
        error => error,
    }
}

/// Checks that the later parts read every state that the first part keeps.
fn check_states(first: &Plan, later: &Plan) {
    for state in &first.states {
        assert!(later.states.contains(state), "the first part keeps {state:?} for nobody");
    }
}
