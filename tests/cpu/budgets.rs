//! Plans within a memory budget: whatever they recompute or keep on the host, the picture equals
//! the whole plan's to the bit.

use proptest::prelude::*;
use test_kit::formula;
use test_kit::networks::with_kl;
use test_kit::plan_checks::check;
use test_kit::reference::interpreter::interpret;
use test_kit::sweep::parts_of_twenty;
use wgvae::config::{AutoencoderConfig, Family, PaddingMode};
use wgvae::device::DeviceLimits;
use wgvae::images::Output;
use wgvae::internals::odd_network;
use wgvae::model::networks::decoder;
use wgvae::plan::{Plan, PlanOptions, Weights};
use wgvae::{Bytes, DecodeOptions, Error, HostTensor, LatentSpace, Named, Parking, Plans, Size, Storage};

use crate::interpret::assert_same_bits;
use crate::plan_properties::tight_limits;

/// Modes: a name, true if activations may be parked, and the place of the weights.
const MODES: [(&str, bool, Weights); 4] = [
    ("recomputed", false, Weights::Device),
    ("recomputed, weights from the host", false, Weights::Host),
    ("parked", true, Weights::Device),
    ("parked, weights from the host", true, Weights::Host),
];

fn options(parking: bool, weights: Weights) -> PlanOptions {
    let chunk_limit = Bytes(1 << 16);
    PlanOptions { chunk_limit, parking, weights, ..PlanOptions::new(Storage::F32, Output::Raw) }
}

/// Decode of a small model with several budgets.
struct Decode {
    config: AutoencoderConfig,
    latents: HostTensor,
    options: PlanOptions,
    limits: DeviceLimits,
}

impl Decode {
    fn plan(&self, memory_budget: Option<Bytes>) -> Result<Plan, Error> {
        let [height, width] = [1, 2].map(|axis| u32::try_from(self.latents.shape[axis]).unwrap());
        let graph = decoder(&self.config, Size { width, height }, LatentSpace::Model);
        Plan::new(&graph, &self.limits, &PlanOptions { memory_budget, ..self.options.clone() })
    }

    /// Returns the smallest budget that has a plan.
    fn smallest(&self) -> Bytes {
        match self.plan(Some(Bytes(1))) {
            Err(Error::Budget { smallest, .. }) => smallest,
            other => panic!("a budget of one byte: {other:?}"),
        }
    }
}

/// Tests budgets from the smallest to the whole plan's peak: each plan keeps its budget and gives
/// the whole plan's picture.
#[test]
fn every_budget_gives_the_same_picture() {
    for (name, channels, attention, padding_mode) in [
        ("attention", vec![16, 16, 16, 24], true, PaddingMode::Zeros),
        ("none", vec![16, 16, 16, 16], false, PaddingMode::Zeros),
        ("the opposite side", vec![16, 16, 16, 16], false, PaddingMode::Circular),
    ] {
        let config = with_kl(odd_network(&channels, 8, attention), |kl| kl.padding_mode = padding_mode);
        let latents = formula::latents(&[config.latent_channels as usize, 12, 9]);
        let weights = formula::decoder(&config);
        let mut most_recomputed = 0;
        let points = u32::try_from(parts_of_twenty().len()).unwrap();
        for (mode, parking, retention) in MODES {
            let options = options(parking, retention);
            let (limits, config, latents) = (DeviceLimits::webgpu_default(), config.clone(), latents.clone());
            let decode = Decode { config, latents, options, limits };
            let whole = decode.plan(None).unwrap();
            let picture = interpret(&whole, &weights, &decode.latents.data);
            let least = decode.smallest();
            let (mut recomputed, mut moved) = (0, 0);
            for part in parts_of_twenty() {
                let budget = Bytes(least.0 + (whole.memory.peak().0 - least.0) * part / 20);
                let plan = decode.plan(Some(budget)).unwrap_or_else(|error| panic!("{name} {mode} {part}: {error}"));
                assert!(plan.memory.peak() <= budget, "{name} {mode} {part}: {} beyond {budget}", plan.memory.peak());
                check(&plan, &decode.limits);
                recomputed += u32::from(plan.macs() > whole.macs());
                moved += u32::from(!plan.parked.is_empty());
                assert_same_bits(
                    &interpret(&plan, &weights, &decode.latents.data),
                    &picture,
                    &format!("{name} {mode} {part}"),
                );
            }
            println!("{name} {mode}: {least} to {}, {recomputed} recompute, {moved} park", whole.memory.peak());
            // Weights that come and go leave more room for other data.
            let enough = if parking { 5 * moved >= 2 * points } else { moved == 0 && recomputed >= 1 };
            assert!(enough, "{name} {mode}: {recomputed} recompute, {moved} park");
            most_recomputed = most_recomputed.max(recomputed);
        }
        assert!(
            5 * most_recomputed >= 2 * points,
            "{name}: at most {most_recomputed} of {points} budgets compute anything again"
        );
    }
}

/// Generates cases: a small model, its latents' size, a position between the smallest budget and
/// the whole plan's peak, the mode, and the storage of activations. The last number is the size of
/// bindings, as a multiple of the smallest that the model needs.
fn cases() -> impl Strategy<Value = (AutoencoderConfig, [usize; 2], u64, usize, Storage, u64)> {
    let channels = prop::collection::vec(1_u32..=3, 1..=3);
    let mode = prop::sample::select(PaddingMode::all().collect::<Vec<_>>());
    let config =
        (channels, any::<bool>(), 1_u32..=2, mode).prop_map(|(multiples, attention, layers_per_block, mode)| {
            let channels: Vec<u32> = multiples.iter().map(|multiple| multiple * 12).collect();
            with_kl(odd_network(&channels, 4, attention), |kl| {
                (kl.layers_per_block, kl.padding_mode) = (layers_per_block, mode);
            })
        });
    let storage = prop_oneof![Just(Storage::F32), Just(Storage::F16), Just(Storage::PackedF16), Just(Storage::FastF16)];
    (config, [1_usize..=14, 1_usize..=9], 0_u64..=16, 0..MODES.len(), storage, 1_u64..=8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_models_sizes_limits_and_budgets_give_the_same_picture(
        (config, [height, width], part, mode, storage, times) in cases()
    ) {
        let (_, parking, retention) = MODES[mode];
        let latents = formula::latents(&[config.latent_channels as usize, height, width]);
        let weights = formula::decoder(&config);
        let options = PlanOptions { chunk_limit: Bytes(1 << 13), storage, ..options(parking, retention) };
        let [rows, columns] = [height, width].map(|extent| u32::try_from(extent).unwrap());
        let graph = decoder(&config, Size { width: columns, height: rows }, LatentSpace::Model);
        let limits = tight_limits(&graph, &options, times);
        let decode = Decode { config, latents, options, limits };
        let whole = decode.plan(None).unwrap();
        let least = decode.smallest();
        let budget = Bytes(least.0 + (whole.memory.peak().0 - least.0) * part / 16);
        let plan = decode.plan(Some(budget)).unwrap();
        prop_assert!(plan.memory.peak() <= budget);
        check(&plan, &decode.limits);
        let picture = interpret(&whole, &weights, &decode.latents.data);
        assert_same_bits(&interpret(&plan, &weights, &decode.latents.data), &picture, "within a budget");
    }
}

/// Most work of published models under a budget: model, pixels a side, budget in MiB, parking, and
/// work as a multiple of the whole plan's.
const PROMISES: [(&str, u32, u64, Parking, f64); 11] = [
    ("sd15", 1024, 320, Parking::Off, 2.5),
    ("flux1", 1024, 320, Parking::Off, 2.5),
    ("sd15", 1024, 200, Parking::On, 2.5),
    ("flux1", 1024, 200, Parking::On, 2.5),
    ("sd15", 2048, 768, Parking::Off, 2.5),
    ("flux1", 2048, 768, Parking::Off, 2.5),
    ("sd15", 2048, 400, Parking::On, 2.5),
    ("sd15", 4096, 1024, Parking::On, 2.5),
    ("sd15", 8192, 2560, Parking::On, 2.5),
    ("cogview4", 1024, 1024, Parking::Off, 1.15),
    ("sdxl", 1024, 572, Parking::Off, 1.15),
];

#[test]
fn published_models_fit_small_budgets() {
    let limits = DeviceLimits { shader_f16: true, ..DeviceLimits::webgpu_default() };
    for (family, side, mebibytes, parking, most_work) in PROMISES {
        let config = Family::find(family).unwrap().config();
        let size = Size { width: side / config.spatial_factor(), height: side / config.spatial_factor() };
        let plan = |memory_budget| {
            let options = DecodeOptions { memory_budget, parking, ..DecodeOptions::default() };
            wgvae::plan(&config, &options.request(size, LatentSpace::Model, Output::Rgba8), &limits, Storage::F16)
                .map(Plans::into_first)
                .unwrap()
        };
        let (whole, budget) = (plan(None), Bytes(mebibytes << 20));
        let within = plan(Some(budget));
        #[expect(clippy::cast_precision_loss, reason = "a ratio")]
        let work = within.macs() as f64 / whole.macs() as f64;
        println!(
            "{family} {side} in {}: {work:.3} times the work, {} moved",
            within.memory.peak(),
            within.transferred()
        );
        assert!(within.memory.peak() <= budget, "{family} {side}: {}", within.memory.peak());
        assert!(work <= most_work, "{family} {side} in {budget}: {work:.3} times the work");
        assert!(parking == Parking::On || within.parked.is_empty());
    }
}
