//! `Precision::Fast`: the same bits from all kernels, its memory, and an error on devices without
//! halves. `decode.rs` compares its pictures with diffusers'.

use pollster::block_on;
use wgvae::device::{DeviceKind, Vendor};
use wgvae::images::PixelFormat;
use wgvae::{
    Control, DecodeOptions, Gpu, GpuOptions, LatentSpace, Latents, LoadOptions, Plans, Precision, Storage, Vae,
};

use crate::decode::{checkpoint, decode, fixture};

/// Largest error, as a multiple of torch's in f16.
pub(crate) const MOST: f32 = 5.0;

/// Opens a device with halves. All drivers that run the tests have them; a driver without them
/// cannot test this precision.
fn with_halves(options: &GpuOptions) -> Option<Gpu> {
    let gpu = block_on(Gpu::request(options)).unwrap();
    let has = gpu.limits().shader_f16;
    if !has {
        println!("SKIPPED: {} has no shader-f16", gpu.adapter().name);
    }
    has.then_some(gpu)
}

#[test]
fn all_kernels_give_the_same_bits() {
    let fixture = fixture("toy_odd");
    let mut wanted: Option<Vec<f32>> = None;
    let Some(gpu) = with_halves(&GpuOptions::default()) else { return };
    for (kind, vendor) in [
        (DeviceKind::Cpu, Vendor::Other),
        (DeviceKind::Gpu, Vendor::Nvidia),
        (DeviceKind::Gpu, Vendor::Other),
        (DeviceKind::Gpu, Vendor::Arm),
    ] {
        let gpu = gpu.clone().with_kernels_of(kind, vendor);
        let found = decode(&gpu, &fixture, Precision::Fast).pixels;
        let wanted = wanted.get_or_insert_with(|| found.clone());
        let different = found.iter().zip(wanted).filter(|(found, wanted)| found.to_bits() != wanted.to_bits()).count();
        assert_eq!(different, 0, "{kind:?}, {vendor:?}: values that differ from the first kernels'");
    }
}

#[test]
fn a_device_without_halves_is_told_so_before_anything_is_read() {
    let gpu = block_on(Gpu::request(&GpuOptions { without_shader_f16: true, ..GpuOptions::default() })).unwrap();
    let options = LoadOptions { precision: Precision::Fast, ..LoadOptions::default() };
    let error = block_on(Vae::load(&gpu, &checkpoint(&fixture("toy_odd").config), options)).unwrap_err().to_string();
    assert_eq!(error, "precision: expected f16 or f32, on a device without shader-f16, found fast");
    assert_eq!(gpu.ledger().created(), 0, "buffers");
}

/// Tests a small picture, which fits the smallest band; its transformed tiles take half the memory.
/// Larger pictures use larger bands instead.
#[test]
fn a_small_picture_takes_less_memory_than_in_f16_and_what_was_predicted() {
    let Some(gpu) = with_halves(&GpuOptions::default()) else { return };
    let fixture = fixture("sd15_128");
    let latents = Latents::new(fixture.latents.clone()).unwrap();
    let peaks = [Precision::F16, Precision::Fast].map(|precision| {
        let options = LoadOptions { precision, ..LoadOptions::default() };
        let mut vae = block_on(Vae::load(&gpu, &checkpoint(&fixture.config), options)).unwrap();
        let options = DecodeOptions::default();
        let plan = vae
            .planner()
            .plan(&options.request(latents.size(), LatentSpace::Model, PixelFormat::Raw))
            .map(Plans::into_first)
            .unwrap();
        block_on(vae.decode_raw(&latents, &options, &mut Control::default())).unwrap();
        assert_eq!(gpu.ledger().current(), plan.memory.peak(), "{precision:?}: measured, predicted");
        assert_eq!(plan.storage == Storage::FastF16, precision == Precision::Fast);
        plan.memory.peak()
    });
    println!("f16 {}, fast {}", peaks[0], peaks[1]);
    assert!(peaks[1] < peaks[0], "fast {}, f16 {}", peaks[1], peaks[0]);
}
