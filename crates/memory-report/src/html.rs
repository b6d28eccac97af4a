//! Report as one HTML file: no scripts or external resources, readable on a phone, with light and
//! dark colours.

mod tables;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use plotters::style::RGBColor;
use wgvae::Result;

use super::labels::labels;
use super::plots::{self, Entry, Figure};
use super::rows::{Row, rows};
use super::runs::Runs;
use crate::estimates::Estimator;
use crate::published::{DEVICE, SOURCE};
use crate::{Measurement, MemoryReport};

const STYLE: &str = include_str!("html/style.css");

/// Returns the page about `reports`.
///
/// # Errors
/// See [`svg`](crate::chart::svg), which draws the charts.
pub fn page(reports: &[MemoryReport]) -> Result<String> {
    let labels = labels(reports);
    let rows = rows(reports, &labels);
    let pixels = plots::against_pixels(&rows)?;
    let predicted = plots::predicted_against_measured(&rows)?;
    let clips = plots::against_frames(&rows)?;
    let implied = plots::implied_constants(&rows)?;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "wgvae: memory report" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Memory of VAEs: predicted, measured, and estimated" }
                (introduction(&rows))
                (tables::adapters(reports, &labels))
                h2 { "Memory against pixels" }
                p { "Coloured marks show the peak of wgvae, weights included. Grey lines are the estimates of other tools for the same "
                    "pictures, and grey rings are the memory that PyTorch reserved on an RTX 4090. SD 1.5, SD3 and FLUX.1 have the same network "
                    "except for the latents' channels, so their marks cover each other." }
                @for figure in &pixels { (show(figure)) }
                @if !clips.is_empty() {
                    h2 { "Memory against frames" }
                    p { "Clips are decoded and encoded part by part. Each part needs its own memory and the state that it keeps for the next, "
                        "so the length of a clip makes no difference." }
                    @for figure in &clips { (show(figure)) }
                }
                h2 { "Predicted against measured" }
                p { "The prediction is made before anything is allocated. wgvae counts each buffer as it is created: its count should lie on "
                    "the line, to the byte. The driver's allocator hands out more, because of alignment, and reserves more, because its blocks are not full." }
                @for figure in &predicted { (show(figure)) }
                h2 { "All measurements" }
                (tables::measurements(&rows, &labels))
                h2 { "Reserve ratio by vendor and family" }
                p { "Memory that the allocator reserved from the driver, divided by the memory that it handed out: the mean over sizes, frames and budgets." }
                (tables::reserve_ratios(&rows))
                h2 { "Implied bytes per pixel and element" }
                p { "All memory except the weights, divided by pixels and by bytes of an element. InvokeAI's formula uses one such constant; "
                    "such a formula fits if this is flat." }
                @for figure in &implied { (show(figure)) }
                h2 { "The estimates in use today" }
                (estimates())
                h3 { "For the pictures measured here" }
                p { "Each estimate, with its ratio to the peak of wgvae in brackets." }
                (tables::estimates(&rows))
                h3 { "For pictures measured with PyTorch" }
                p { (DEVICE) ": reserved memory, by " a href=(SOURCE) { "InvokeAI's investigation" } "." }
                (tables::published())
            }
        }
    };
    Ok(page.into_string())
}

fn introduction(rows: &[Row<'_>]) -> Markup {
    let is_measured = |row: &&Row<'_>| row.measurement.measured.is_some();
    let measured = rows.iter().filter(is_measured).count();
    let of = |runs: Runs| {
        let count = rows.iter().filter(is_measured).filter(|row| Runs::of(row.measurement) == runs).count();
        (count > 0).then(|| runs.count(count))
    };
    let counts: Vec<String> = Runs::all().filter_map(of).collect();
    let exact = rows.iter().filter(|row| is_exact(row.measurement)).count();
    html! {
        p.lead {
            @if counts.is_empty() { "Nothing" } @else { (listed(&counts)) }
            " measured, each in a process of its own; "
            @if rows.len() > measured { (rows.len() - measured) " failed; " }
            "in " (exact) " of " (measured) " the measured peak equals the predicted one to the byte."
        }
    }
}

/// Joins parts of a sentence, with "and" before the last.
fn listed(parts: &[String]) -> String {
    match parts {
        [rest @ .., before, last] => [rest, &[format!("{before} and {last}")]].concat().join(", "),
        others => others.concat(),
    }
}

/// Returns true if the measured peak equals the predicted one.
fn is_exact(row: &Measurement) -> bool {
    matches!((row.predicted, row.measured), (Some(predicted), Some(measured)) if predicted.peak == measured.ledger_peak)
}

fn show(figure: &Figure) -> Markup {
    html! {
        figure {
            figcaption { (figure.title) }
            div.plot role="img" aria-label=(figure.title) { (PreEscaped(&figure.svg)) }
            ul.legend {
                @for entry in &figure.legend { li { span style=(color(entry)) { (entry.symbol) } " " (entry.text) } }
            }
        }
    }
}

fn color(entry: &Entry) -> String {
    let RGBColor(red, green, blue) = entry.color;
    format!("color:#{red:02x}{green:02x}{blue:02x}")
}

fn estimates() -> Markup {
    html! {
        p { "Formulas for a picture of H x W pixels with E bytes an element." }
        div.scroll { table {
            thead { tr { th { "estimate" } th { "formula" } th { "source" } } }
            tbody { @for estimator in Estimator::ALL {
                @let (source, address) = estimator.source();
                tr {
                    th scope="row" { (estimator.name()) }
                    td.wrap { (estimator.formula()) }
                    td.wrap { @match address { Some(address) => a href=(address) { (source) }, None => (source) } }
                }
            } }
        } }
    }
}
