//! The fallback for a device with less memory than a plan needs: one smaller plan, with a warning.

use std::sync::Arc;

use serde::Serialize;

use super::job::Job;
use super::{Ready, Vae};
use crate::error::{DeviceError, Error, Result};
use crate::gpu::Prepared;
use crate::plan::Plan;
use crate::tensor::Bytes;

/// A smaller plan that was used because the first one failed. Its `Display` is a message for the
/// user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fallback {
    /// The allocation that failed, and the reason.
    pub failed: String,
    /// The predicted peak of the plan that failed, bytes.
    pub first_peak_bytes: Bytes,
    /// The predicted peak of the plan that was used instead, bytes.
    pub peak_bytes: Bytes,
}

impl std::fmt::Display for Fallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { failed, first_peak_bytes, peak_bytes } = self;
        write!(f, "{failed}; using a plan of {peak_bytes} instead of {first_peak_bytes}, which is slower")
    }
}

/// True if a smaller plan may help against `error`.
pub(super) fn is_out_of_memory(error: &Error) -> bool {
    matches!(error, Error::Device(DeviceError::OutOfMemory { .. }))
}

impl Vae {
    /// Allocates everything that `plan` needs. If the device has too little memory for it,
    /// allocates a smaller plan.
    pub(super) async fn allocate(&mut self, job: Job, plan: Plan) -> Result<Ready> {
        let first_peak = plan.memory.peak();
        match self.try_plan(plan).await {
            Ok(prepared) => Ok(Ready { job, prepared, fallback: None, complete: false }),
            Err(error) if is_out_of_memory(&error) => {
                let held = self.gpu.ledger().held_at_failure();
                self.fall_back(job, first_peak, held, error).await
            }
            Err(error) => Err(error),
        }
    }

    /// Allocates a smaller plan in place of one that failed with `error` while it ran.
    pub(super) async fn fall_back_from(&mut self, failed: Ready, error: Error) -> Result<Ready> {
        let Ready { job, prepared, .. } = failed;
        let (first_peak, held) = (prepared.plan().memory.peak(), self.gpu.ledger().current());
        drop(prepared);
        self.fall_back(job, first_peak, held, error).await
    }

    /// Frees everything of a plan of `first_peak`, which failed with `error` when the device held
    /// `held` bytes. Then allocates a smaller plan.
    async fn fall_back(&mut self, job: Job, first_peak: Bytes, held: Bytes, error: Error) -> Result<Ready> {
        self.weights.free();
        self.gpu.idle().await?;
        let plan = match self.smaller_plan(&job, first_peak, held) {
            Ok(plan) => plan,
            Err(why) => return Err(explain(error, first_peak, &why)),
        };
        let fallback =
            Fallback { failed: error.to_string(), first_peak_bytes: first_peak, peak_bytes: plan.memory.peak() };
        log::warn!("{fallback}");
        match self.try_plan(plan).await {
            Ok(prepared) => Ok(Ready { job, prepared, fallback: Some(fallback), complete: false }),
            Err(second) if is_out_of_memory(&second) => {
                Err(explain(error, first_peak, &format!("a plan of {} failed, too: {second}", fallback.peak_bytes)))
            }
            Err(other) => Err(other),
        }
    }

    async fn try_plan(&mut self, plan: Plan) -> Result<Prepared> {
        let plan = Arc::new(plan);
        let gpu = self.gpu.clone();
        let allocated = match self.weights.place(&gpu, &plan).await {
            Ok(()) => Prepared::new(&gpu, Arc::clone(&plan), self.weights.of(&plan)).await,
            Err(error) => Err(error),
        };
        if allocated.is_err() {
            self.weights.free();
        }
        allocated
    }

    /// Returns a plan that takes less than `first_peak`, or the reason why there is none.
    fn smaller_plan(&self, job: &Job, first_peak: Bytes, held: Bytes) -> std::result::Result<Plan, String> {
        // The device certainly has the bytes that it held. If the next plan is close to the one
        // that failed, it may fail as well.
        let budget = held.min(Bytes(first_peak.0 / 10 * 6)).min(job.memory_budget().unwrap_or(first_peak));
        let within = |budget| self.planner.plan_job(&job.clone().within(budget));
        let plan = match within(budget) {
            // The smallest plan may still fit: the device may have more than it held.
            Err(Error::Budget { smallest, .. }) if smallest < first_peak => within(smallest),
            planned => planned,
        };
        match plan {
            Ok(plan) if plan.memory.peak() < first_peak => Ok(plan),
            Ok(plan) => Err(format!("the smallest plan takes {}", plan.memory.peak())),
            Err(reason) => Err(reason.to_string()),
        }
    }
}

/// Adds the peak of the plan that failed, and the reason why no smaller plan helps, to `error`.
fn explain(error: Error, peak: Bytes, why: &str) -> Error {
    match error {
        Error::Device(DeviceError::OutOfMemory { doing, reason }) => Error::Device(DeviceError::OutOfMemory {
            doing,
            reason: format!("{reason} (the plan takes {peak}, and no smaller plan helps: {why})"),
        }),
        other => other,
    }
}
