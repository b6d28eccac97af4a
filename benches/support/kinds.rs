//! The time that each kind of launch takes in a whole decode, beside the predicted one.

use serde_json::{Value, json};
use wgvae::Gpu;
use wgvae::plan::{Action, Plan};

use crate::devices::DEVICES;
use crate::model::predict;
use crate::support::Bench;
use crate::work::work;

/// Measures each kind of launch of `whole`, the best of `turns`, in runs of its own: a device has
/// too few timestamps for all of them at once. Returns `[{ kind, launches, seconds, predicted }]`,
/// slowest first, without kinds that have too many launches for the timestamps, and nothing if the
/// device has none. Predictions are for GPUs that the model knows, and without matrix units.
pub(crate) fn timed(whole: &Bench, gpu: &Gpu, turns: usize) -> Vec<Value> {
    let names: Vec<&str> = whole.plan.steps.iter().map(|step| kind(&whole.plan, &step.action)).collect();
    let mut kinds = names.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let known = DEVICES.iter().find(|device| gpu.adapter().name.contains(device.name));
    let known = known.filter(|_| gpu.limits().matrix_units.is_none());
    let predicted = known.map(|device| predict(&whole.plan, device));
    let mut rows: Vec<(f64, Value)> = Vec::new();
    for kind in kinds.into_iter().filter(|kind| *kind != TRANSFER) {
        let of: Vec<usize> = names.iter().map(|name| usize::from(name != &kind)).collect();
        let mut bench = whole.timed_as(gpu, vec![kind.to_owned(), "others".to_owned()], &of);
        let launches = of.iter().filter(|stage| **stage == 0).count();
        let seconds =
            (0..turns).filter_map(|_| Some(bench.run().stage_seconds?[0])).min_by(|one, other| one.total_cmp(other));
        let Some(seconds) = seconds else { continue };
        let predicted = predicted.as_ref().and_then(|all| all.kinds.get(kind)).map(|kind| kind.seconds);
        rows.push((seconds, json!({ "kind": kind, "launches": launches, "seconds": seconds, "predicted": predicted })));
    }
    rows.sort_by(|one, other| other.0.total_cmp(&one.0));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Copies and transfers are no launches, and have no timestamps.
const TRANSFER: &str = "transfer";

fn kind(plan: &Plan, action: &Action) -> &'static str {
    match action {
        Action::Dispatch { variant, workgroups, params, .. } => {
            work(&plan.variants[*variant], *workgroups, &plan.params[params.clone()]).name
        }
        _ => TRANSFER,
    }
}
