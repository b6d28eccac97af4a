//! Decodes within memory budgets, on the device: the whole plan's picture to the bit, and not a byte more than predicted.

use pollster::block_on;
use wgvae::{
    Bytes, Control, DecodeOptions, Error, Gpu, GpuOptions, Latents, LoadOptions, Output, Parking, Pixels, Precision,
    Vae,
};

use crate::decode::{checkpoint, fixture};
use crate::formula;

/// Where activations and weights may be.
const MODES: [(Parking, bool); 4] =
    [(Parking::Off, false), (Parking::Off, true), (Parking::On, false), (Parking::On, true)];

/// A model, latents of its own, and both ways to load it: weights on the device, weights on the host. Each on a device of its own.
struct Sweep {
    vaes: [(Gpu, Vae); 2],
    latents: Latents,
    options: DecodeOptions,
}

impl Sweep {
    fn new(case: &str, [height, width]: [usize; 2], precision: Precision, output: Output) -> Self {
        let checkpoint = checkpoint(&fixture(case).config);
        let load = |weights_on_host| {
            let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
            let options = LoadOptions { precision, weights_on_host, ..LoadOptions::default() };
            let vae = block_on(Vae::load(&gpu, &checkpoint, options)).unwrap();
            (gpu, vae)
        };
        let channels = checkpoint.config().latent_channels as usize;
        let latents = Latents::new(formula::latents(&[channels, height, width])).unwrap();
        Self { vaes: [load(false), load(true)], latents, options: DecodeOptions { output, ..DecodeOptions::default() } }
    }

    fn decode(&mut self, on_host: bool, options: &DecodeOptions) -> Pixels {
        let (_, vae) = &mut self.vaes[usize::from(on_host)];
        block_on(vae.decode(&self.latents, 0, options, &mut Control::default())).unwrap().pixels
    }

    /// Decodes with 21 budgets, from the smallest possible to the whole, each with the next mode, and hands every picture to `check`, with the
    /// whole plan's. Returns how many plans compute something again, park, and fetch their weights.
    fn run(&mut self, check: impl Fn(&Pixels, &Pixels) -> String) -> [u32; 3] {
        let wanted = self.decode(false, &self.options.clone());
        let (mut recomputed, mut moved, mut fetched) = (0, 0, 0);
        for part in 0..=20 {
            let (parking, on_host) = MODES[part % MODES.len()];
            let (_, vae) = &self.vaes[usize::from(on_host)];
            let whole = vae.plan(self.latents.size(), &self.options).unwrap();
            let with = |budget| DecodeOptions { memory_budget: Some(budget), parking, ..self.options };
            let Err(Error::Budget { smallest, .. }) = vae.plan(self.latents.size(), &with(Bytes(1))) else {
                panic!("a budget of one byte")
            };
            let budget = Bytes(smallest.0 + (whole.memory.peak().0 - smallest.0) * part as u64 / 20);
            let options = with(budget);
            let plan = vae.plan(self.latents.size(), &options).unwrap();
            let found = self.decode(on_host, &options);
            let used = self.vaes[usize::from(on_host)].0.ledger().current();
            assert_eq!(used, plan.memory.peak(), "part {part}: measured, predicted");
            assert!(used <= budget, "part {part}: {used} of {budget}");
            let work = plan.macs() > whole.macs();
            recomputed += u32::from(work);
            moved += u32::from(!plan.parked.is_empty());
            fetched += u32::from(plan.memory.weights.0 == 0);
            println!("{parking:?} host {on_host}: {budget}, recomputes {work}, {}", check(&found, &wanted));
        }
        [recomputed, moved, fetched]
    }
}

/// Floats and levels: the same to the bit.
fn same_bits(found: &Pixels, wanted: &Pixels) -> String {
    let different = match (found, wanted) {
        (Pixels::Raw(found), Pixels::Raw(wanted)) => {
            assert_eq!(found.len(), wanted.len());
            found.iter().zip(wanted).filter(|(found, wanted)| found.to_bits() != wanted.to_bits()).count()
        }
        (Pixels::Rgba8(found), Pixels::Rgba8(wanted)) => {
            assert_eq!(found.len(), wanted.len());
            found.iter().zip(wanted).filter(|(found, wanted)| found != wanted).count()
        }
        (Pixels::Raw(_), Pixels::Rgba8(_)) | (Pixels::Rgba8(_), Pixels::Raw(_)) => panic!("floats and levels"),
    };
    assert_eq!(different, 0, "values that differ from the whole plan's");
    "the same bits".to_owned()
}

// At these sizes the weights of real models are most of what there is to save.

#[test]
fn sd15() {
    let [.., fetched] = Sweep::new("sd15_128", [5, 4], Precision::F32, Output::Raw).run(same_bits);
    assert!(fetched >= 9, "{fetched}");
}

#[test]
fn sd15_in_half_precision() {
    let [_, moved, fetched] = Sweep::new("sd15_128", [12, 8], Precision::F16, Output::Raw).run(same_bits);
    assert!(moved > 0 && fetched >= 9, "{moved}, {fetched}");
}

#[test]
fn sd3() {
    let [.., fetched] = Sweep::new("sd3_odd", [4, 5], Precision::F32, Output::Raw).run(same_bits);
    assert!(fetched >= 9, "{fetched}");
}

#[test]
fn cogview4() {
    let [.., fetched] = Sweep::new("cogview4_64", [3, 4], Precision::F16, Output::Rgba8).run(same_bits);
    assert!(fetched >= 9, "{fetched}");
}

#[test]
fn a_large_picture_of_a_toy() {
    let [recomputed, moved, fetched] = Sweep::new("toy_odd", [64, 48], Precision::F32, Output::Raw).run(same_bits);
    assert!(recomputed >= 5 && moved >= 5 && fetched >= 5, "{recomputed} compute again, {moved} park, {fetched} fetch");
}

/// At 320x320 it is the activations of SD1.5 that do not fit.
#[test]
fn sd15_computes_again_what_does_not_fit() {
    let mut sweep = Sweep::new("sd15_128", [40, 40], Precision::F16, Output::Raw);
    let wanted = sweep.decode(true, &sweep.options.clone());
    let options = DecodeOptions { memory_budget: Some(Bytes(80 << 20)), parking: Parking::Off, ..sweep.options };
    let (gpu, vae) = &sweep.vaes[1];
    let (gpu, plan) = (gpu.clone(), vae.plan(sweep.latents.size(), &options).unwrap());
    let whole = vae.plan(sweep.latents.size(), &sweep.options).unwrap();
    assert!(plan.macs() > whole.macs() && plan.parked.is_empty(), "{} of {}", plan.macs(), whole.macs());
    let found = sweep.decode(true, &options);
    assert_eq!(gpu.ledger().current(), plan.memory.peak());
    println!("{} instead of {}: {}", plan.memory.peak(), whole.memory.peak(), same_bits(&found, &wanted));
}

/// The device refuses what was not predicted: a limit that is the budget is enough, one byte less is not.
#[test]
fn not_a_byte_more_than_predicted() {
    let fixture = fixture("toy_odd");
    let latents = Latents::new(formula::latents(&[4, 40, 24])).unwrap();
    for (parking, weights_on_host) in MODES {
        let load = LoadOptions { precision: Precision::F32, weights_on_host, ..LoadOptions::default() };
        let open = |memory_limit| {
            let gpu = block_on(Gpu::request(&GpuOptions { memory_limit, ..GpuOptions::default() })).unwrap();
            block_on(Vae::load(&gpu, &checkpoint(&fixture.config), load)).unwrap()
        };
        let planner = open(None);
        let whole = planner.plan(latents.size(), &DecodeOptions::default()).unwrap().memory.peak();
        let smallest = match planner
            .plan(latents.size(), &DecodeOptions { memory_budget: Some(Bytes(1)), parking, ..DecodeOptions::default() })
        {
            Err(Error::Budget { smallest, .. }) => smallest,
            other => panic!("a budget of one byte: {other:?}"),
        };
        let budget = Bytes(smallest.0.midpoint(whole.0));
        let options = DecodeOptions { memory_budget: Some(budget), parking, ..DecodeOptions::default() };
        let peak = planner.plan(latents.size(), &options).unwrap().memory.peak();
        drop(planner);
        let decode = |limit: u64| {
            let mut vae = open(Some(Bytes(limit)));
            block_on(vae.decode(&latents, 0, &options, &mut Control::default())).map(|decoded| decoded.fallback)
        };
        assert_eq!(decode(peak.0).unwrap(), None, "{parking:?}: {peak} are enough");
        match decode(peak.0 - 1) {
            Ok(fallback) => assert!(fallback.is_some(), "{parking:?}: a byte less than {peak} was enough"),
            Err(error) => assert!(error.to_string().contains("memory"), "{error}"),
        }
    }
}
