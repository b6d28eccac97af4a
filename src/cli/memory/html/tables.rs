//! The page's tables.

use maud::{Markup, html};
use wgvae::Bytes;
use wgvae::report::estimates::{Estimator, Work};
use wgvae::report::published::{RESERVE_RATIOS, RTX_4090};
use wgvae::report::{MemoryReport, Operation};

use super::{Row, is_exact};
use crate::cli::memory::adapter_label;
use crate::cli::memory::text::storage_name;

/// The machines and their adapters.
pub(super) fn adapters(reports: &[MemoryReport]) -> Markup {
    html! { div.scroll { table {
        thead { tr { th { "adapter" } th { "vendor" } th { "kind" } th { "driver" } th { "machine" } th { "wgvae" } } }
        tbody { @for report in reports { @for (index, adapter) in report.adapters.iter().enumerate() { tr {
            th scope="row" { (adapter_label(report, index)) }
            td { (adapter.vendor()) }
            td { (adapter.device_type) ", " (adapter.backend) }
            td.wrap { (adapter.name) "; " (adapter.driver) }
            td { (report.machine.os) " " (report.machine.arch) ", " (report.machine.cpus) " processors" }
            td { (report.wgvae) }
        } } } }
    } } }
}

/// Every row of every report.
pub(super) fn measurements(rows: &[Row<'_>]) -> Markup {
    let mib = |bytes: Option<Bytes>| bytes.map_or("–".to_owned(), mib);
    let seconds = |seconds: Option<f64>| seconds.map_or("–".to_owned(), |seconds| format!("{seconds:.2}"));
    html! {
        p { "Memory in MiB, times in seconds. The process's peak includes GPU memory on CPU drivers." }
        div.scroll { table {
            thead { tr {
                th { "adapter" } th { "model" } th { "size" } th { "stored as" } th.num { "budget" }
                th.num { "predicted" } th.num { "measured" } th { "equal" } th.num { "allocated" } th.num { "reserved" }
                th.num { "process" } th.num { "load" } th.num { "prepare" } th.num { "decode" }
            } }
            tbody { @for row in rows {
                @let one = row.measurement;
                @let measured = one.measured;
                tr.failed[one.error.is_some()] {
                    th scope="row" { (row.adapter()) }
                    td { (one.model) }
                    td { (one.size()) }
                    td { (storage_name(one)) }
                    td.num { (mib(one.budget)) }
                    td.num { (mib(one.predicted.map(|predicted| predicted.peak))) }
                    @if let Some(error) = &one.error {
                        td.wrap colspan="8" { "failed: " (error) }
                    } @else {
                        td.num { (mib(measured.map(|measured| measured.ledger_peak))) }
                        td { @if is_exact(one) { "yes" } @else { "no" } }
                        td.num { (mib(measured.and_then(|measured| measured.allocator_allocated))) }
                        td.num { (mib(measured.and_then(|measured| measured.allocator_reserved))) }
                        td.num { (mib(measured.and_then(|measured| measured.peak_rss))) }
                        td.num { (seconds(measured.map(|measured| measured.load_seconds))) }
                        td.num { (seconds(measured.map(|measured| measured.prepare_seconds))) }
                        td.num { (seconds(measured.map(|measured| measured.seconds))) }
                    }
                }
            } }
        } }
    }
}

/// Mean of what belongs together, in order of first appearance.
struct Ratios {
    vendor: String,
    adapter: String,
    model: String,
    values: Vec<f64>,
}

impl Ratios {
    #[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
    fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len().max(1) as f64
    }
}

/// Reserved over allocated, with a bar for each.
pub(super) fn reserve_ratios(rows: &[Row<'_>]) -> Markup {
    let mut groups: Vec<Ratios> = Vec::new();
    for row in rows {
        let Some(ratio) = row.measurement.reserve_ratio() else { continue };
        let vendor = row.report.adapters.get(row.measurement.adapter).map_or("", |adapter| adapter.vendor()).to_owned();
        let (adapter, model) = (row.adapter(), row.measurement.model.clone());
        match groups.iter_mut().find(|group| (&group.adapter, &group.model) == (&adapter, &model)) {
            Some(group) => group.values.push(ratio),
            None => groups.push(Ratios { vendor, adapter, model, values: vec![ratio] }),
        }
    }
    let published = RESERVE_RATIOS.iter().map(|(_, _, ratio)| *ratio);
    let most = groups.iter().map(Ratios::mean).chain(published).fold(1.0, f64::max);
    let bar = |ratio: f64, class: &str| html! {
        td.num { (format!("{ratio:.2}")) }
        td { div.track { div class=(class) style=(format!("width:{:.1}%", 100.0 * ratio / most)) {} } }
    };
    html! { div.scroll { table {
        thead { tr { th { "vendor" } th { "adapter" } th { "model" } th.num { "ratio" } th {} } }
        tbody {
            @for group in &groups { tr {
                td { (group.vendor) } td { (group.adapter) } td { (group.model) }
                (bar(group.mean(), "bar"))
            } }
            @for (model, operation, ratio) in RESERVE_RATIOS { tr {
                td { "NVIDIA" } td { "RTX 4090, PyTorch (published)" } td { (model) " " (operation_name(*operation)) }
                (bar(*ratio, "bar other"))
            } }
        }
    } } }
}

/// The estimates for every picture that was measured whole, once for each model, size and storage.
pub(super) fn estimates(rows: &[Row<'_>]) -> Markup {
    let mut seen = Vec::new();
    let mut unique = Vec::new();
    for row in rows {
        let one = row.measurement;
        let key = (&one.model, one.width, one.height, one.element_bytes());
        if one.budget.is_none() && one.measured.is_some() && !seen.contains(&key) {
            seen.push(key);
            unique.push(one);
        }
    }
    html! { div.scroll { table {
        thead { tr {
            th { "model" } th { "size" } th { "stored as" } th.num { "wgvae, measured" }
            @for estimator in Estimator::ALL { th.num { (estimator.name()) } }
        } }
        tbody { @for one in unique { tr {
            @let took = one.measured.map_or(Bytes(0), |measured| measured.ledger_peak);
            th scope="row" { (one.model) }
            td { (one.size()) }
            td { (storage_name(one)) }
            td.num { (mib(took)) }
            @let work = Work { family: &one.model, operation: one.operation, size: one.size(), element_bytes: one.element_bytes() };
            @for estimator in Estimator::ALL { td.num { (estimate(estimator.bytes(&work), took)) } }
        } } }
    } } }
}

/// What was published, and what the estimates say about it.
pub(super) fn published() -> Markup {
    html! { div.scroll { table {
        thead { tr {
            th { "model" } th { "size" } th { "direction" } th.num { "reserved" } th.num { "seconds" } th.num { "bytes per pixel and element" }
            @for estimator in Estimator::ALL { th.num { (estimator.name()) } }
        } }
        tbody { @for row in RTX_4090 { tr {
            th scope="row" { (row.model) }
            td { (row.side) "x" (row.side) }
            td { (operation_name(row.operation)) }
            td.num { (mib(row.reserved())) }
            td.num { (row.seconds.map_or("–".to_owned(), |seconds| format!("{seconds:.2}"))) }
            td.num { (format!("{:.0}", row.implied_constant())) }
            @let size = wgvae::Size { width: row.side, height: row.side };
            @let work = Work { family: row.model, operation: row.operation, size, element_bytes: 2 };
            @for estimator in Estimator::ALL { td.num { (estimate(estimator.bytes(&work), row.reserved())) } }
        } } }
    } } }
}

#[expect(clippy::cast_precision_loss, reason = "shown with two digits")]
fn estimate(estimated: Option<Bytes>, took: Bytes) -> String {
    let ratio = |bytes: Bytes| bytes.0 as f64 / took.0.max(1) as f64;
    estimated.map_or("–".to_owned(), |bytes| format!("{} ({:.2})", mib(bytes), ratio(bytes)))
}

fn operation_name(operation: Operation) -> &'static str {
    match operation {
        Operation::Decode => "decode",
        Operation::Encode => "encode",
    }
}

/// Bytes in MiB, one digit after the point.
#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
fn mib(bytes: Bytes) -> String {
    format!("{:.1}", bytes.0 as f64 / f64::from(1 << 20))
}
