//! Operations of real layers, one at a time. The units are GFLOP/s, counted as direct convolutions,
//! and percent of the adapter's FMA ceiling.

use std::time::Duration;

use criterion::{Criterion, Throughput};
use pollster::block_on;
use wgvae::{Gpu, GpuOptions, Storage};

#[path = "support/layers.rs"]
mod layers;
mod support;

use self::layers::LAYERS;

fn main() {
    let gpu = block_on(Gpu::request(&GpuOptions::default())).expect("an adapter");
    let ceiling = support::ceiling();
    println!("{} ({}): FMA ceiling {ceiling:.0} GFLOP/s", gpu.adapter().name, gpu.adapter().driver);
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    let mut storages = vec![Storage::F32];
    storages.push(if gpu.limits().shader_f16 { Storage::F16 } else { Storage::PackedF16 });
    for storage in storages {
        for layer in &LAYERS {
            let mut bench = support::Bench::new(&gpu, &layer.graph(), storage);
            let stage = bench.plan.stages.iter().position(|name| name == "conv").expect("the stage");
            let flop = bench.plan.macs() * 2;
            let mut fastest = f64::INFINITY;
            let mut group = criterion.benchmark_group(format!("{storage:?}"));
            group.throughput(Throughput::Elements(flop));
            group.bench_function(layer.name, |bencher| {
                bencher.iter_custom(|iterations| {
                    let mut total = 0.0;
                    for _ in 0..iterations {
                        let run = bench.run();
                        let seconds = run.stage_seconds.map_or(run.seconds, |stages| stages[stage]);
                        fastest = fastest.min(seconds);
                        total += seconds;
                    }
                    Duration::from_secs_f64(total)
                });
            });
            group.finish();
            let rate = flop as f64 / fastest * 1e-9;
            println!(
                "{storage:?} {}: best {rate:.1} GFLOP/s, {:.0} % of the ceiling",
                layer.name,
                100.0 * rate / ceiling
            );
        }
    }
}
