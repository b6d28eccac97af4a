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
    /// How long one submission should take; `None` for what suits the device. Zero submits every
    /// step by itself.
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

    /// How long one submission should take: short enough for watchdogs, progress and cancel, long
    /// enough to be worth submitting.
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
    /// From the upload of the latents until the result is in host memory and whoever receives it is
    /// done.
    pub seconds: f64,
    /// The part of `seconds` that whoever received the result took, mostly while the device was
    /// working.
    pub sink_seconds: f64,
    /// Each submission.
    pub submissions: Vec<Submission>,
    /// GPU time of each stage in seconds, by timestamps; `None` where the device has none or the
    /// plan did not ask.
    pub stage_seconds: Option<Vec<f64>>,
}

/// Steps that were submitted together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Submission {
    /// By index into the plan's steps. A transfer that took several submissions belongs to the last
    /// of them.
    pub steps: Range<usize>,
    /// From the end of the submission before to the end of this one, as the host saw it.
    pub seconds: f64,
}
