//! `wgvae plan --budgets`: compares the cost of several memory budgets, as a table, as JSON and as
//! a picture.

use serde_json::{Value, json};
use wgvae::report::Plan;
use wgvae::{Bytes, Error, Result};
use wgvae_media::part_file::{check_writable, write_atomically};

use super::chart::{Axis, Chart, log2_bytes, svg};
use crate::cli::{PlanArgs, to_json};

/// Cost of one budget, or the reason why it has no plan.
struct Row {
    budget: Option<Bytes>,
    outcome: Result<Cost>,
}

/// Facts of a plan that depend on the budget.
struct Cost {
    peak: Bytes,
    macs: u64,
    transferred: Bytes,
    host: Bytes,
    steps: usize,
    seconds: f64,
}

/// Plans once for each budget and once without one.
///
/// # Errors
/// If not even the largest budget has a plan: the planner's error, with the smallest budget found.
pub(super) fn compare(args: &PlanArgs, plan: impl Fn(Option<Bytes>) -> Result<Plan>) -> Result<String> {
    if let Some(path) = &args.svg {
        if path.extension().is_none_or(|ending| !ending.eq_ignore_ascii_case("svg")) {
            return Err(Error::input("--svg", "a file name that ends in .svg", path.display().to_string()));
        }
        check_writable(path)?;
    }
    let mut budgets = args.budgets.clone();
    budgets.sort_unstable_by(|a, b| b.cmp(a));
    budgets.dedup();
    let whole = cost(&plan(None)?);
    let whole_macs = whole.macs;
    let mut rows = vec![Row { budget: None, outcome: Ok(whole) }];
    for budget in budgets {
        let outcome = plan(Some(budget)).map(|plan| cost(&plan));
        // The largest budget comes first: if it does not fit, none does.
        if rows.len() == 1 {
            rows.push(Row { budget: Some(budget), outcome: Ok(outcome?) });
        } else {
            rows.push(Row { budget: Some(budget), outcome });
        }
    }
    if let Some(path) = &args.svg {
        write_atomically(path, picture(&rows, whole_macs).as_bytes())?;
    }
    Ok(if args.json { to_json(&json(&rows, whole_macs)) } else { table(&rows, whole_macs) })
}

fn cost(plan: &Plan) -> Cost {
    Cost {
        peak: plan.memory.peak(),
        macs: plan.macs(),
        transferred: plan.transferred(),
        host: plan.host_bytes(),
        steps: plan.steps.len(),
        seconds: plan.predicted_seconds(),
    }
}

/// Returns the smallest budget found, if the error knows it.
fn smallest(error: &Error) -> Option<Bytes> {
    match error {
        Error::Budget { smallest: bytes, .. } | Error::TooLarge { needed: bytes, .. } => Some(*bytes),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn work_ratio(macs: u64, whole: u64) -> f64 {
    macs as f64 / whole.max(1) as f64
}

fn json(rows: &[Row], whole: u64) -> Value {
    let row = |row: &Row| match &row.outcome {
        Ok(cost) => json!({
            "budget_bytes": row.budget,
            "fits": true,
            "predicted_peak_bytes": cost.peak,
            "macs": cost.macs,
            "work_ratio": work_ratio(cost.macs, whole),
            "transferred_bytes": cost.transferred,
            "host_bytes": cost.host,
            "steps": cost.steps,
            "predicted_seconds": cost.seconds,
        }),
        Err(error) => json!({
            "budget_bytes": row.budget,
            "fits": false,
            "smallest_bytes": smallest(error),
            "error": error.to_string(),
        }),
    };
    json!({ "plans": rows.iter().map(row).collect::<Vec<Value>>() })
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn table(rows: &[Row], whole: u64) -> String {
    let mut text = format!(
        "{:>10}  {:>14}  {:>12}  {:>6}  {:>15}  {:>14}  {:>7}  {:>9}\n",
        "budget", "predicted peak", "G mul-adds", "work", "over host link", "in host memory", "steps", "seconds *"
    );
    for row in rows {
        let budget = row.budget.map_or("none".to_owned(), |budget| budget.to_string());
        let cells = match &row.outcome {
            Ok(cost) => format!(
                "{:>14}  {:>12.1}  {:>6.3}  {:>15}  {:>14}  {:>7}  {:>9.2}",
                cost.peak.to_string(),
                cost.macs as f64 / 1e9,
                work_ratio(cost.macs, whole),
                cost.transferred.to_string(),
                cost.host.to_string(),
                cost.steps,
                cost.seconds,
            ),
            Err(error) => smallest(error).map_or_else(
                || error.to_string(),
                |smallest| format!("does not fit: the smallest plan found takes {smallest}"),
            ),
        };
        text.push_str(&format!("{budget:>10}  {cells}\n"));
    }
    text.push_str("* as predicted for such a device: for comparing plans, not a promise\n");
    text
}

/// Draws three charts over the peak: predicted time, work, and bytes over the host's link. The
/// colours are Okabe and Ito's, which people with any colour vision can tell apart.
#[expect(clippy::cast_precision_loss, reason = "for a plot")]
fn picture(rows: &[Row], whole: u64) -> String {
    let costs: Vec<&Cost> = rows.iter().filter_map(|row| row.outcome.as_ref().ok()).collect();
    let gib = |cost: &Cost| cost.transferred.0 as f64 / f64::from(1 << 30);
    let chart = |name: &str, color: &'static str, value: &dyn Fn(&Cost) -> f64| {
        let points: Vec<(f64, f64)> = costs.iter().map(|cost| (log2_bytes(cost.peak), value(cost))).collect();
        Chart {
            x: Axis::bytes("predicted peak of memory", points.iter().map(|point| point.0)),
            y: Axis::linear(name, points.iter().map(|point| point.1)),
            points,
            color,
        }
    };
    let charts = [
        chart("predicted seconds", "#009e73", &|cost| cost.seconds),
        chart("work, relative to the whole plan", "#0072b2", &|cost| work_ratio(cost.macs, whole)),
        chart("GiB over the host's link", "#d55e00", &gib),
    ];
    svg(&charts)
}
