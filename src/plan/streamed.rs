//! Plans networks in which one pass makes nearly everything. A few chunks of each tensor exist at
//! once: smaller chunks take less memory and more launches.
//!
//! The default plan has the smallest peak among the plans within a tenth of the fastest, as the
//! device's class predicts them. On CPU drivers, which any launch keeps busy, it may take half as
//! long again. [`PlanOptions::least_memory`] asks for the smallest peak at any speed.

use crate::error::Result;
use crate::limits::DeviceLimits;
use crate::plan::device_class::DeviceClass;
use crate::plan::fused::Fused;
use crate::plan::node::{Node, pass_scratch};
use crate::plan::nodes::nodes;
use crate::plan::{Plan, PlanOptions};
use crate::tensor::Bytes;

/// Sizes of chunks that are tried.
const ON_GPUS: &[u64] = &[64 << 20, 32 << 20, 16 << 20, 8 << 20, 4 << 20, 2 << 20, 1 << 20];
const ON_CPUS: &[u64] = &[4 << 20, 2 << 20, 1 << 20];
/// Transformed filters that a pass on a GPU may keep.
const KEPT_FILTERS: Bytes = Bytes(1 << 30);
/// [`PlanOptions::filter_part`] of a plan whose launches have more workgroups, and the fewest cores
/// for which it is tried. The usual launches keep fewer cores busy.
const LARGER_FILTER_PART: (u64, u32) = (8, 64);
/// Beyond this a plan takes long to make, and has too many steps to run.
const MOST_STEPS: usize = 1 << 17;

/// Plans `fused`. Returns the default plan and true or, if that exceeds the budget, false with the
/// plan that has the smallest peak, which does not depend on the budget. After it comes the fastest
/// plan within the budget, if that is another one.
///
/// # Errors
/// See [`Plan::new`].
pub(super) fn plan(fused: &Fused, limits: &DeviceLimits, options: &PlanOptions) -> Result<(Vec<Plan>, bool)> {
    let class = DeviceClass::of(limits);
    let gpu = class.is_gpu();
    let slower = match (options.least_memory, gpu) {
        (true, _) => f64::INFINITY,
        (false, true) => 1.1,
        (false, false) => 1.5,
    };
    let fits = |plan: &Plan| options.memory_budget.is_none_or(|budget| plan.memory.peak() <= budget);
    let mut plans = Plans { all: Vec::new(), slower };
    let mut before = None;
    let mut cuts = Vec::new();
    for &chunk in if gpu { ON_GPUS } else { ON_CPUS } {
        let cut = PlanOptions { chunk_limit: options.chunk_limit.min(Bytes(chunk)), ..options.clone() };
        let made = nodes(fused, limits, &cut).and_then(|nodes| {
            let keeps = keeps_filters(&nodes, &cut);
            let known = before.replace((nodes, keeps));
            // A small image is one chunk either way.
            let plan = if known == before { None } else { Some(Plan::whole(fused, limits, &cut)?) };
            Ok((plan, keeps))
        });
        match made {
            Ok((None, _)) => {}
            Ok((Some(plan), keeps)) => {
                plans.add(plan);
                cuts.push((cut, keeps));
            }
            // Even the largest of these chunks may be too many.
            Err(_) if plans.all.is_empty() => {
                plans.add(Plan::whole(fused, limits, options)?);
                break;
            }
            Err(_) => break,
        }
        if plans.is_long() || plans.is_slow() && fits(&plans.all[plans.default()].plan) {
            break;
        }
    }
    if let Some((cut, keeps)) = cuts.get(plans.default()).cloned().filter(|_| gpu) {
        let (filter_part, least_cores) = LARGER_FILTER_PART;
        let larger = PlanOptions { filter_part, ..cut.clone() };
        if class.cores >= least_cores && nodes(fused, limits, &larger)? != nodes(fused, limits, &cut)? {
            Plan::whole(fused, limits, &larger).into_iter().for_each(|plan| plans.add(plan));
        }
        if !keeps && options.filter_limit.is_none() {
            let cut = PlanOptions { filter_limit: Some(KEPT_FILTERS), ..cut };
            Plan::whole(fused, limits, &cut).into_iter().for_each(|plan| plans.add(plan));
        }
    }
    let default = plans.default();
    Ok(plans.choose(default, fits))
}

/// True if any pass over `nodes` keeps all its transformed filters.
fn keeps_filters(nodes: &[Node], cut: &PlanOptions) -> bool {
    let all: Vec<usize> = (0..nodes.len()).collect();
    pass_scratch(nodes, &all, cut).1
}

/// A plan with its predicted seconds, which take a look at each step.
struct Timed {
    plan: Plan,
    seconds: f64,
}

/// Plans that compute nothing twice, at least one.
struct Plans {
    all: Vec<Timed>,
    /// Most times the fastest plan's time that the default plan takes.
    slower: f64,
}

impl Plans {
    fn add(&mut self, plan: Plan) {
        self.all.push(Timed { seconds: plan.predicted_seconds(), plan });
    }

    /// Returns the most seconds that the default plan takes.
    fn most_seconds(&self) -> f64 {
        self.all.iter().map(|one| one.seconds).fold(f64::INFINITY, f64::min) * self.slower
    }

    /// True if the last plan takes longer than a default plan may.
    fn is_slow(&self) -> bool {
        self.all[self.all.len() - 1].seconds > self.most_seconds()
    }

    /// True if the last plan has so many steps that no plan with more should be made.
    fn is_long(&self) -> bool {
        self.all[self.all.len() - 1].plan.steps.len() > MOST_STEPS
    }

    /// Returns the index of the default plan.
    fn default(&self) -> usize {
        let most = self.most_seconds();
        let indices = (0..self.all.len()).filter(|index| self.all[*index].seconds <= most);
        indices.min_by_key(|index| self.all[*index].plan.memory.peak()).unwrap_or_default()
    }

    /// Returns the plan `default` and true if it fits, else the smallest and the fastest that fits.
    fn choose(mut self, default: usize, fits: impl Fn(&Plan) -> bool) -> (Vec<Plan>, bool) {
        let all = &self.all;
        if fits(&all[default].plan) {
            return (vec![self.all.swap_remove(default).plan], true);
        }
        let smallest = (0..all.len()).min_by_key(|index| all[*index].plan.memory.peak()).unwrap_or(default);
        let mut fastest = smallest;
        for (index, one) in all.iter().enumerate() {
            if one.seconds < all[fastest].seconds && fits(&one.plan) {
                fastest = index;
            }
        }
        self.all.swap(0, smallest);
        if fastest == smallest {
            self.all.truncate(1);
        } else {
            self.all.swap(1, if fastest == 0 { smallest } else { fastest });
            self.all.truncate(2);
        }
        (self.all.into_iter().map(|one| one.plan).collect(), false)
    }
}
