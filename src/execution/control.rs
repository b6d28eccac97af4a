//! The control of a run by its caller, and the report of its times.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::limits::DeviceKind;

/// Milliseconds that one submission to a GPU should take. In a browser the page needs the GPU for
/// its frames.
const GPU_SUBMISSION: u64 = if cfg!(target_arch = "wasm32") { 16 } else { 60 };

/// The time that the first submission to a GPU should take. Each one after it may take twice as
/// long as the one before. A GPU does not wait for the host then, if a step takes it twice as long
/// as the host takes to record the step.
// In a trace on an H100, 855 steps of TAESD at 1024x1024 took it 17 ms, and the host 5: see
// benches/results/h100.md.
const FIRST_GPU_SUBMISSION: Duration = Duration::from_millis(2);

wasm_not! {
    Send;
    /// A function that hears the progress of a run. Natively it is `Send`.
    pub type OnProgress<'a> = dyn FnMut(Progress<'_>) + 'a
}

/// The progress listener, the cancel flag and the submission length of a run.
#[derive(Default)]
pub struct Control<'a> {
    /// A function that is called after each submission.
    pub progress: Option<&'a mut OnProgress<'a>>,
    /// A flag that any thread may set to true, to stop the run before its next submission.
    pub cancel: Option<Arc<AtomicBool>>,
    /// The time that one submission should take. `None` chooses a time for the device. Zero submits
    /// every step by itself. The first submissions of a run to a GPU are shorter.
    pub submission_target: Option<Duration>,
}

impl std::fmt::Debug for Control<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("progress", &self.progress.is_some()).field("cancel", &self.cancel).finish()
    }
}

impl Control<'_> {
    /// Returns [`Error::Cancelled`] once the caller has set the flag.
    pub(crate) fn check(&self) -> Result<()> {
        let cancelled = self.cancel.as_ref().is_some_and(|cancel| cancel.load(Ordering::Relaxed));
        if cancelled { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Returns the time that one submission should take: short enough for watchdogs, progress and
    /// cancel, and long enough to be worth submitting.
    pub(crate) fn target(&self, kind: DeviceKind) -> Duration {
        self.submission_target.unwrap_or_else(|| Self::default_target(kind))
    }

    /// Returns the times that the submissions of a run should take, one after another.
    pub(crate) fn targets(&self, kind: DeviceKind) -> Targets {
        let most = self.target(kind);
        let next = if kind == DeviceKind::Gpu { most.min(FIRST_GPU_SUBMISSION) } else { most };
        Targets { next, most }
    }

    /// Returns the default time of one submission.
    pub fn default_target(kind: DeviceKind) -> Duration {
        match kind {
            DeviceKind::Cpu => Duration::from_millis(200),
            // A cancel waits for it.
            DeviceKind::Host => Duration::from_millis(30),
            DeviceKind::Gpu => Duration::from_millis(GPU_SUBMISSION),
        }
    }
}

/// The times that the submissions of a run should take.
#[derive(Debug)]
pub(crate) struct Targets {
    /// The time of the next submission.
    pub(crate) next: Duration,
    most: Duration,
}

impl Targets {
    /// Allows the next submission to take twice as long, but no longer than any may take.
    pub(crate) fn grow(&mut self) {
        self.next = self.next.saturating_mul(2).min(self.most);
    }
}

/// The progress of a run.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Multiply-adds that are done, of `total`.
    pub done: u64,
    /// Multiply-adds of the whole plan.
    pub total: u64,
    /// Steps of the plan that are done, of `steps`. In tiles, both count the current tile only.
    pub step: usize,
    /// Steps of the plan in total.
    pub steps: usize,
    /// The stage that was reached, in diffusers' spelling.
    pub stage: &'a str,
}

/// The times of a run.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// Seconds from the upload of the input until the receiver has the complete result in host
    /// memory.
    pub seconds: f64,
    /// Seconds, of `seconds`, that the receiver of the result took, mostly while the device was
    /// working.
    pub sink_seconds: f64,
    /// The submissions, in order.
    pub submissions: Vec<Submission>,
    /// The GPU time of each stage in seconds, by timestamps. `None` if the device has no timestamps
    /// or the plan did not ask for them.
    pub stage_seconds: Option<Vec<f64>>,
}

/// Steps that were submitted together, and their time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Submission {
    /// The indices of the plan's steps. A transfer that took several submissions belongs to the
    /// last of them.
    pub steps: Range<usize>,
    /// Seconds from the end of the previous submission to the end of this one, as seen by the host.
    pub seconds: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_submissions_to_a_gpu_are_short() {
        let of = |control: &Control<'_>, kind| {
            let mut targets = control.targets(kind);
            let mut milliseconds = Vec::new();
            for _ in 0..7 {
                milliseconds.push(targets.next.as_millis());
                targets.grow();
            }
            milliseconds
        };
        let every = |milliseconds| Control {
            submission_target: Some(Duration::from_millis(milliseconds)),
            ..Control::default()
        };
        assert_eq!(of(&Control::default(), DeviceKind::Gpu), [2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(of(&Control::default(), DeviceKind::Cpu), [200; 7]);
        assert_eq!(of(&every(5), DeviceKind::Gpu), [2, 4, 5, 5, 5, 5, 5]);
        // Every step by itself, or all together.
        assert_eq!(of(&every(0), DeviceKind::Gpu), [0; 7]);
        let together = Control { submission_target: Some(Duration::MAX), ..Control::default() };
        assert_eq!(of(&together, DeviceKind::Cpu), [Duration::MAX.as_millis(); 7]);
    }
}
