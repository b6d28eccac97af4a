//! Measurements of several reports in one list.

use crate::{Measurement, MemoryReport};

/// Measurement with its adapter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    /// Short name of the adapter.
    pub(super) adapter: &'a str,
    pub(super) vendor: &'a str,
    pub(super) measurement: &'a Measurement,
}

/// Returns all measurements of `reports`, whose adapters are called `labels`.
pub(super) fn rows<'a>(reports: &'a [MemoryReport], labels: &'a [Vec<String>]) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for (report, labels) in reports.iter().zip(labels) {
        rows.extend(report.measurements.iter().filter_map(|measurement| {
            let (adapter, vendor) =
                (labels.get(measurement.adapter)?, report.adapters.get(measurement.adapter)?.vendor());
            Some(Row { adapter, vendor, measurement })
        }));
    }
    rows
}
