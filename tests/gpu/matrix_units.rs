//! Matrix units: `fast` has the same error with them as without, with all other kernels, and takes
//! the predicted memory. Devices without units give an error.

use pollster::block_on;
use test_kit::sweep::is_full;
use wgvae::device::{DeviceKind, Vendor};
use wgvae::images::PixelFormat;
use wgvae::{Bytes, Control, DecodeOptions, Gpu, GpuOptions, LatentSpace, Latents, LoadOptions, Plans, Precision, Vae};

use crate::decode::{CASES, checkpoint, decode, fixture, relative_error};
use crate::fast::MOST;

/// Returns true if tests take all networks: a short run leaves most out on a CPU driver, which
/// imitates units and compiles their kernels for minutes.
pub(crate) fn takes_all(gpu: &Gpu) -> bool {
    is_full() || gpu.limits().kind == DeviceKind::Gpu
}

/// Opens a device with its matrix units. Mesa's CPU driver has them from 26.1 on; a driver without
/// them cannot test them.
pub(crate) fn with_units(options: &GpuOptions) -> Option<Gpu> {
    let gpu = block_on(Gpu::request(options)).unwrap();
    if gpu.adapter().matrix_units.is_none() {
        println!("SKIPPED: {} has no matrix units", gpu.adapter().name);
        return None;
    }
    Some(block_on(Gpu::request(&GpuOptions { matrix_units: true, ..options.clone() })).unwrap())
}

/// Returns the number of kernels of products on units, and of other products, in the plan for
/// latents of `[.., h, w]`.
fn launches(vae: &Vae, latents: &Latents) -> (usize, usize) {
    let facts = vae
        .planner()
        .plan(&DecodeOptions::default().request(latents.size(), LatentSpace::Model, PixelFormat::Rgba8))
        .map(Plans::into_first)
        .unwrap();
    let files = facts.variants.iter().map(|variant| variant.file);
    let count = |wanted: &str| files.clone().filter(|file| *file == wanted).count();
    let tiles = ["matmul", "matmul_quad", "matmul_shared"];
    (count("matmul_matrix"), tiles.iter().map(|tile| count(tile)).sum())
}

fn load(gpu: &Gpu, config: &str, precision: Precision) -> Vae {
    block_on(Vae::load(gpu, &checkpoint(config), LoadOptions { precision, ..LoadOptions::default() })).unwrap()
}

#[test]
fn decodes_on_units_are_as_near_to_diffusers_as_fast_is() {
    let Some(gpu) = with_units(&GpuOptions::default()) else { return };
    for case in CASES.into_iter().filter(|case| takes_all(&gpu) || *case == "toy_odd") {
        let fixture = fixture(case);
        let decoded = decode(&gpu, &fixture, Precision::Fast);
        let error = relative_error(&decoded, &fixture.image);
        let (on_units, others) =
            launches(&load(&gpu, &fixture.config, Precision::Fast), &Latents::new(fixture.latents).unwrap());
        println!("{case}: {error:.2e}, torch {:.2e}; kernels on units {on_units}", fixture.f16_error);
        assert!(error <= MOST * fixture.f16_error, "{case}: {error:.2e}, torch {:.2e}", fixture.f16_error);
        assert!(on_units > 0 && others == 0, "{case}: {on_units} kernels on units, {others} others");
    }
}

/// Tests the units with the other kernels of a CPU and of GPUs.
#[test]
fn all_kernels_give_the_same_bits() {
    let fixture = fixture("toy_odd");
    let mut wanted: Option<Vec<u32>> = None;
    let Some(gpu) = with_units(&GpuOptions::default()) else { return };
    for (kind, vendor) in
        [(DeviceKind::Cpu, Vendor::Other), (DeviceKind::Gpu, Vendor::Nvidia), (DeviceKind::Gpu, Vendor::Arm)]
    {
        let gpu = gpu.clone().with_kernels_of(kind, vendor);
        let found: Vec<u32> = decode(&gpu, &fixture, Precision::Fast).pixels.into_iter().map(f32::to_bits).collect();
        let wanted = wanted.get_or_insert_with(|| found.clone());
        let different = found.iter().zip(wanted).filter(|(found, wanted)| found != wanted).count();
        assert_eq!(different, 0, "{kind:?}, {vendor:?}: values that differ from the first kernels'");
    }
}

#[test]
fn a_decode_on_units_takes_what_was_predicted() {
    let Some(gpu) = with_units(&GpuOptions::default()) else { return };
    for case in ["toy_odd", "sd15_128"].into_iter().filter(|case| takes_all(&gpu) || *case == "toy_odd") {
        let fixture = fixture(case);
        let mut vae = load(&gpu, &fixture.config, Precision::Fast);
        let latents = Latents::new(fixture.latents).unwrap();
        let options = DecodeOptions::default();
        let plan = vae
            .planner()
            .plan(&options.request(latents.size(), LatentSpace::Model, PixelFormat::Rgba8))
            .map(Plans::into_first)
            .unwrap();
        block_on(vae.decode_with(&latents, &options, &mut Control::default())).unwrap();
        assert_eq!(gpu.ledger().current(), plan.memory.peak(), "{case}: measured, predicted");
        assert!(launches(&vae, &latents).0 > 0, "{case}: nothing was multiplied on units");
        drop(vae);
        assert_eq!(gpu.ledger().current(), Bytes(0), "{case}");
    }
}

/// Tests that precisions other than `fast` give the same bits as on a device without units.
#[test]
fn other_precisions_do_not_see_units() {
    let Some(gpu) = with_units(&GpuOptions::default()) else { return };
    let without = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    let fixture = fixture("toy_odd");
    for precision in [Precision::F32, Precision::F16] {
        let [found, wanted] = [&gpu, &without]
            .map(|gpu| decode(gpu, &fixture, precision).pixels.into_iter().map(f32::to_bits).collect::<Vec<u32>>());
        assert!(found == wanted, "{precision:?}: other bits with units");
    }
}

/// Tests every driver: an adapter with units refuses them to a device without halves, and an
/// adapter without units refuses them to all.
#[test]
fn an_adapter_without_units_is_refused() {
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    assert_eq!(gpu.limits().matrix_units, None, "nobody has asked for them");
    let without_shader_f16 = gpu.adapter().matrix_units.is_some();
    let options = GpuOptions { matrix_units: true, without_shader_f16, ..GpuOptions::default() };
    let error = block_on(Gpu::request(&options)).unwrap_err().to_string();
    assert!(error.contains(&gpu.adapter().name) && error.contains("no matrix units that kernels can use"), "{error}");
}
