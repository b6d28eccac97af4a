//! Tables of the page.

use maud::{Markup, html};
use wgvae::Bytes;

use super::is_exact;
use crate::estimates::{Estimator, Work};
use crate::labels::distinct;
use crate::published::{RESERVE_RATIOS, RTX_4090};
use crate::rows::Row;
use crate::runs::Runs;
use crate::text::storage_name;
use crate::{Adapter, Measurement, MemoryReport};
use wgvae::Direction;

/// Returns the table of machines and their adapters.
pub(super) fn adapters(reports: &[MemoryReport], labels: &[Vec<String>]) -> Markup {
    let all = reports.iter().zip(labels).flat_map(|(report, labels)| {
        report.adapters.iter().zip(labels).map(move |(adapter, label)| (label, report, adapter))
    });
    let mut once: Vec<(&String, &MemoryReport, &Adapter)> = Vec::new();
    for row in all {
        if once.iter().all(|(label, ..)| *label != row.0) {
            once.push(row);
        }
    }
    html! { div.scroll { table {
        thead { tr { th { "adapter" } th { "vendor" } th { "kind" } th { "driver" } th { "machine" } th { "wgvae" } } }
        tbody { @for (label, report, adapter) in once { tr {
            th scope="row" { (label) }
            td { (adapter.vendor()) }
            td.wrap { (adapter.device_type) ", " (adapter.backend) }
            td.wrap { (adapter.name) "; " (adapter.driver) }
            td.wrap { (report.machine.os) " " (report.machine.arch) ", " (report.machine.cpus) " processors" }
            td { (report.wgvae) }
        } } }
    } } }
}

/// Returns a table of all rows for each adapter and kind of runs.
pub(super) fn measurements(rows: &[Row<'_>], labels: &[Vec<String>]) -> Markup {
    html! {
        p { "Memory in MiB, times in seconds. The last two columns of images are bytes per pixel and element, as counted and as reserved. The "
            "process's peak includes GPU memory on CPU drivers. Clips keep state between parts, on the GPU or in host memory." }
        @for label in distinct(labels.iter().flatten()) {
            @for runs in Runs::all() {
                @let own = of(rows, label, runs);
                @if !own.is_empty() {
                    h3 { (label) ": " (runs.name()) }
                    (measurements_of(runs, &own))
                }
            }
        }
    }
}

fn of<'a>(rows: &[Row<'a>], adapter: &str, runs: Runs) -> Vec<&'a Measurement> {
    let own = rows.iter().filter(|row| row.adapter == adapter && Runs::of(row.measurement) == runs);
    own.map(|row| row.measurement).collect()
}

fn measurements_of(runs: Runs, rows: &[&Measurement]) -> Markup {
    html! { div.scroll { table {
        thead { tr {
            th { "model" } th { "size" }
            @if runs.are_clips { th.num { "frames" } }
            th { "stored as" } th.num { "budget" } th.num { "predicted" }
            @if runs.are_clips { th.num { "kept" } th.num { "in host memory" } }
            th.num { "measured" } th { "equal" } th.num { "allocated" } th.num { "reserved" }
            th.num { "process" } th.num { "load" } th.num { "prepare" } th.num { (runs.operation.name()) }
            @if !runs.are_clips { th.num { "counted" } th.num { "reserved" } }
        } }
        tbody { @for row in rows { (measurement(row)) } }
    } } }
}

fn measurement(row: &Measurement) -> Markup {
    let measured = row.measured;
    let (counted, reserved) = row.implied_constants();
    html! { tr.failed[row.error.is_some()] {
        th scope="row" { (row.model) }
        td { (row.size()) }
        @if row.is_clip() { td.num { (shown(row.frames, |frames| frames.to_string())) } }
        td { (storage_name(row)) }
        td.num { (shown(row.budget, mib)) }
        td.num { (shown(row.predicted.map(|predicted| predicted.peak), mib)) }
        @if row.is_clip() {
            td.num { (shown(row.predicted.and_then(|predicted| predicted.states).map(|states| states.total), mib)) }
            td.num { (shown(row.predicted.map(|predicted| predicted.host), mib)) }
        }
        @if let Some(error) = &row.error {
            td.wrap colspan=(if row.is_clip() { 8 } else { 10 }) { "failed: " (error) }
        } @else {
            td.num { (shown(measured.map(|measured| measured.ledger_peak), mib)) }
            td { @if is_exact(row) { "yes" } @else { "no" } }
            td.num { (shown(measured.and_then(|measured| measured.allocator_allocated), mib)) }
            td.num { (shown(measured.and_then(|measured| measured.allocator_reserved), mib)) }
            td.num { (shown(measured.and_then(|measured| measured.peak_rss), mib)) }
            td.num { (shown(measured.map(|measured| measured.load_seconds), seconds)) }
            td.num { (shown(measured.map(|measured| measured.prepare_seconds), seconds)) }
            td.num { (shown(measured.map(|measured| measured.seconds), seconds)) }
            @if !row.is_clip() {
                td.num { (shown(counted, whole)) }
                td.num { (shown(reserved, whole)) }
            }
        }
    } }
}

/// Formats a value, or a dash if there is none.
fn shown<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), text)
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.2}")
}

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

/// Ratios of one adapter, model and direction.
struct Ratios<'a> {
    vendor: &'a str,
    adapter: &'a str,
    model: &'a str,
    operation: Direction,
    values: Vec<f64>,
}

impl Ratios<'_> {
    #[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
    fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len().max(1) as f64
    }
}

/// Returns the table of reserved over allocated memory, with a bar for each ratio.
pub(super) fn reserve_ratios(rows: &[Row<'_>]) -> Markup {
    let mut groups: Vec<Ratios<'_>> = Vec::new();
    for row in rows {
        let Some(ratio) = row.measurement.reserve_ratio() else { continue };
        let Row { vendor, adapter, measurement: Measurement { model, operation, .. } } = *row;
        let own = (adapter, model.as_str(), *operation);
        match groups.iter_mut().find(|group| (group.adapter, group.model, group.operation) == own) {
            Some(group) => group.values.push(ratio),
            None => groups.push(Ratios { vendor, adapter, model, operation: *operation, values: vec![ratio] }),
        }
    }
    let published = RESERVE_RATIOS.iter().map(|(_, _, ratio)| *ratio);
    let most = groups.iter().map(Ratios::mean).chain(published).fold(1.0, f64::max);
    let bar = |ratio: f64, class: &str| {
        html! {
            td.num { (format!("{ratio:.2}")) }
            td { div.track { div class=(class) style=(format!("width:{:.1}%", 100.0 * ratio / most)) {} } }
        }
    };
    html! { div.scroll { table {
        thead { tr { th { "vendor" } th { "adapter" } th { "model" } th.num { "ratio" } th {} } }
        tbody {
            @for group in &groups { tr {
                td { (group.vendor) } td { (group.adapter) } td { (group.model) " " (group.operation.name()) }
                (bar(group.mean(), "bar"))
            } }
            @for (model, operation, ratio) in RESERVE_RATIOS { tr {
                td { "NVIDIA" } td { "RTX 4090, PyTorch (published)" } td { (model) " " (operation.name()) }
                (bar(*ratio, "bar other"))
            } }
        }
    } } }
}

/// Returns the table of estimates for every image that was measured without a budget: one row for
/// each model, direction, size and storage.
pub(super) fn estimates(rows: &[Row<'_>]) -> Markup {
    let mut seen = Vec::new();
    let mut unique = Vec::new();
    for row in rows {
        let one = row.measurement;
        let key = (&one.model, one.operation, one.width, one.height, one.element_bytes());
        if one.budget.is_none() && !one.is_clip() && one.measured.is_some() && !seen.contains(&key) {
            seen.push(key);
            unique.push(one);
        }
    }
    html! { div.scroll { table {
        thead { tr {
            th { "model" } th { "size" } th { "direction" } th { "stored as" } th.num { "wgvae, measured" }
            @for estimator in Estimator::ALL { th.num { (estimator.name()) } }
        } }
        tbody { @for one in unique { tr {
            @let took = one.measured.map_or(Bytes(0), |measured| measured.ledger_peak);
            th scope="row" { (one.model) }
            td { (one.size()) }
            td { (one.operation.name()) }
            td { (storage_name(one)) }
            td.num { (mib(took)) }
            @let work = Work { family: &one.model, operation: one.operation, size: one.size(), element_bytes: one.element_bytes() };
            @for estimator in Estimator::ALL { td.num { (estimate(estimator.bytes(&work), took)) } }
        } } }
    } } }
}

/// Returns the table of published measurements with their estimates.
pub(super) fn published() -> Markup {
    html! { div.scroll { table {
        thead { tr {
            th { "model" } th { "size" } th { "direction" } th.num { "reserved" } th.num { "seconds" } th.num { "bytes per pixel and element" }
            @for estimator in Estimator::ALL { th.num { (estimator.name()) } }
        } }
        tbody { @for row in RTX_4090 { tr {
            th scope="row" { (row.model) }
            td { (row.side) "x" (row.side) }
            td { (row.operation.name()) }
            td.num { (mib(row.reserved())) }
            td.num { (shown(row.seconds, seconds)) }
            td.num { (whole(row.implied_constant())) }
            @let size = wgvae::Size { width: row.side, height: row.side };
            @let work = Work { family: row.model, operation: row.operation, size, element_bytes: 2 };
            @for estimator in Estimator::ALL { td.num { (estimate(estimator.bytes(&work), row.reserved())) } }
        } } }
    } } }
}

#[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
fn estimate(estimated: Option<Bytes>, took: Bytes) -> String {
    let ratio = |bytes: Bytes| bytes.0 as f64 / took.0.max(1) as f64;
    shown(estimated, |bytes| format!("{} ({:.2})", mib(bytes), ratio(bytes)))
}

/// Formats bytes as MiB with one decimal.
#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
fn mib(bytes: Bytes) -> String {
    format!("{:.1}", bytes.0 as f64 / f64::from(1 << 20))
}
