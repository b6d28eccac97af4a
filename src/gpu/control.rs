//! How a run is watched and stopped, and what it took.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::limits::DeviceKind;

/// How a run is watched and stopped.
#[derive(Default)]
pub struct Control<'a> {
    /// Called after each submission.
    pub progress: Option<&'a mut dyn FnMut(Progress<'_>)>,
    /// Set to true, from any thread, to stop the run before its next submission.
    pub cancel: Option<Arc<AtomicBool>>,
    /// How long one submission should take; `None` for what suits the device. Zero submits every step by itself.
    pub submission_target: Option<Duration>,
}

impl std::fmt::Debug for Control<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("progress", &self.progress.is_some()).field("cancel", &self.cancel).finish()
    }
}

impl Control<'_> {
    /// An error once the caller has cancelled.
    pub(super) fn check(&self) -> Result<()> {
        let cancelled = self.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed));
        if cancelled { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// How long one submission should take: short enough for watchdogs, progress and cancel, long enough to be worth submitting.
    pub(super) fn target(&self, kind: DeviceKind) -> Duration {
        self.submission_target.unwrap_or_else(|| Self::default_target(kind))
    }

    /// How long one submission should take where nobody says.
    pub fn default_target(kind: DeviceKind) -> Duration {
        match kind {
            DeviceKind::Cpu => Duration::from_millis(200),
            // A page's own frames wait behind a submission.
            DeviceKind::Gpu if cfg!(target_arch = "wasm32") => Duration::from_millis(16),
            DeviceKind::Gpu => Duration::from_millis(60),
        }
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Multiply-adds done, of `total`.
    pub done: u64,
    /// Multiply-adds of the whole plan.
    pub total: u64,
    /// Steps of the plan that are done, of `steps`. In tiles: of this tile.
    pub step: usize,
    /// Steps of the plan.
    pub steps: usize,
    /// The stage that was reached, in diffusers' spelling.
    pub stage: &'a str,
}

/// What a run took.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// From the upload of the latents until the result is in host memory and whoever receives it is done.
    pub seconds: f64,
    /// The part of `seconds` that whoever received the result took, mostly while the device was working.
    pub sink_seconds: f64,
    /// Each submission.
    pub submissions: Vec<Submission>,
    /// GPU time of each stage in seconds, by timestamps; `None` where the device has none or the plan did not ask.
    pub stage_seconds: Option<Vec<f64>>,
}

/// Steps that were submitted together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Submission {
    /// By index into the plan's steps. A transfer that took several submissions belongs to the last of them.
    pub steps: Range<usize>,
    /// From the end of the submission before to the end of this one, as the host saw it.
    pub seconds: f64,
}

/// The speed of a device, as measured so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Seconds that a multiply-add takes.
    seconds: f64,
}

impl Pace {
    /// What a modest device of this kind does.
    pub(super) fn guess(kind: DeviceKind) -> Self {
        match kind {
            DeviceKind::Cpu => Self { seconds: 1e-10 },
            DeviceKind::Gpu => Self { seconds: 5e-12 },
        }
    }

    /// How much work should take `target`.
    pub(super) fn work(self, target: Duration) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive count far below 2^63")]
        let work = (target.as_secs_f64() / self.seconds) as u64;
        work
    }

    /// Moves halfway to what was just measured. Submissions of little work say little about speed. Times are averaged, not speeds: a browser that
    /// tells of two submissions at once makes the second seem to have taken none.
    pub(super) fn adapt(&mut self, work: u64, seconds: f64) {
        const TELLING_MACS: u64 = 50_000_000;
        if work >= TELLING_MACS {
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let measured = seconds / work as f64;
            self.seconds = 0.5 * (self.seconds + measured);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submissions_that_end_together_do_not_mislead() {
        const TRUE_SECONDS: f64 = 2e-11;
        let target = Duration::from_millis(200);
        let mut pace = Pace::guess(DeviceKind::Cpu);
        for turn in 0..40 {
            let work = pace.work(target);
            #[expect(clippy::cast_precision_loss, reason = "an estimate")]
            let both = work as f64 * TRUE_SECONDS * 2.0;
            pace.adapt(work, if turn % 2 == 0 { both } else { 0.0 });
            if turn > 10 {
                assert!((0.6..1.5).contains(&(pace.seconds / TRUE_SECONDS)), "turn {turn}: {pace:?}");
            }
        }
    }
}
