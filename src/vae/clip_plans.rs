//! Plans of clips, made before anything is allocated.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::job::Job;
use super::options::{DecodeOptions, EncodeOptions};
use super::plans::{base, check_clip_decode, plan};
use super::tile_plans::{check_patch, check_sizes, hardest, tile_options};
use crate::error::{Error, Result};
use crate::limits::DeviceLimits;
use crate::model::blocks::Part;
use crate::model::config::AutoencoderConfig;
use crate::model::graph::WeightSlice;
use crate::ordered::Ordered as _;
use crate::plan::{HostStates, Plan, PlanOptions, StateUse, WeightUse, Weights};
use crate::tensor::{Bytes, Size, Storage};
use crate::tiling::Grid;

/// The plans of a clip: one for its first part and one for every other part. Each part has one
/// frame of latents. In the first part that is one frame of an image, in the others several.
#[derive(Debug, Clone, PartialEq)]
pub struct ClipPlans {
    /// The plan of the first part.
    pub first: Plan,
    /// The plan of every other part.
    pub next: Plan,
    /// The states that are kept in host memory between parts.
    host_states: HostStates,
    /// The plans of each size of tile, if the clip is decoded in tiles. `first` and `next` are then
    /// those of the tiles that take the most memory.
    tiles: Vec<TilesOfSize>,
}

/// The tiles of one size. Each tile is a clip.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TilesOfSize {
    pub(super) plans: ClipPlans,
    /// The part of the clip's budget that the other tiles leave for one of these, bytes.
    pub(super) budget: Option<Bytes>,
    count: u64,
}

impl ClipPlans {
    /// Returns the plan of the first part, or of a part `after` it.
    pub fn of(&self, after: bool) -> &Plan {
        if after { &self.next } else { &self.first }
    }

    /// Returns both plans, the first part's first.
    pub(super) fn into_parts(self) -> [Plan; 2] {
        [self.first, self.next]
    }

    /// Returns the predicted peak of all GPU memory, bytes. It does not depend on the clip's
    /// length.
    pub fn peak(&self) -> Bytes {
        self.peak_of(false).max(self.peak_of(true))
    }

    /// Returns the predicted peak of the first part, or of the parts `after` it. In tiles, it
    /// includes the norms' tables of all tiles, which stay on the device.
    fn peak_of(&self, after: bool) -> Bytes {
        let alone = |TilesOfSize { plans, .. }: &TilesOfSize| {
            plans.of(after).memory.peak().saturating_sub(plans.of(after).table_bytes())
        };
        match self.tiles.iter().map(alone).max() {
            Some(most) => most + table_bytes(&self.tiles, after),
            None => self.of(after).memory.peak(),
        }
    }

    /// Returns the host memory that the clip takes for states and parked data, bytes. It does not
    /// depend on the clip's length.
    pub fn host_bytes(&self) -> Bytes {
        let own = |plans: &Self| plans.first.host_bytes().max(plans.next.host_bytes()).0;
        let kept = |plans: &Self| plans.next.states.iter().map(|state| state.bytes().0).sum::<u64>();
        // The states of all tiles, and the data that waits while one of them is decoded.
        let all = self.tiles.iter().map(|tiles| kept(&tiles.plans) * tiles.count).sum::<u64>();
        match self.tiles.iter().map(|TilesOfSize { plans, .. }| own(plans).saturating_sub(kept(plans))).max() {
            Some(waits) => Bytes(all + waits),
            None => Bytes(own(self)),
        }
    }

    /// Returns the tiles of `latent_size`.
    pub(super) fn tiles_of(&self, latent_size: Size) -> &TilesOfSize {
        let found = self.tiles.iter().find(|tiles| tiles.plans.next.input().size == latent_size);
        found.expect("every tile has one of the planned sizes")
    }

    /// Adds the weights of both plans to the peak of each: without a budget, all weights stay on
    /// the device.
    fn with_all_weights(mut self) -> Self {
        let of_tiles = |tiles: TilesOfSize| TilesOfSize { plans: tiles.plans.with_all_weights(), ..tiles };
        self.tiles = self.tiles.into_iter().map(of_tiles).collect();
        let rests = [rest(&self.first, &self.next), rest(&self.next, &self.first)];
        for (plan, rest) in [&mut self.first, &mut self.next].into_iter().zip(rests) {
            plan.memory.weights = plan.memory.weights + rest;
        }
        self
    }

    /// Returns the bytes of all states, on the device and in host memory.
    pub fn state_bytes(&self) -> Bytes {
        if self.tiles.is_empty() {
            return self.next.states.iter().map(|state| state.bytes() + state.table).sum();
        }
        Bytes(self.tiles.iter().map(|tiles| tiles.plans.state_bytes().0 * tiles.count).sum())
    }

    pub(super) fn decodes(&self, latent_size: Size, unscaled: bool, options: DecodeOptions) -> [Job; 2] {
        [Part::First, Part::Next].map(|part| Job::DecodePart {
            latent_size,
            unscaled,
            part,
            host_states: self.host_states.clone(),
            options,
        })
    }

    pub(super) fn encodes(&self, image_size: Size, options: EncodeOptions) -> [Job; 2] {
        let host_states = || self.host_states.clone();
        [Part::First, Part::Next].map(|part| Job::EncodePart { image_size, part, host_states: host_states(), options })
    }

    /// Plans both parts by `plan`. Keeps states on the device as far as `budget` leaves room for
    /// them, and the others in host memory.
    fn new(budget: Option<Bytes>, plan: impl Fn(Part, HostStates) -> Result<Plan>) -> Result<Self> {
        let both = |host_states| Self::both(host_states, &plan);
        let Some(budget) = budget else { return both(HostStates::None) };
        match both(HostStates::All) {
            Ok(plans) => {
                // With less room for the rest, the search may end with a slower plan. If that costs
                // more than it gains, all states stay in host memory. With fewer states there, the
                // peak may also be a size that fails when it is given as a budget, because a budget
                // is checked with all states there, or with none.
                let is_a_budget =
                    |filled: &Self| filled.host_states == HostStates::None || filled.peak() >= plans.peak();
                let better = |filled: &Self| filled.pace() <= plans.pace() && is_a_budget(filled);
                let mut filled = plans.fillings(budget).into_iter().filter_map(|fewer| both(fewer).ok().filter(better));
                Ok(filled.next().unwrap_or(plans))
            }
            // Staging for host memory takes room as well, for a small clip more than its states.
            Err(error @ Error::Budget { .. }) => both(HostStates::None).map_err(|none| easier(error, none)),
            Err(error) => Err(error),
        }
    }

    /// Plans both parts by `plan`, with the same `host_states`.
    fn both(host_states: HostStates, plan: &dyn Fn(Part, HostStates) -> Result<Plan>) -> Result<Self> {
        match [Part::First, Part::Next].map(|part| plan(part, host_states.clone())) {
            [Ok(first), Ok(next)] => {
                check_states(&first, &next);
                Ok(Self { first, next, host_states, tiles: Vec::new() })
            }
            [Err(first), Err(next)] => Err(hardest(Some(first), next)),
            [Err(error), Ok(_)] | [Ok(_), Err(error)] => Err(error),
        }
    }

    /// Plans a clip in the tiles of `grid`, each size of tile by `plan`. One tile is decoded at a
    /// time. The states of all tiles are in host memory, except the tables of norms, which reduce
    /// the `budget` of each tile.
    fn in_tiles(
        grid: &Grid,
        budget: Option<Bytes>,
        plan: impl Fn(Size, Option<Bytes>, Part, HostStates) -> Result<Plan>,
    ) -> Result<Self> {
        let both =
            |size, budget| Self::both(HostStates::All, &|part, host_states| plan(size, budget, part, host_states));
        let free = |(size, count)| Ok(TilesOfSize { plans: both(size, None)?, budget: None, count: count as u64 });
        let mut tiles: Vec<TilesOfSize> = grid.sizes().into_iter().map(free).collect::<Result<_>>()?;
        if let Some(budget) = budget {
            let all = table_bytes(&tiles, true);
            let mut refused = None;
            for tiles in &mut tiles {
                let (size, others) =
                    (tiles.plans.next.input().size, all.saturating_sub(tiles.plans.next.table_bytes()));
                tiles.budget = Some(budget.saturating_sub(others));
                match both(size, tiles.budget) {
                    Ok(plans) => tiles.plans = plans,
                    Err(error) => refused = Some(hardest(refused, beside(others, error))),
                }
            }
            if let Some(error) = refused {
                return Err(error);
            }
        }
        let largest = tiles.iter().map(|tiles| &tiles.plans).max_by_key(|plans| plans.peak());
        let largest = largest.expect("an image has at least one tile").clone();
        Ok(Self { tiles, ..largest })
    }

    /// Returns the seconds of a part at the nominal pace, to compare plans.
    fn pace(&self) -> f64 {
        self.next.predicted_seconds()
    }

    /// Returns which states may stay in host memory, in plans that keep all there, once the rest of
    /// `budget` is filled. Those that leave the least there come first.
    fn fillings(&self, budget: Bytes) -> Vec<HostStates> {
        let (all, peak, staging) = (self.state_bytes().0, self.peak().0, self.next.memory.staging.0);
        let mut fillings = Vec::new();
        // No state goes through host memory then, so staging is not counted.
        if all + peak - staging <= budget.0 {
            fillings.push(HostStates::None);
        }
        fillings.extend(self.filling(budget.0.saturating_sub(peak)).map(|left| HostStates::Of(Arc::new(left))));
        fillings
    }

    /// Returns the names of the states that stay in host memory when the largest that fit into
    /// `room` bytes move to the device. `None` if no state moves.
    fn filling(&self, mut room: u64) -> Option<BTreeSet<String>> {
        let mut states: Vec<&StateUse> = self.next.states.iter().collect();
        states.sort_by_key(|state| std::cmp::Reverse(state.bytes()));
        let fits = |state: &&StateUse| {
            let fits = state.bytes().0 <= room;
            room -= if fits { state.bytes().0 } else { 0 };
            fits
        };
        let (moved, left): (Vec<_>, Vec<_>) = states.into_iter().partition(fits);
        (!moved.is_empty()).then(|| left.into_iter().map(|state| state.name.clone()).into_set())
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

/// Returns the bytes of the norms' tables that all `tiles` keep, after the first part or `after`
/// others.
fn table_bytes(tiles: &[TilesOfSize], after: bool) -> Bytes {
    Bytes(tiles.iter().map(|tiles| tiles.plans.of(after).table_bytes().0 * tiles.count).sum())
}

/// Converts the error about a tile's budget into one about the clip's budget, of which other tiles
/// take `others` bytes.
fn beside(others: Bytes, error: Error) -> Error {
    match error {
        Error::Budget { budget, image, smallest, seconds } => {
            Error::Budget { budget: budget + others, image, smallest: smallest + others, seconds }
        }
        error => error,
    }
}

/// Checks that the next part reads every state that the first part keeps.
fn check_states(first: &Plan, next: &Plan) {
    for state in &first.states {
        assert!(next.states.contains(state), "the first part keeps {state:?} for nobody");
    }
}

/// Returns the bytes of the weights of `other` that `plan` does not use.
fn rest(plan: &Plan, other: &Plan) -> Bytes {
    let own = plan.weights.iter().map(WeightUse::key).into_set();
    let others =
        other.weights.iter().filter(|weight| weight.take != WeightSlice::Transform && !own.contains(&weight.key()));
    others.map(|weight| weight.bytes).sum()
}

/// Plans the decode of a clip of latents of `latent_size`, without a device. See
/// [`super::plan_decode`].
///
/// # Errors
/// See [`super::plan_decode`]; [`Error::Input`] for a network without a time axis, for a picture
/// that stays on the device, and for an estimate.
pub fn plan_clip_decode(
    config: &AutoencoderConfig,
    latent_size: Size,
    limits: &DeviceLimits,
    storage: Storage,
    unscaled: bool,
    options: &DecodeOptions,
) -> Result<ClipPlans> {
    let plans = decode(config, latent_size, limits, |_| base(storage, Weights::Host), unscaled, options)?;
    Ok(if options.memory_budget.is_none() { plans.with_all_weights() } else { plans })
}

/// Plans the encode of a clip of frames of `image_size` pixels, without a device. See
/// [`super::plan_encode`].
///
/// # Errors
/// See [`super::plan_encode`]; [`Error::Input`] for a network without a time axis.
pub fn plan_clip_encode(
    config: &AutoencoderConfig,
    image_size: Size,
    limits: &DeviceLimits,
    storage: Storage,
    options: &EncodeOptions,
) -> Result<ClipPlans> {
    let plans = encode(config, image_size, limits, |_| base(storage, Weights::Host), options)?;
    Ok(if options.memory_budget.is_none() { plans.with_all_weights() } else { plans })
}

pub(super) fn decode(
    config: &AutoencoderConfig,
    latent_size: Size,
    limits: &DeviceLimits,
    base: impl Fn(Part) -> PlanOptions,
    unscaled: bool,
    options: &DecodeOptions,
) -> Result<ClipPlans> {
    check_clip_decode(config, latent_size, unscaled, options)?;
    let part_of = |latent_size, options, part, host_states| {
        let job = Job::DecodePart { latent_size, unscaled, part, host_states, options };
        plan(config, &job, limits, &base(part))
    };
    match options.tiling.grid(latent_size) {
        Some(grid) => {
            check_patch(config, unscaled)?;
            check_sizes(&grid)?;
            ClipPlans::in_tiles(&grid, options.memory_budget, |size, memory_budget, part, host_states| {
                let options = DecodeOptions { memory_budget, ..tile_options(options) };
                part_of(size, options, part, host_states)
            })
        }
        None => {
            ClipPlans::new(options.memory_budget, |part, host_states| part_of(latent_size, *options, part, host_states))
        }
    }
}

pub(super) fn encode(
    config: &AutoencoderConfig,
    image_size: Size,
    limits: &DeviceLimits,
    base: impl Fn(Part) -> PlanOptions,
    options: &EncodeOptions,
) -> Result<ClipPlans> {
    ClipPlans::new(options.memory_budget, |part, host_states| {
        let job = Job::EncodePart { image_size, part, host_states, options: *options };
        plan(config, &job, limits, &base(part))
    })
}
