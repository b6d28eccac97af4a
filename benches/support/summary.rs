//! Summary of a GPU day in Markdown, as in `benches/results/`.

use serde_json::Value;
use wgvae::kernels::choice::MatmulTile;

/// Number of slowest stages in a row.
const SLOWEST: usize = 5;

/// Writes the summary of the existing `parts`, in their order.
pub(crate) fn text(day: &Value, parts: &[String]) -> String {
    let (adapter, units) = (&day["adapter"], &day["matrix_units"]);
    let mut text = format!("# {}, {}\n", string(&adapter["name"]), string(&adapter["driver"]));
    if day["quick"] == true {
        text.push_str("\nQuick: only to see that all of it runs.\n");
    }
    let in_words = |value: &Value| {
        let words: Vec<&str> = list(value).map(string).collect();
        if words.is_empty() { "none".to_owned() } else { words.join(", ") }
    };
    let (shapes, kernels) = (in_words(&units["shapes"]), in_words(&units["kernels"]));
    text.push_str(&format!("\nMatrix units: {shapes}. Kernels that use them: {kernels}.\n"));
    for (name, part) in parts.iter().filter_map(|name| Some((name, day["parts"].get(name)?))) {
        text.push_str(&format!("\n## {name}, {:.0} s\n\n", number(&part["seconds"])));
        if part["cut"] == true {
            text.push_str("Cut: its time was over.\n\n");
        }
        if let Some(error) = part["error"].as_str() {
            text.push_str(&format!("FAILED: {error}\n\n"));
        }
        let rows: Vec<&Value> = list(&part["rows"]).collect();
        text.push_str(&match name.as_str() {
            "selftest" => rows.iter().map(|row| format!("{}\n", selftest(row))).collect(),
            "tune" => rows.iter().map(|row| tune(row)).collect(),
            "kernels" => rows.iter().map(|row| kinds(row)).collect(),
            _ => table(&rows),
        });
    }
    text
}

fn selftest(row: &Value) -> String {
    let right = if row["right"] == true { "all right" } else { "something is WRONG" };
    format!("{} decodes with every set of kernels: {right}.", list(&row["rows"]).count())
}

fn tune(row: &Value) -> String {
    let mut text =
        format!("FMA ceiling: {:.0} GFLOP/s.\n\n| tile | band | ms |\n|---|---|---|\n", number(&row["ceiling_gflops"]));
    for trial in list(&row["tuning"]["trials"]) {
        let kernels = &trial["kernels"];
        let band = number(&kernels["winograd_scratch_bytes"]) / f64::from(1 << 20);
        let taken = if *kernels == row["tuning"]["kernels"] { ", taken" } else { "" };
        text.push_str(&format!(
            "| {} | {band:.0} MiB | {:.2}{taken} |\n",
            tile(&kernels["winograd_tile"]),
            number(&trial["seconds"]) * 1e3
        ));
    }
    text
}

/// Formats a tile, or its JSON if this version does not know it.
fn tile(value: &Value) -> String {
    serde_json::from_value::<MatmulTile>(value.clone()).map_or_else(|_| value.to_string(), |tile| tile.to_string())
}

/// Formats the kernels of a decode.
fn kinds(row: &Value) -> String {
    let mut text = format!("{}\n\n| kernel | launches | ms | predicted, ms |\n|---|---|---|---|\n", parameters(row));
    for kind in list(&row["kinds"]) {
        let predicted = kind["predicted"].as_f64().map_or(String::new(), |seconds| format!("{:.2}", seconds * 1e3));
        let (name, milliseconds) = (string(&kind["kind"]), number(&kind["seconds"]) * 1e3);
        text.push_str(&format!("| {name} | {} | {milliseconds:.2} | {predicted} |\n", kind["launches"]));
    }
    text + "\n"
}

/// Lists what was measured, and how.
fn parameters(row: &Value) -> String {
    let what = ["decode", "size", "layer", "mebibytes", "tile", "storage", "on"].map(|name| match &row[name] {
        Value::String(text) => text.clone(),
        Value::Number(number) if name == "mebibytes" => format!("{number} MiB"),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    });
    let what: Vec<&str> = what.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
    what.join(", ")
}

/// Formats one line for each measurement: its parameters and its figures.
fn table(rows: &[&Value]) -> String {
    let mut text = "| | ms | of that on the device | GFLOP/s | steps | submissions | longest, ms | slowest stages, ms |\n|---|---|---|---|---|---|---|---|\n".to_owned();
    for row in rows {
        let device =
            row["device_seconds"].as_f64().map_or("not told".to_owned(), |seconds| format!("{:.2}", seconds * 1e3));
        text.push_str(&format!(
            "| {} | {:.2} | {device} | {:.0} | {} | {} | {:.1} | {} |\n",
            parameters(row),
            number(&row["seconds"]) * 1e3,
            number(&row["gflops"]),
            row["steps"],
            row["submissions"],
            number(&row["longest_submission"]) * 1e3,
            slowest(&row["stages"]),
        ));
    }
    text
}

fn slowest(stages: &Value) -> String {
    let mut stages: Vec<(f64, &str)> = list(stages).map(|stage| (number(&stage[1]), string(&stage[0]))).collect();
    stages.sort_by(|one, other| other.0.total_cmp(&one.0));
    let said = stages.iter().take(SLOWEST).map(|(seconds, name)| format!("{name} {:.2}", seconds * 1e3));
    said.collect::<Vec<_>>().join(", ")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}
