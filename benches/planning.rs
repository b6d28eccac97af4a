//! Time to make plans: every family's decoder, encoder and clips at 1024x1024. Budgets go from the
//! whole plan's memory to one byte, which is an error. Needs no device.
//!
//! The output is criterion's lines, then a table in milliseconds with the fastest run of each, for
//! `benches/results/planning.md`. `WGVAE_BENCH_FAMILIES=sd15,wan21` chooses families.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, SamplingMode};
use wgvae::config::{AutoencoderConfig, FAMILIES};
use wgvae::device::DeviceLimits;
use wgvae::images::Output;
use wgvae::{Bytes, DecodeOptions, EncodeOptions, LatentSpace, Parking, Plans, Result, Size, Storage};

/// Side of the images in pixels.
const SIDE: u32 = 1024;
/// Budgets, as fractions of the whole plan's peak.
const PARTS: [(u64, u64); 6] = [(3, 4), (1, 2), (3, 8), (1, 4), (1, 8), (1, 16)];

/// The kind of plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Decode,
    Encode,
    ClipDecode,
    ClipEncode,
}

const KINDS: [(Kind, &str); 4] = [
    (Kind::Decode, "decode"),
    (Kind::Encode, "encode"),
    (Kind::ClipDecode, "clip decode"),
    (Kind::ClipEncode, "clip encode"),
];

impl Kind {
    /// Makes the plan and returns its peak.
    fn plan(
        self,
        config: &AutoencoderConfig,
        storage: Storage,
        budget: Option<Bytes>,
        parking: Parking,
    ) -> Result<Bytes> {
        let limits = DeviceLimits { shader_f16: true, ..DeviceLimits::webgpu_default() };
        let side = SIDE / config.latent_factor(LatentSpace::Model);
        let (latents, image) = (Size { width: side, height: side }, Size { width: SIDE, height: SIDE });
        let decode = DecodeOptions { memory_budget: budget, parking, ..DecodeOptions::default() };
        let encode = EncodeOptions { memory_budget: budget, parking, ..EncodeOptions::default() };
        Ok(match self {
            Self::Decode => {
                wgvae::plan(config, &decode.request(latents, LatentSpace::Model, Output::Rgba8), &limits, storage)
                    .map(Plans::into_first)?
                    .memory
                    .peak()
            }
            Self::Encode => {
                wgvae::plan(config, &encode.request(image), &limits, storage).map(Plans::into_first)?.memory.peak()
            }
            Self::ClipDecode => wgvae::plan(
                config,
                &decode.request(latents, LatentSpace::Model, Output::Rgba8).of_clip(),
                &limits,
                storage,
            )?
            .peak(),
            Self::ClipEncode => wgvae::plan(config, &encode.request(image).of_clip(), &limits, storage)?.peak(),
        })
    }

    fn is_for(self, config: &AutoencoderConfig) -> bool {
        config.has_time() || matches!(self, Self::Decode | Self::Encode)
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench has no flags of its own")]
fn main() {
    let chosen = std::env::var("WGVAE_BENCH_FAMILIES").ok();
    let is_chosen = |name: &str| chosen.as_ref().is_none_or(|names| names.split(',').any(|chosen| chosen == name));
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_millis(20))
        .without_plots()
        .configure_from_args();
    let mut table = vec![header()];
    for family in FAMILIES.iter().filter(|family| is_chosen(family.name)) {
        let config = family.config();
        for (kind, kind_name) in KINDS.into_iter().filter(|(kind, _)| kind.is_for(&config)) {
            for storage in [Storage::F32, Storage::F16] {
                let name = format!("{} {kind_name} {storage:?}", family.name);
                let mut row = format!("| {name} |");
                for time in times(&mut criterion, &name, &config, kind, storage) {
                    row.push_str(&time.map_or(" |".to_owned(), |time| format!(" {:.0} |", time.as_secs_f64() * 1e3)));
                }
                table.push(row);
            }
        }
    }
    println!("{}", table.join("\n"));
}

fn header() -> String {
    let parts = PARTS.map(|(part, of)| format!(" {part}/{of} |")).concat();
    let lines = "---|".repeat(PARTS.len() + 3);
    format!("| ms | none |{parts} 1 byte |\n|{lines}")
}

/// Returns the fastest run for each budget: of parking and recomputing, the slower one. `None` if
/// criterion's filter excluded it.
fn times(
    criterion: &mut Criterion,
    name: &str,
    config: &AutoencoderConfig,
    kind: Kind,
    storage: Storage,
) -> Vec<Option<Duration>> {
    let whole = kind.plan(config, storage, None, Parking::Off).expect("a plan without a budget");
    let parts = PARTS.map(|(part, of)| (format!("{part}/{of}"), Some(Bytes(whole.0 / of * part))));
    let budgets = [("none".to_owned(), None)].into_iter().chain(parts).chain([("1 byte".to_owned(), Some(Bytes(1)))]);
    let mut group = criterion.benchmark_group(name);
    group.sampling_mode(SamplingMode::Flat);
    let slower = |(label, budget): (String, Option<Bytes>)| {
        let ways = [(Parking::On, "parking"), (Parking::Off, "recomputing")];
        let fastest = ways.map(|(parking, way)| {
            let mut fastest: Option<Duration> = None;
            group.bench_function(BenchmarkId::new(way, &label), |bencher| {
                bencher.iter_custom(|iterations| {
                    let run = |_| {
                        let start = Instant::now();
                        // A budget that is too small takes its time, too.
                        let _ = black_box(kind.plan(config, storage, budget, parking));
                        start.elapsed()
                    };
                    let times: Vec<Duration> = (0..iterations).map(run).collect();
                    fastest = fastest.into_iter().chain(times.iter().copied()).min();
                    times.into_iter().sum()
                });
            });
            fastest
        });
        fastest.into_iter().flatten().max()
    };
    budgets.map(slower).collect()
}
