//! What a clip takes, known before anything is allocated.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::job::Job;
use super::options::{DecodeOptions, EncodeOptions};
use super::plans::{base, plan};
use crate::error::{Error, Result};
use crate::limits::DeviceLimits;
use crate::model::blocks::Part;
use crate::model::config::AutoencoderConfig;
use crate::model::graph::Take;
use crate::plan::{HostStates, Plan, PlanOptions, StateUse, WeightKey, WeightUse, Weights};
use crate::tensor::{Bytes, Size, Storage};

/// The plans of a clip: of its first part, one frame of latents that is one frame of an image, and of every other, one frame of latents that is several.
#[derive(Debug, Clone, PartialEq)]
pub struct ClipPlans {
    /// The first part's.
    pub first: Plan,
    /// That of all others.
    pub next: Plan,
    /// What of that which parts leave for each other is in host memory.
    host_states: HostStates,
}

impl ClipPlans {
    /// The plan of a part that comes after others or not.
    pub fn of(&self, after: bool) -> &Plan {
        if after { &self.next } else { &self.first }
    }

    /// Both, the first part's first.
    pub(super) fn into_parts(self) -> [Plan; 2] {
        [self.first, self.next]
    }

    /// Predicted peak of all GPU memory, however long the clip is.
    pub fn peak(&self) -> Bytes {
        self.first.memory.peak().max(self.next.memory.peak())
    }

    /// Host memory that it takes for what waits there, however long the clip is.
    pub fn host_bytes(&self) -> Bytes {
        self.first.host_bytes().max(self.next.host_bytes())
    }

    /// With the weights of both on the device whichever of them runs: without a budget they stay there.
    fn with_all_weights(mut self) -> Self {
        let rests = [rest(&self.first, &self.next), rest(&self.next, &self.first)];
        for (plan, rest) in [&mut self.first, &mut self.next].into_iter().zip(rests) {
            plan.memory.weights = plan.memory.weights + rest;
        }
        self
    }

    /// What parts keep for the next one, wherever that is.
    pub fn state_bytes(&self) -> Bytes {
        self.next.states.iter().map(|state| state.bytes() + state.table).sum()
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

    /// Plans both parts by `plan`. What they keep is on the device as far as `budget` leaves room for it, and else in host memory.
    fn new(budget: Option<Bytes>, plan: impl Fn(Part, HostStates) -> Result<Plan>) -> Result<Self> {
        let both = |host_states: HostStates| match [Part::First, Part::Next].map(|part| plan(part, host_states.clone()))
        {
            [Ok(first), Ok(next)] => {
                check_states(&first, &next);
                Ok(Self { first, next, host_states })
            }
            [Err(first), Err(next)] => Err(harder(first, next)),
            [Err(error), Ok(_)] | [Ok(_), Err(error)] => Err(error),
        };
        let Some(budget) = budget else { return both(HostStates::None) };
        match both(HostStates::All) {
            Ok(plans) => {
                // With less room for the rest the search may end elsewhere: where that costs more than it gains, all stay there.
                let better = |filled: &Self| filled.pace() <= plans.pace();
                let mut filled = plans.fillings(budget).into_iter().filter_map(|fewer| both(fewer).ok().filter(better));
                Ok(filled.next().unwrap_or(plans))
            }
            // What goes through host memory takes room as well, for a small clip more than it would itself.
            Err(error @ Error::Budget { .. }) => both(HostStates::None).or(Err(error)),
            Err(error) => Err(error),
        }
    }

    /// Seconds of a part at the nominal pace: for comparing plans.
    fn pace(&self) -> f64 {
        self.next.predicted_seconds()
    }

    /// What may stay in host memory of plans that keep all there, once the rest of `budget` is filled, the least first.
    fn fillings(&self, budget: Bytes) -> Vec<HostStates> {
        let (all, peak, staging) = (self.state_bytes().0, self.peak().0, self.next.memory.staging.0);
        let mut fillings = Vec::new();
        // Nothing has to go through host memory then.
        if all + peak - staging <= budget.0 {
            fillings.push(HostStates::None);
        }
        fillings.extend(self.filling(budget.0.saturating_sub(peak)).map(|left| HostStates::Of(Arc::new(left))));
        fillings
    }

    /// The names of what stays in host memory when the largest that fit into `room` move to the device; none if nothing does.
    fn filling(&self, mut room: u64) -> Option<BTreeSet<String>> {
        let mut states: Vec<&StateUse> = self.next.states.iter().collect();
        states.sort_by_key(|state| std::cmp::Reverse(state.bytes()));
        let fits = |state: &&StateUse| {
            let fits = state.bytes().0 <= room;
            room -= if fits { state.bytes().0 } else { 0 };
            fits
        };
        let (moved, left): (Vec<_>, Vec<_>) = states.into_iter().partition(fits);
        (!moved.is_empty()).then(|| left.into_iter().map(|state| state.name.clone()).collect())
    }
}

/// Of why either part has no plan, what a clip needs to hear: both have to keep a budget.
fn harder(first: Error, next: Error) -> Error {
    match (&first, &next) {
        (Error::Budget { smallest, .. }, Error::Budget { smallest: other, .. }) if other > smallest => next,
        (Error::Budget { .. }, Error::TooLarge { .. }) => next,
        _ => first,
    }
}

/// What the first part keeps is what the others read.
fn check_states(first: &Plan, next: &Plan) {
    for state in &first.states {
        assert!(next.states.contains(state), "the first part keeps {state:?} for nobody");
    }
}

/// Bytes of the weights of `other` that `plan` has no use for.
fn rest(plan: &Plan, other: &Plan) -> Bytes {
    let own: BTreeSet<WeightKey> = plan.weights.iter().map(WeightUse::key).collect();
    let others = other.weights.iter().filter(|weight| weight.take != Take::Transform && !own.contains(&weight.key()));
    others.map(|weight| weight.bytes).sum()
}

/// Plans the decode of a clip of latents of `latent_size`, without a device. See [`super::plan_decode`].
///
/// # Errors
/// See [`super::plan_decode`]; [`Error::Input`] for a network that knows no time, and for tiles.
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

/// Plans the encode of a clip of frames of `image_size` pixels, without a device. See [`super::plan_encode`].
///
/// # Errors
/// See [`super::plan_encode`]; [`Error::Input`] for a network that knows no time.
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
    ClipPlans::new(options.memory_budget, |part, host_states| {
        let job = Job::DecodePart { latent_size, unscaled, part, host_states, options: *options };
        plan(config, &job, limits, &base(part))
    })
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
