//! The measurements as a table for stdout.

use wgvae::Bytes;
use wgvae::report::{Measurement, MemoryReport, Operation};

use super::labels::labels;

const HEADER: [&str; 9] =
    ["model", "size", "stored as", "budget", "predicted", "measured", "allocator reserved", "process peak", "seconds"];

/// A block of rows for the decodes and one for the encodes of each adapter of each report.
pub(super) fn table(reports: &[MemoryReport]) -> String {
    let mut text = String::new();
    for (report, labels) in reports.iter().zip(labels(reports)) {
        for (adapter, label) in labels.iter().enumerate() {
            for operation in Operation::ALL {
                let is_own = |row: &&Measurement| row.adapter == adapter && row.operation == operation;
                let rows: Vec<&Measurement> = report.measurements.iter().filter(is_own).collect();
                if !rows.is_empty() {
                    let (name, machine) = (operation.name(), &report.machine);
                    text.push_str(&format!("{name}s on {label} ({} {})\n", machine.os, machine.arch));
                    text.push_str(&block(&rows));
                }
            }
        }
    }
    text
}

fn block(rows: &[&Measurement]) -> String {
    let cells: Vec<[String; 9]> =
        std::iter::once(HEADER.map(str::to_owned)).chain(rows.iter().map(|row| cells(row))).collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADER.len()).map(width).collect();
    let mut text = String::new();
    for (index, row) in cells.iter().enumerate() {
        let padded: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(&format!("  {}", padded.join("  ").trim_end()));
        let error = index.checked_sub(1).and_then(|index| rows[index].error.as_ref());
        text.push_str(&error.map_or("\n".to_owned(), |error| format!("  error: {error}\n")));
    }
    text
}

fn cells(row: &Measurement) -> [String; 9] {
    let bytes = |bytes: Option<Bytes>| bytes.map_or("-".to_owned(), |bytes| bytes.to_string());
    let measured = row.measured;
    [
        row.model.clone(),
        row.size().to_string(),
        storage_name(row).to_owned(),
        bytes(row.budget),
        bytes(row.predicted.map(|predicted| predicted.peak)),
        bytes(measured.map(|measured| measured.ledger_peak)),
        bytes(measured.and_then(|measured| measured.allocator_reserved)),
        bytes(measured.and_then(|measured| measured.peak_rss)),
        measured.map_or("-".to_owned(), |measured| format!("{:.2}", measured.seconds)),
    ]
}

/// How weights and activations are stored, for people.
pub(super) fn storage_name(row: &Measurement) -> &'static str {
    match row.storage {
        wgvae::Storage::F32 => "f32",
        wgvae::Storage::F16 => "f16",
        wgvae::Storage::PackedF16 => "f16, packed",
    }
}
