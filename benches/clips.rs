//! Cost of a part of a clip compared with an image, for each multiply-add: decodes of SeedVR2's and
//! Wan's networks with random weights. The unit is GFLOP/s, counted as direct convolutions.
//!
//! `WGVAE_BENCH_SIDES=64,128` chooses the sizes in pixels.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use pollster::block_on;
use wgvae::config::Family;
use wgvae::model::blocks::Part;
use wgvae::model::networks::part_of_decoder;
use wgvae::{Gpu, GpuOptions, LatentSpace, Size, Storage};

mod support;

#[expect(clippy::disallowed_methods, reason = "a bench has no flags of its own")]
fn main() {
    let gpu = block_on(Gpu::request(&GpuOptions::default())).expect("an adapter");
    println!("{} ({}): FMA ceiling {:.0} GFLOP/s", gpu.adapter().name, gpu.adapter().driver, support::ceiling());
    let sides = std::env::var("WGVAE_BENCH_SIDES").unwrap_or_else(|_| "64".to_owned());
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(10))
        .configure_from_args();
    for family in ["seedvr2", "wan21"] {
        let config = Family::find(family).expect("a family").config();
        let mut group = criterion.benchmark_group(family);
        for side in sides.split(',').map(|side| side.parse::<u32>().expect("a side in pixels")) {
            for (name, part) in [("image", Part::Image), ("part of a clip", Part::Next)] {
                let graph =
                    part_of_decoder(&config, part, Size { width: side / 8, height: side / 8 }, LatentSpace::Model);
                let mut bench = support::Bench::new(&gpu, &graph, Storage::F32);
                group.throughput(Throughput::Elements(bench.plan.macs() * 2));
                group.bench_function(BenchmarkId::new(name, format!("{side}x{side}")), |bencher| {
                    bencher.iter_custom(|iterations| {
                        Duration::from_secs_f64((0..iterations).map(|_| bench.run().seconds).sum())
                    });
                });
            }
        }
        group.finish();
    }
}
