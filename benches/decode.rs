//! Whole decodes of SD 1.5's decoder with random weights, in GFLOP/s counted as direct
//! convolutions.
//!
//! `WGVAE_BENCH_SIDES=256,512` chooses the sizes in pixels.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use pollster::block_on;
use wgvae::config::FAMILIES;
use wgvae::images::Output;
use wgvae::kernels::choice::KernelChoice;
use wgvae::model::networks::decoder;
use wgvae::plan::PlanOptions;
use wgvae::report::RunReport;
use wgvae::{Bytes, Gpu, GpuOptions, LatentSpace, Size, Storage};

mod support;

#[expect(clippy::disallowed_methods, reason = "a bench has no flags of its own")]
fn main() {
    let gpu = block_on(Gpu::request(&GpuOptions::default())).expect("an adapter");
    println!("{} ({}): FMA ceiling {:.0} GFLOP/s", gpu.adapter().name, gpu.adapter().driver, support::ceiling());
    let sides = std::env::var("WGVAE_BENCH_SIDES").unwrap_or_else(|_| "128,256".to_owned());
    let config = FAMILIES.iter().find(|family| family.name == "sd15").expect("sd15 is a family").config();
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(10))
        .configure_from_args();
    let half = if gpu.limits().shader_f16 { Storage::F16 } else { Storage::PackedF16 };
    for storage in [Storage::F32, half] {
        let mut group = criterion.benchmark_group(format!("sd15 decode {storage:?}"));
        for side in sides.split(',').map(|side| side.parse::<u32>().expect("a side in pixels")) {
            let graph = decoder(&config, Size { width: side / 8, height: side / 8 }, LatentSpace::Model);
            let mut bench = support::Bench::new(&gpu, &graph, storage);
            println!("{storage:?} {side}x{side}: predicted peak {}", bench.plan.memory.peak());
            println!("{}", submissions(&bench.run()));
            // Use as few bands as the device's bindings allow, to measure the cost of bands.
            let choice = KernelChoice { winograd_scratch_bytes: 1 << 40, ..KernelChoice::for_device(gpu.limits()) };
            let whole = PlanOptions {
                chunk_limit: Bytes(u64::MAX),
                choice: Some(choice),
                ..PlanOptions::new(storage, Output::Rgba8)
            };
            let mut unbanded = support::Bench::with(&gpu, &graph, &whole);
            group.throughput(Throughput::Elements(bench.plan.macs() * 2));
            group.bench_function(BenchmarkId::from_parameter(format!("{side}x{side}")), |bencher| {
                bencher.iter_custom(|iterations| {
                    Duration::from_secs_f64((0..iterations).map(|_| bench.run().seconds).sum())
                });
            });
            group.bench_function(BenchmarkId::new("unbanded", format!("{side}x{side}")), |bencher| {
                bencher.iter_custom(|iterations| {
                    Duration::from_secs_f64((0..iterations).map(|_| unbanded.run().seconds).sum())
                });
            });
        }
        group.finish();
    }
}

/// Formats the durations of a run's submissions: their number, the median, the 95th percentile and
/// the longest.
fn submissions(run: &RunReport) -> String {
    let mut seconds: Vec<f64> = run.submissions.iter().map(|submission| submission.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let at = |part: usize| seconds[(seconds.len() * part / 100).min(seconds.len() - 1)] * 1e3;
    format!("{} submissions, ms: median {:.0}, 95 % {:.0}, longest {:.0}", seconds.len(), at(50), at(95), at(100))
}
