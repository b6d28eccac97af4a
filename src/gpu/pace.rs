//! How long steps take on this device, learned from what submissions took.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use crate::limits::DeviceKind;
use crate::plan::{Action, Plan, Step};

/// What a submission consists of: work, by kernel.
pub(super) type Works = BTreeMap<Kind, f64>;

/// The index of a plan's kernel; `None` for transfers and copies.
type Kind = Option<usize>;

/// The speed of a device, as measured so far.
#[derive(Debug)]
pub(super) struct Pace {
    /// Seconds that a unit of work takes, see [`Plan::work`].
    seconds: f64,
    /// How many times as long it takes in each kernel that has run.
    factors: BTreeMap<Kind, f64>,
}

impl Pace {
    /// A kernel that has not run yet counts as so many times as slow as the others: a short
    /// submission costs little, a long one a page its frames.
    const UNKNOWN: f64 = 3.0;

    /// What a modest device of this kind does.
    pub(super) fn guess(kind: DeviceKind) -> Self {
        let seconds = match kind {
            DeviceKind::Cpu => 1e-10,
            DeviceKind::Gpu => 5e-12,
        };
        Self { seconds, factors: BTreeMap::new() }
    }

    /// The step after the last of the submission that begins with `start` and should take `target`.
    pub(super) fn submission_end(&self, plan: &Plan, start: usize, target: Duration) -> usize {
        let seconds = |step: &Step| {
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let work = plan.work(step) as f64;
            work * self.seconds * self.factors.get(&kind(step)).unwrap_or(&Self::UNKNOWN)
        };
        plan.submission_end(start, target.as_secs_f64(), seconds)
    }

    /// Moves halfway to what was just measured: the pace of all work, and by what is left of the
    /// difference that of the kernels which took most. Submissions of little work say little. Times
    /// are averaged, not speeds: a browser that tells of two submissions at once makes the second
    /// seem to have taken none.
    pub(super) fn adapt(&mut self, works: &Works, seconds: f64) {
        const TELLING_WORK: f64 = 5e7;
        // Beyond these it was told of late, or with another, which says nothing of its kernels.
        const LEAST: f64 = 0.5;
        const MOST: f64 = 4.0;
        const FASTEST: f64 = 1e-18;
        if works.values().sum::<f64>() < TELLING_WORK {
            return;
        }
        let all: f64 = works.iter().map(|(kind, work)| work * *self.factors.entry(*kind).or_insert(1.0)).sum();
        // Never none at all: clocks may round to it.
        self.seconds = (0.5 * (self.seconds + seconds / all)).max(FASTEST);
        let rest = (seconds / (all * self.seconds)).clamp(LEAST, MOST) - 1.0;
        for (kind, work) in works {
            if let Some(factor) = self.factors.get_mut(kind) {
                let share = work * *factor / all;
                *factor *= 1.0 + 0.5 * rest * share;
            }
        }
    }
}

/// What `steps` are, of the first of which `done` bytes were transferred before; and `begun` bytes
/// of the one after them.
pub(super) fn works(plan: &Plan, steps: Range<usize>, done: u64, begun: u64) -> Works {
    let mut works = Works::new();
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let mut add = |kind, work: u64, sign: f64| *works.entry(kind).or_insert(0.0) += sign * work as f64;
    for step in &plan.steps[steps] {
        add(kind(step), plan.work(step), 1.0);
    }
    add(None, plan.transfer_work(begun), 1.0);
    add(None, plan.transfer_work(done), -1.0);
    works.retain(|_, work| *work > 0.0);
    works
}

fn kind(step: &Step) -> Kind {
    match &step.action {
        Action::Dispatch { variant, .. } => Some(*variant),
        Action::Copy { .. }
        | Action::Fetch { .. }
        | Action::Park { .. }
        | Action::Recall { .. }
        | Action::Keep { .. }
        | Action::Output { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work of `kernel` alone that should take `target` seconds.
    fn work(pace: &Pace, kernel: usize, target: f64) -> f64 {
        target / (pace.seconds * pace.factors.get(&Some(kernel)).unwrap_or(&Pace::UNKNOWN))
    }

    #[test]
    fn submissions_that_end_together_do_not_mislead() {
        const TRUE_SECONDS: f64 = 2e-11;
        let mut pace = Pace::guess(DeviceKind::Cpu);
        for turn in 0..40 {
            let work = work(&pace, 0, 0.2);
            let both = work * TRUE_SECONDS * 2.0;
            pace.adapt(&Works::from([(Some(0), work)]), if turn % 2 == 0 { both } else { 0.0 });
            if turn > 10 {
                let found = pace.seconds * pace.factors[&Some(0)];
                assert!((0.5..2.0).contains(&(found / TRUE_SECONDS)), "turn {turn}: {pace:?}");
            }
        }
    }

    #[test]
    fn a_slower_kernel_has_a_pace_of_its_own() {
        const TARGET: f64 = 0.016;
        const TRUE_SECONDS: [f64; 2] = [2e-12, 1.2e-11];
        let mut pace = Pace::guess(DeviceKind::Gpu);
        for turn in 0..40 {
            let kernel = turn / 5 % 2;
            let work = work(&pace, kernel, TARGET);
            let took = work * TRUE_SECONDS[kernel];
            // By then both have run.
            if turn >= 20 {
                assert!((0.6..1.7).contains(&(took / TARGET)), "turn {turn}: {took} s, {pace:?}");
            }
            pace.adapt(&Works::from([(Some(kernel), work)]), took);
        }
    }
}
