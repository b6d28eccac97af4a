//! Random decodes within budgets, on the device: the measured peak equals the prediction, the
//! picture equals the whole plan's to the bit, and results are monotone in the budget.

use std::collections::BTreeMap;

use pollster::block_on;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use test_kit::formula;
use test_kit::sweep::is_full;
use wgvae::images::PixelFormat;
use wgvae::{
    Bytes, Control, DecodeOptions, Error, Gpu, GpuOptions, LatentSpace, Latents, LoadOptions, Parking, Plans,
    Precision, Vae,
};

use crate::budgets::assert_same_bits;
use crate::decode::{checkpoint, fixture};

const MODELS: [&str; 4] = ["toy_odd", "toy_no_attention", "toy_two_levels", "toy_tiny"];
const PRECISIONS: [Precision; 2] = [Precision::F32, Precision::F16];
/// Number of steps between the smallest budget and the whole plan's peak.
const STEPS: u64 = 16;

/// Index of the model and of the precision; true if weights are on the host; true if activations
/// may be parked; the latents' size; the step of the budget.
type Job = (usize, usize, bool, bool, [usize; 2], u64);

fn jobs() -> impl Strategy<Value = Job> {
    let size = [1_usize..=20, 1_usize..=16];
    (0..MODELS.len(), 0..PRECISIONS.len(), any::<bool>(), any::<bool>(), size, 0..=STEPS)
}

/// Model on a device of its own, whose ledger counts nothing else.
struct Loaded {
    gpu: Gpu,
    vae: Vae,
    channels: usize,
}

impl Loaded {
    fn new(model: &str, precision: Precision, weights_on_host: bool) -> Self {
        let checkpoint = checkpoint(&fixture(model).config);
        let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
        let options = LoadOptions { precision, weights_on_host, ..LoadOptions::default() };
        let vae = block_on(Vae::load(&gpu, &checkpoint, options)).unwrap();
        Self { gpu, vae, channels: checkpoint.config().latent_channels as usize }
    }

    fn check(&mut self, what: &str, parking: Parking, [height, width]: [usize; 2], step: u64) {
        let latents = Latents::new(formula::latents(&[self.channels, height, width])).unwrap();
        let free = DecodeOptions { parking, ..DecodeOptions::default() };
        let with = |budget| DecodeOptions { memory_budget: Some(Bytes(budget)), ..free };
        let whole = self
            .vae
            .planner()
            .plan(&free.request(latents.size(), LatentSpace::Model, PixelFormat::Raw))
            .unwrap()
            .peak();
        let named = |budget| match self
            .vae
            .planner()
            .plan(&with(budget).request(latents.size(), LatentSpace::Model, PixelFormat::Raw))
            .map(Plans::into_first)
        {
            Err(Error::Budget { smallest, .. }) => smallest,
            other => panic!("{what}: {budget} bytes: {:?}", other.map(|plan| plan.memory.peak())),
        };
        let smallest = named(1);
        assert_eq!(named(smallest.0 - 1), smallest, "{what}");
        let budget = smallest.0 + (whole.0 - smallest.0) * step / STEPS;
        let peak = self
            .vae
            .planner()
            .plan(&with(budget).request(latents.size(), LatentSpace::Model, PixelFormat::Raw))
            .map(Plans::into_first)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let peak = peak.memory.peak();
        assert!(smallest <= peak && peak.0 <= budget, "{what}: {peak} of {budget}");
        let again = self
            .vae
            .planner()
            .plan(&with(peak.0).request(latents.size(), LatentSpace::Model, PixelFormat::Raw))
            .map(Plans::into_first)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(again.memory.peak() <= peak, "{what}: the peak as a budget");
        let wanted = block_on(self.vae.decode_raw(&latents, &free, &mut Control::default())).unwrap();
        let found = block_on(self.vae.decode_raw(&latents, &with(budget), &mut Control::default())).unwrap();
        assert_eq!(found.fallback, None, "{what}");
        assert_eq!(self.gpu.ledger().current(), peak, "{what}: measured, predicted");
        assert_same_bits(&found.pixels, &wanted.pixels);
    }
}

/// Tests 2,000 jobs in a full run, otherwise the first of them.
#[test]
fn measured_is_predicted_and_the_bits_are_the_same() {
    let mut runner = TestRunner::deterministic();
    let mut loaded = BTreeMap::new();
    for number in 0..if is_full() { 2000 } else { 24 } {
        let job = jobs().new_tree(&mut runner).unwrap().current();
        let (model, precision, on_host, parks, size, step) = job;
        let of = || Loaded::new(MODELS[model], PRECISIONS[precision], on_host);
        let what = format!("job {number}, {} {job:?}", MODELS[model]);
        let parking = if parks { Parking::On } else { Parking::Off };
        loaded.entry((model, precision, on_host)).or_insert_with(of).check(&what, parking, size, step);
    }
}
