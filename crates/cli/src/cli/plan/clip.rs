//! `wgvae plan --frames`: memory and time of a clip, whose parts have two plans.

use serde_json::json;
use wgvae::Plans;
use wgvae::device::DeviceLimits;
use wgvae::report::Plan;

use crate::cli::report::{clip_json, plan_json};
use crate::cli::{PlanArgs, to_json};

/// Shows the `plans` of a clip of `frames` pictures, which has this many `parts`.
pub(super) fn show(args: &PlanArgs, frames: u64, parts: u64, plans: &Plans, limits: &DeviceLimits) -> String {
    if !args.json {
        return text(args, plans, frames, parts);
    }
    to_json(&json!({
        "predicted_peak_bytes": plans.peak(),
        "predicted_seconds": plans.predicted_seconds(parts),
        "clip": clip_json(plans, frames, parts, args.size),
        "plan": plan_json(plans.part(parts - 1), limits),
    }))
}

fn text(args: &PlanArgs, plans: &Plans, frames: u64, parts: u64) -> String {
    let mut text = format!(
        "{frames} frame{} of {} in {parts} part{}, {:?}: predicted peak {}, {} kept between parts, {} in host memory\n",
        if frames == 1 { "" } else { "s" },
        args.size,
        if parts == 1 { "" } else { "s" },
        plans.first().storage,
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
        "kept there",
        "in host memory",
        "over host link",
        "G mul-adds",
        "seconds *"
    ));
    text.push_str(&row("first", 1, plans.first()));
    if parts > 1 {
        text.push_str(&row("each later", parts - 1, plans.later()));
    }
    text.push_str(&format!(
        "* as predicted for such a device, {:.2} for the clip: for comparing plans, not a promise\n",
        plans.predicted_seconds(parts)
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
