//! The time that steps take on this device, learned from the times of submissions.

use std::ops::Range;
use std::time::Duration;

use crate::limits::DeviceKind;
use crate::ordered::Map;
use crate::plan::turns::Turn;
use crate::plan::{Plan, Step};

/// The work of a submission, by kernel.
pub(super) type Works = Map<KernelIndex, f64>;

/// The index of a plan's kernel; `None` for transfers and copies.
type KernelIndex = Option<usize>;

/// The speed of a device, as measured so far.
#[derive(Debug)]
pub(super) struct SubmissionPace {
    /// Seconds for a unit of work, see [`Plan::work`].
    seconds: f64,
    /// For each kernel that has run, its time for a unit of work, as a multiple of `seconds`.
    factors: Map<KernelIndex, f64>,
}

impl SubmissionPace {
    /// The factor of a kernel that has not run yet. It is high because a submission that is too
    /// short costs little, and one that is too long costs a page its frames.
    const UNKNOWN: f64 = 3.0;

    /// Returns the pace of a modest device of this kind.
    pub(super) fn guess(kind: DeviceKind) -> Self {
        let seconds = match kind {
            DeviceKind::Cpu | DeviceKind::Host => 1e-10,
            DeviceKind::Gpu => 5e-12,
        };
        Self { seconds, factors: Map::new() }
    }

    /// Returns the step after the last one of a submission that begins with `start` and should take
    /// `target` in this part of a clip.
    pub(super) fn submission_end(&self, plan: &Plan, turn: Turn, start: usize, target: Duration) -> usize {
        let seconds = |step: &Step| {
            if !step.runs(turn) {
                return 0.0;
            }
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let work = plan.work(step) as f64;
            work * self.seconds * self.factors.get(&kind(step)).unwrap_or(&Self::UNKNOWN)
        };
        plan.submission_end(start, target.as_secs_f64(), seconds)
    }

    /// Adapts to a submission with `works` that took `seconds`. Moves the pace of all work halfway
    /// to the measured pace. The remaining difference goes to the factors of the kernels, by their
    /// share of the time. Submissions with little work are ignored: they say little. Averages times
    /// and not speeds, because a browser that reports two submissions at once makes the second seem
    /// to take no time.
    pub(super) fn adapt(&mut self, works: &Works, seconds: f64) {
        const TELLING_WORK: f64 = 5e7;
        // Beyond these limits the end was reported late, or together with another submission, which
        // says nothing about its kernels.
        const LEAST: f64 = 0.5;
        const MOST: f64 = 4.0;
        const FASTEST: f64 = 1e-18;
        if works.values().sum::<f64>() < TELLING_WORK {
            return;
        }
        let all: f64 = works.iter().map(|(kind, work)| work * *self.factors.or_insert(*kind, 1.0)).sum();
        // The pace must stay above zero, although clocks may round a time down to it.
        self.seconds = (0.5 * (self.seconds + seconds / all)).max(FASTEST);
        let rest = (seconds / (all * self.seconds)).clamp(LEAST, MOST) - 1.0;
        for (kind, work) in works.iter() {
            if let Some(factor) = self.factors.get_mut(kind) {
                let share = work * *factor / all;
                *factor *= 1.0 + 0.5 * rest * share;
            }
        }
    }
}

/// Returns the work of `steps` in a part of a clip, less `done` bytes of the first step that were
/// transferred before,
/// plus `begun` bytes of the step after the last.
pub(super) fn works(plan: &Plan, turn: Turn, steps: Range<usize>, done: u64, begun: u64) -> Works {
    let mut works = Works::new();
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let mut add = |kind, work: u64, sign: f64| *works.or_insert(kind, 0.0) += sign * work as f64;
    for step in plan.steps[steps].iter().filter(|step| step.runs(turn)) {
        add(kind(step), plan.work(step), 1.0);
    }
    add(None, plan.transfer_work(begun), 1.0);
    add(None, plan.transfer_work(done), -1.0);
    works.retain(|_, work| *work > 0.0);
    works
}

fn kind(step: &Step) -> KernelIndex {
    step.action.dispatch().map(|(variant, _)| variant)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the work of `kernel` alone that should take `target` seconds.
    fn work(pace: &SubmissionPace, kernel: usize, target: f64) -> f64 {
        target / (pace.seconds * pace.factors.get(&Some(kernel)).unwrap_or(&SubmissionPace::UNKNOWN))
    }

    #[test]
    fn submissions_that_end_together_do_not_mislead() {
        const TRUE_SECONDS: f64 = 2e-11;
        let mut pace = SubmissionPace::guess(DeviceKind::Cpu);
        for turn in 0..40 {
            let work = work(&pace, 0, 0.2);
            let both = work * TRUE_SECONDS * 2.0;
            pace.adapt(&[(Some(0), work)].into_iter().collect(), if turn % 2 == 0 { both } else { 0.0 });
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
        let mut pace = SubmissionPace::guess(DeviceKind::Gpu);
        for turn in 0..40 {
            let kernel = turn / 5 % 2;
            let work = work(&pace, kernel, TARGET);
            let took = work * TRUE_SECONDS[kernel];
            // Both kernels have run by then.
            if turn >= 20 {
                assert!((0.6..1.7).contains(&(took / TARGET)), "turn {turn}: {took} s, {pace:?}");
            }
            pace.adapt(&[(Some(kernel), work)].into_iter().collect(), took);
        }
    }
}
