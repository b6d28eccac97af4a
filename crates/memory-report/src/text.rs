//! Measurements as a table for stdout.

use wgvae::Bytes;

use super::labels::labels;
use super::runs::Runs;
use crate::{Measurement, MemoryReport};

/// Name of a column, and the function that formats its cell of a row.
type Column = (&'static str, fn(&Measurement) -> String);

/// Returns the table: for each adapter of each report, one block for each kind of runs.
pub fn table(reports: &[MemoryReport]) -> String {
    let mut text = String::new();
    for (report, labels) in reports.iter().zip(labels(reports)) {
        for (adapter, label) in labels.iter().enumerate() {
            for runs in Runs::all() {
                let is_own = |row: &&Measurement| row.adapter == adapter && Runs::of(row) == runs;
                let rows: Vec<&Measurement> = report.measurements.iter().filter(is_own).collect();
                if !rows.is_empty() {
                    let (name, machine) = (runs.name(), &report.machine);
                    text.push_str(&format!("{name} on {label} ({} {})\n", machine.os, machine.arch));
                    text.push_str(&block(&columns(runs), &rows));
                }
            }
        }
    }
    text
}

fn block(columns: &[Column], rows: &[&Measurement]) -> String {
    let header = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let cells = rows.iter().map(|row| columns.iter().map(|(_, cell)| cell(row)).collect());
    let cells: Vec<Vec<String>> = std::iter::once(header).chain(cells).collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    for (index, row) in cells.iter().enumerate() {
        let padded: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(&format!("  {}", padded.join("  ").trim_end()));
        let error = index.checked_sub(1).and_then(|index| rows[index].error.as_ref());
        text.push_str(&error.map_or("\n".to_owned(), |error| format!("  error: {error}\n")));
    }
    text
}

/// Returns the columns of a table of `runs`.
fn columns(runs: Runs) -> Vec<Column> {
    let what: [Column; 4] = [
        ("model", |row| row.model.clone()),
        ("size", |row| row.size().to_string()),
        ("stored as", |row| storage_name(row).to_owned()),
        ("budget", |row| bytes(row.budget)),
    ];
    let frames: Column = ("frames", |row| row.frames.unwrap_or(1).to_string());
    let kept: [Column; 2] = [
        ("kept", |row| bytes(row.predicted.and_then(|predicted| predicted.states).map(|states| states.total))),
        ("in host memory", |row| bytes(row.predicted.map(|predicted| predicted.host))),
    ];
    let took: [Column; 5] = [
        ("predicted", |row| bytes(row.predicted.map(|predicted| predicted.peak))),
        ("measured", |row| bytes(row.measured.map(|measured| measured.ledger_peak))),
        ("allocator reserved", |row| bytes(row.measured.and_then(|measured| measured.allocator_reserved))),
        ("process peak", |row| bytes(row.measured.and_then(|measured| measured.peak_rss))),
        ("seconds", |row| row.measured.map_or("-".to_owned(), |measured| format!("{:.2}", measured.seconds))),
    ];
    let mut columns: Vec<Column> = what.into_iter().chain(took).collect();
    if runs.are_clips {
        columns.insert(2, frames);
        columns.splice(6..6, kept);
    }
    columns
}

fn bytes(bytes: Option<Bytes>) -> String {
    bytes.map_or("-".to_owned(), |bytes| bytes.to_string())
}

/// Returns the name of the storage of weights and activations, for people.
fn storage_name(row: &Measurement) -> &'static str {
    match row.storage {
        wgvae::Storage::F32 => "f32",
        wgvae::Storage::F16 => "f16",
        wgvae::Storage::PackedF16 => "f16, packed",
        wgvae::Storage::FastF16 => "fast",
    }
}
