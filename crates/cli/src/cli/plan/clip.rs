//! `wgvae plan --frames`: memory and time of a clip, whose parts have two plans.

use serde_json::json;
use wgvae::{AutoencoderConfig, ClipPlans, DeviceLimits, Plan, Result, Storage, plan_clip_decode, plan_clip_encode};

use super::{decode_options, encode_options};
use crate::cli::clips::parts;
use crate::cli::report::{clip_json, plan_json};
use crate::cli::task::Task;
use crate::cli::{PlanArgs, to_json};

/// Plans the parts of a clip of `frames` pictures.
///
/// # Errors
/// For a model that is not for video, and for a number of frames that no number of latents gives.
pub(super) fn plan(
    args: &PlanArgs,
    frames: u64,
    task: Task,
    (config, limits, storage): (&AutoencoderConfig, &DeviceLimits, Storage),
) -> Result<String> {
    let parts = parts(config, frames)?;
    let budget = args.memory_budget;
    let plans = match task {
        Task::Decode(size) => plan_clip_decode(config, size, limits, storage, false, &decode_options(args, budget))?,
        Task::Encode(size) => plan_clip_encode(config, size, limits, storage, &encode_options(args, budget))?,
    };
    if !args.json {
        return Ok(text(args, &plans, frames, parts));
    }
    Ok(to_json(&json!({
        "predicted_peak_bytes": plans.peak(),
        "predicted_seconds": seconds(&plans, parts),
        "clip": clip_json(&plans, frames, parts, args.size),
        "plan": plan_json(plans.of(parts > 1), limits),
    })))
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn seconds(plans: &ClipPlans, parts: u64) -> f64 {
    plans.first.predicted_seconds() + (parts - 1) as f64 * plans.next.predicted_seconds()
}

fn text(args: &PlanArgs, plans: &ClipPlans, frames: u64, parts: u64) -> String {
    let mut text = format!(
        "{frames} frame{} of {} in {parts} part{}, {:?}: predicted peak {}, {} kept between parts, {} in host memory\n",
        if frames == 1 { "" } else { "s" },
        args.size,
        if parts == 1 { "" } else { "s" },
        plans.first.storage,
        plans.peak(),
        plans.state_bytes(),
        plans.host_bytes(),
    );
    text.push_str(&format!(
        "{:<12}  {:>6}  {:>14}  {:>10}  {:>11}  {:>14}  {:>14}  {:>12}  {:>9}\n",
        "part",
        "times",
        "predicted peak",
        "weights",
        "kept on GPU",
        "in host memory",
        "over host link",
        "G mul-adds",
        "seconds *"
    ));
    text.push_str(&row("first", 1, &plans.first));
    if parts > 1 {
        text.push_str(&row("each later", parts - 1, &plans.next));
    }
    text.push_str(&format!(
        "* at the nominal pace of such a device, {:.2} for the clip: for comparing plans, not a promise\n",
        seconds(plans, parts)
    ));
    text
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn row(name: &str, times: u64, plan: &Plan) -> String {
    let memory = plan.memory;
    format!(
        "{name:<12}  {times:>6}  {:>14}  {:>10}  {:>11}  {:>14}  {:>14}  {:>12.1}  {:>9.2}\n",
        memory.peak().to_string(),
        memory.weights.to_string(),
        memory.states.to_string(),
        plan.host_bytes().to_string(),
        plan.transferred().to_string(),
        plan.macs() as f64 / 1e9,
        plan.predicted_seconds(),
    )
}
