//! Decodes within memory budgets, on the device: they equal the whole plan's picture to the bit and
//! take exactly the predicted memory.

use pollster::block_on;
use test_kit::formula;
use test_kit::sweep::{is_full, parts_of_twenty};
use wgvae::device::DeviceKind;
use wgvae::images::PixelFormat;
use wgvae::{
    Bytes, Control, DecodeOptions, Error, Gpu, GpuOptions, LatentSpace, Latents, LoadOptions, Parking, Plans,
    Precision, Vae,
};

use crate::decode::{checkpoint, fixture};
use crate::matrix_units::{takes_all, with_units};

/// Parking of activations, and true if weights are loaded to the host.
const MODES: [(Parking, bool); 4] =
    [(Parking::Off, false), (Parking::Off, true), (Parking::On, false), (Parking::On, true)];

/// Returns the mode of part `part` of a sweep.
fn mode(part: u64) -> (Parking, bool) {
    let mode = usize::try_from(part).unwrap() % MODES.len();
    MODES[mode]
}

/// Returns the number of plans of a sweep over `parts` that load their weights to the host. The
/// whole plan keeps them on the device in any case.
fn on_host(parts: &[u64]) -> u32 {
    let count = parts.iter().filter(|part| **part < 20 && mode(**part).1).count();
    u32::try_from(count).unwrap()
}

/// Model with its latents, loaded twice: with weights on the device, and with weights on the host.
/// Each has its own device.
struct Sweep {
    vaes: [(Gpu, Vae); 2],
    latents: Latents,
    options: DecodeOptions,
}

impl Sweep {
    fn new(case: &str, size: [usize; 2], precision: Precision) -> Self {
        Self::on(&GpuOptions::default(), case, size, precision)
    }

    /// Loads the model on two devices that are opened with these options.
    fn on(gpu: &GpuOptions, case: &str, [height, width]: [usize; 2], precision: Precision) -> Self {
        let checkpoint = checkpoint(&fixture(case).config);
        let load = |weights_on_host| {
            let gpu = block_on(Gpu::request(gpu)).unwrap();
            let options = LoadOptions { precision, weights_on_host, ..LoadOptions::default() };
            let vae = block_on(Vae::load(&gpu, &checkpoint, options)).unwrap();
            (gpu, vae)
        };
        let channels = checkpoint.config().latent_channels as usize;
        let latents = Latents::new(formula::latents(&[channels, height, width])).unwrap();
        Self { vaes: [load(false), load(true)], latents, options: DecodeOptions::default() }
    }

    fn decode(&mut self, on_host: bool, options: &DecodeOptions) -> Vec<f32> {
        let (_, vae) = &mut self.vaes[usize::from(on_host)];
        block_on(vae.decode_raw(&self.latents, options, &mut Control::default())).unwrap().pixels
    }

    /// Decodes with budgets from the smallest to the whole plan's peak: the `parts` (twentieths of
    /// the range), each with the next mode. Every picture must equal the whole plan's to the bit.
    /// Returns how many plans recompute, park, and fetch weights.
    fn run(&mut self, parts: &[u64]) -> [u32; 3] {
        let wanted = self.decode(false, &self.options.clone());
        let (mut recomputed, mut moved, mut fetched) = (0, 0, 0);
        for &part in parts {
            let (parking, on_host) = mode(part);
            let (_, vae) = &self.vaes[usize::from(on_host)];
            let whole = vae
                .planner()
                .plan(&self.options.request(self.latents.size(), LatentSpace::Model, PixelFormat::Raw))
                .map(Plans::into_first)
                .unwrap();
            let with = |budget| DecodeOptions { memory_budget: Some(budget), parking, ..self.options };
            let Err(Error::Budget { smallest, .. }) = vae
                .planner()
                .plan(&with(Bytes(1)).request(self.latents.size(), LatentSpace::Model, PixelFormat::Raw))
                .map(Plans::into_first)
            else {
                panic!("a budget of one byte")
            };
            let budget = Bytes(smallest.0 + (whole.memory.peak().0 - smallest.0) * part / 20);
            let options = with(budget);
            let plan = vae
                .planner()
                .plan(&options.request(self.latents.size(), LatentSpace::Model, PixelFormat::Raw))
                .map(Plans::into_first)
                .unwrap();
            let found = self.decode(on_host, &options);
            let used = self.vaes[usize::from(on_host)].0.ledger().current();
            assert_eq!(used, plan.memory.peak(), "part {part}: measured, predicted");
            assert!(used <= budget, "part {part}: {used} of {budget}");
            let work = plan.macs() > whole.macs();
            recomputed += u32::from(work);
            moved += u32::from(!plan.parked.is_empty());
            fetched += u32::from(plan.memory.weights.0 == 0);
            assert_same_bits(&found, &wanted);
            println!("{parking:?} host {on_host}: {budget}, recomputes {work}");
        }
        [recomputed, moved, fetched]
    }
}

/// Asserts that floats are equal to the bit.
pub(crate) fn assert_same_bits(found: &[f32], wanted: &[f32]) {
    assert_eq!(found.len(), wanted.len());
    let different = found.iter().zip(wanted).filter(|(found, wanted)| found.to_bits() != wanted.to_bits()).count();
    assert_eq!(different, 0, "values that differ from the whole plan's");
}

/// Returns height and width of a toy's latents, of which a short run takes fewer.
fn large() -> [usize; 2] {
    if is_full() { [64, 48] } else { [40, 32] }
}

// At these sizes, the weights of real models are most of the memory that can be saved.

#[test]
fn sd15() {
    let parts = parts_of_twenty();
    let [.., fetched] = Sweep::new("sd15_128", [5, 4], Precision::F32).run(&parts);
    assert!(fetched + 1 >= on_host(&parts), "{fetched}");
}

#[test]
fn sd15_in_half_precision() {
    let parts = parts_of_twenty();
    let [_, moved, fetched] = Sweep::new("sd15_128", [12, 8], Precision::F16).run(&parts);
    assert!(moved > 0 && fetched + 1 >= on_host(&parts), "{moved}, {fetched}");
}

#[test]
fn sd3() {
    let parts = parts_of_twenty();
    let [.., fetched] = Sweep::new("sd3_odd", [4, 5], Precision::F32).run(&parts);
    assert!(fetched + 1 >= on_host(&parts), "{fetched}");
}

#[test]
#[ignore = "a minute on a CPU driver: cargo xtask test --full"]
fn cogview4() {
    let parts = parts_of_twenty();
    let [.., fetched] = Sweep::new("cogview4_64", [3, 4], Precision::F16).run(&parts);
    assert!(fetched + 1 >= on_host(&parts), "{fetched}");
}

/// Tests every twentieth of the budgets with `--full`; `tests/cpu/host_decodes` does so on the
/// cores in any run.
#[test]
fn a_large_picture_of_a_toy() {
    // Each mode with small budgets, which need it most.
    let parts = if is_full() { parts_of_twenty() } else { vec![0, 1, 2, 3, 6, 7, 20] };
    let [recomputed, moved, fetched] = Sweep::new("toy_odd", [64, 48], Precision::F32).run(&parts);
    // Without parking, the two smallest budgets leave no other way than to compute again.
    let [least_recomputed, least] = if is_full() { [5, 5] } else { [2, 1] };
    // A fast GPU with a slow link parks seldom.
    let least_moved = match block_on(Gpu::request(&GpuOptions::default())).unwrap().limits().kind {
        DeviceKind::Cpu | DeviceKind::Host => least,
        DeviceKind::Gpu => least.min(2),
    };
    assert!(
        recomputed >= least_recomputed && moved >= least_moved && fetched >= least,
        "{recomputed} compute again, {moved} park, {fetched} fetch"
    );
}

#[test]
fn a_large_picture_with_other_borders() {
    for name in ["toy_reflect", "toy_circular"] {
        let [recomputed, ..] = Sweep::new(name, large(), Precision::F32).run(&parts_of_twenty());
        assert!(recomputed >= 1, "{name}: {recomputed} compute again");
    }
}

#[test]
fn a_large_picture_of_a_toy_in_half_precision() {
    let [recomputed, ..] = Sweep::new("toy_odd", large(), Precision::F16).run(&parts_of_twenty());
    assert!(recomputed >= 1, "{recomputed} compute again");
}

#[test]
fn a_large_picture_of_a_toy_in_fast() {
    let has_halves = block_on(Gpu::request(&GpuOptions::default())).unwrap().limits().shader_f16;
    if !has_halves {
        println!("SKIPPED: this device has no shader-f16");
        return;
    }
    let [recomputed, ..] = Sweep::new("toy_odd", large(), Precision::Fast).run(&parts_of_twenty());
    assert!(recomputed >= 1, "{recomputed} compute again");
}

#[test]
fn a_large_picture_of_a_toy_on_matrix_units() {
    let Some(gpu) = with_units(&GpuOptions::default()) else { return };
    let options = GpuOptions { matrix_units: true, ..GpuOptions::default() };
    // Part 0 keeps all on the device, part 3 parks and has its weights on the host. At this size a
    // short run needs only kernels that other tests of units compile, too.
    let (size, parts) = if takes_all(&gpu) { (large(), parts_of_twenty()) } else { ([10, 12], vec![0, 3]) };
    let [recomputed, ..] = Sweep::on(&options, "toy_odd", size, Precision::Fast).run(&parts);
    assert!(recomputed >= 1, "{recomputed} compute again");
}

/// Tests SD1.5 at 320x320, where activations do not fit.
#[test]
#[ignore = "minutes on a CPU driver: cargo xtask test --full"]
fn sd15_computes_again_what_does_not_fit() {
    let mut sweep = Sweep::new("sd15_128", [40, 40], Precision::F16);
    let wanted = sweep.decode(true, &sweep.options.clone());
    let options = DecodeOptions { memory_budget: Some(Bytes(80 << 20)), parking: Parking::Off, ..sweep.options };
    let (gpu, vae) = &sweep.vaes[1];
    let (gpu, plan) = (
        gpu.clone(),
        vae.planner()
            .plan(&options.request(sweep.latents.size(), LatentSpace::Model, PixelFormat::Raw))
            .map(Plans::into_first)
            .unwrap(),
    );
    let whole = vae
        .planner()
        .plan(&sweep.options.request(sweep.latents.size(), LatentSpace::Model, PixelFormat::Raw))
        .map(Plans::into_first)
        .unwrap();
    assert!(plan.macs() > whole.macs() && plan.parked.is_empty(), "{} of {}", plan.macs(), whole.macs());
    let found = sweep.decode(true, &options);
    assert_eq!(gpu.ledger().current(), plan.memory.peak());
    assert_same_bits(&found, &wanted);
    println!("{} instead of {}", plan.memory.peak(), whole.memory.peak());
}

/// Tests that a device limited to the predicted bytes is enough, and that one byte less is not.
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
        let vae = open(None);
        let peak = |options: &DecodeOptions| {
            vae.planner()
                .plan(&options.request(latents.size(), LatentSpace::Model, PixelFormat::Raw))
                .map(|plans| plans.peak())
        };
        let whole = peak(&DecodeOptions::default()).unwrap();
        let tiny = DecodeOptions { memory_budget: Some(Bytes(1)), parking, ..DecodeOptions::default() };
        let smallest = match peak(&tiny) {
            Err(Error::Budget { smallest, .. }) => smallest,
            other => panic!("a budget of one byte: {other:?}"),
        };
        let budget = Bytes(smallest.0.midpoint(whole.0));
        let options = DecodeOptions { memory_budget: Some(budget), parking, ..DecodeOptions::default() };
        let peak = peak(&options).unwrap();
        drop(vae);
        let decode = |limit: u64| {
            let mut vae = open(Some(Bytes(limit)));
            block_on(vae.decode_raw(&latents, &options, &mut Control::default())).map(|decoded| decoded.fallback)
        };
        assert_eq!(decode(peak.0).unwrap(), None, "{parking:?}: {peak} are enough");
        match decode(peak.0 - 1) {
            Ok(fallback) => assert!(fallback.is_some(), "{parking:?}: a byte less than {peak} was enough"),
            Err(error) => assert!(error.to_string().contains("memory"), "{error}"),
        }
    }
}
