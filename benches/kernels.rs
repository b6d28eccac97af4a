//! Operations of real layers, one at a time: GFLOP/s, counted as direct convolutions, and the share of the adapter's FMA ceiling.

use std::time::Duration;

use criterion::{Criterion, Throughput};
use pollster::block_on;
use wgvae::model::graph::{Graph, Shape, Transform};
use wgvae::{Gpu, GpuOptions, Storage};

mod support;

/// A layer: its name, the input's side and channels, the output's channels, the filter's side, whether it doubles the size.
struct Layer {
    name: &'static str,
    side: u32,
    c_in: u32,
    c_out: u32,
    filter: u32,
    upsample: bool,
}

const LAYERS: [Layer; 7] = [
    Layer { name: "conv_in 4->512 32x32", side: 32, c_in: 4, c_out: 512, filter: 3, upsample: false },
    Layer { name: "conv 512->512 32x32", side: 32, c_in: 512, c_out: 512, filter: 3, upsample: false },
    Layer { name: "conv 512->512 64x64", side: 64, c_in: 512, c_out: 512, filter: 3, upsample: false },
    Layer { name: "conv 256->256 128x128", side: 128, c_in: 256, c_out: 256, filter: 3, upsample: false },
    Layer { name: "conv 128->128 256x256", side: 256, c_in: 128, c_out: 128, filter: 3, upsample: false },
    Layer { name: "upsample conv 256->256 to 128x128", side: 64, c_in: 256, c_out: 256, filter: 3, upsample: true },
    Layer { name: "conv_shortcut 512->256 128x128", side: 128, c_in: 512, c_out: 256, filter: 1, upsample: false },
];

impl Layer {
    /// norm, SiLU, convolution, as in a resnet; upsamplers and shortcuts read the stream itself.
    fn graph(&self) -> Graph {
        let mut graph = Graph::default();
        let shape = Shape::image(self.side, self.side, self.c_in);
        let mut x = graph.input(shape, Transform::none(shape.channels));
        if self.upsample {
            x = graph.upsample(x);
        }
        graph.conv2d("conv", x, self.c_out, self.filter);
        graph
    }
}

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
