//! Whole decodes against diffusers: `make_fixtures.py` made `tests/fixtures/*.safetensors` in f64.

use pollster::block_on;
use test_kit::sweep::is_full;
use test_kit::written::as_written;
use test_kit::{formula, repository};
use wgvae::device::{DeviceKind, Vendor};
use wgvae::files::{FileSource, MemorySource};
use wgvae::images::PixelFormat;
use wgvae::internals::safetensors::{read_header, read_tensor, write_safetensors};
use wgvae::tiling::{Blend, BlendRule};
use wgvae::{
    Checkpoint, Control, DecodeOptions, Decoded, Gpu, GpuOptions, HostTensor, LatentSpace, Latents, LoadOptions,
    Precision, Tiling, Vae,
};

use crate::fast::MOST;

/// Golden decode.
pub(crate) struct Fixture {
    pub(crate) config: String,
    pub(crate) latents: HostTensor,
    pub(crate) image: HostTensor,
    /// Error of torch in f16: max |torch f16 - f64| / max |f64|.
    pub(crate) f16_error: f32,
}

pub(crate) fn fixture(name: &str) -> Fixture {
    let path = repository().join("tests/fixtures").join(format!("{name}.safetensors"));
    let source = FileSource::open(path).unwrap();
    let header = block_on(read_header(&source)).unwrap();
    let shape: Vec<usize> = serde_json::from_str(&header.metadata["latent_shape"]).unwrap();
    Fixture {
        config: header.metadata["config"].clone(),
        latents: formula::latents(&shape),
        image: block_on(read_tensor(&source, "image", &header.tensors["image"])).unwrap(),
        f16_error: header.metadata["f16_error"].parse().unwrap(),
    }
}

pub(crate) fn checkpoint(config: &str) -> Checkpoint {
    checkpoint_with(config, |_, _| {})
}

/// Makes a checkpoint of the formula's weights, each changed by `change`.
pub(crate) fn checkpoint_with(config: &str, change: impl Fn(&str, &mut HostTensor)) -> Checkpoint {
    let parsed = wgvae::config::AutoencoderConfig::from_json(config).unwrap();
    let mut weights = as_written(&parsed, formula::decoder(&parsed));
    weights.iter_mut().for_each(|(name, tensor)| change(name, tensor));
    let tensors: Vec<(&str, &HostTensor)> = weights.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let file = write_safetensors(&tensors).unwrap();
    block_on(Checkpoint::from_source(Box::new(MemorySource::new("formula", file)), Some(config))).unwrap()
}

pub(crate) fn decode(gpu: &Gpu, fixture: &Fixture, precision: Precision) -> Decoded<Vec<f32>> {
    let options = LoadOptions { precision, ..LoadOptions::default() };
    let mut vae = block_on(Vae::load(gpu, &checkpoint(&fixture.config), options)).unwrap();
    let latents = Latents::new(fixture.latents.clone()).unwrap();
    block_on(vae.decode_raw(&latents, &DecodeOptions::default(), &mut Control::default())).unwrap()
}

pub(crate) fn relative_error(found: &Decoded<Vec<f32>>, wanted: &HostTensor) -> f32 {
    let found = &found.pixels;
    assert_eq!(found.len(), wanted.data.len());
    let largest = wanted.data.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let difference = found.iter().zip(&wanted.data).map(|(a, b)| (a - b).abs());
    // A NaN must not vanish in a maximum.
    difference.fold(0.0_f32, |most, value| if value <= most { most } else { value }) / largest
}

pub(crate) const CASES: [&str; 9] = [
    "toy_two_levels",
    "toy_odd",
    "toy_no_attention",
    "toy_small_decoder",
    "toy_wide",
    "sd3_odd",
    "flux1_64x96",
    "cogview4_64",
    "sd15_128",
];

#[test]
fn f32_decodes_match_diffusers() {
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    for case in CASES {
        let fixture = fixture(case);
        let decoded = decode(&gpu, &fixture, Precision::F32);
        let error = relative_error(&decoded, &fixture.image);
        println!("{case} {}: {error:.2e} in {:.2} s", decoded.size, decoded.run.seconds);
        assert!(error <= 1e-4, "{case}: relative max error {error:.2e}, at most 1e-4");
    }
}

/// Tests f16 and, on a device with halves, `fast`, whose error is a few times that of f16.
#[test]
fn decodes_in_halves_are_about_as_good_as_torch() {
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    let has_halves = gpu.limits().shader_f16;
    if !has_halves {
        println!("SKIPPED: fast, as {} has no shader-f16", gpu.adapter().name);
    }
    for case in CASES {
        let fixture = fixture(case);
        let check = |precision: Precision, most: f32| {
            let decoded = decode(&gpu, &fixture, precision);
            let error = relative_error(&decoded, &fixture.image);
            println!("{case} in {precision:?}: {error:.2e}, torch in f16 {:.2e}", fixture.f16_error);
            let limit = most * fixture.f16_error;
            assert!(error <= limit, "{case} in {precision:?}: {error:.2e}, at most {limit:.2e}");
            decoded.pixels
        };
        let half = check(Precision::F16, 2.0);
        if has_halves {
            let fast = check(Precision::Fast, MOST);
            assert_ne!(fast, half, "{case}: what convolutions make on their way is not in halves");
        }
    }
}

#[test]
fn pictures_are_within_one_level() {
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    for case in ["toy_odd", "toy_wide", "sd3_odd"] {
        let fixture = fixture(case);
        let load = LoadOptions { precision: Precision::F32, ..LoadOptions::default() };
        let mut vae = block_on(Vae::load(&gpu, &checkpoint(&fixture.config), load)).unwrap();
        let found = block_on(vae.decode(&Latents::new(fixture.latents.clone()).unwrap())).unwrap().pixels;
        let plane = fixture.image.data.len() / 3;
        for pixel in 0..plane {
            assert_eq!(found[pixel * 4 + 3], 255);
            for channel in 0..3 {
                let value = fixture.image.data[channel * plane + pixel];
                // As in VaeImageProcessor.postprocess, rounding half to even.
                let wanted = ((value * 0.5 + 0.5).clamp(0.0, 1.0) * 255.0).round_ties_even();
                let found = f32::from(found[pixel * 4 + channel]);
                assert!(
                    (found - wanted).abs() <= 1.0,
                    "{case} pixel {pixel} channel {channel}: {found}, wanted {wanted}"
                );
            }
        }
    }
}

#[test]
fn the_kernels_for_gpus_are_right_on_any_adapter() {
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    let gpu = gpu.with_kernels_of(DeviceKind::Gpu, Vendor::Other);
    for case in ["toy_two_levels", "toy_odd", "toy_no_attention", "toy_wide", "flux1_64x96"] {
        let fixture = fixture(case);
        let error = relative_error(&decode(&gpu, &fixture, Precision::F32), &fixture.image);
        assert!(error <= 1e-4, "{case}: relative max error {error:.2e}, at most 1e-4");
        let error = relative_error(&decode(&gpu, &fixture, Precision::F16), &fixture.image);
        assert!(error <= 2.0 * fixture.f16_error, "{case}: {error:.2e}, torch {:.2e}", fixture.f16_error);
    }
}

/// Tests that the device's kernels, tiles and bands change no bit of a decode.
#[test]
fn all_kernels_give_the_same_bits() {
    let bits = |gpu: &Gpu, fixture: &Fixture, precision: Precision| -> Vec<u32> {
        decode(gpu, fixture, precision).pixels.into_iter().map(f32::to_bits).collect()
    };
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    let cpu = gpu.clone().with_kernels_of(DeviceKind::Cpu, Vendor::Other);
    let others =
        [Vendor::Other, Vendor::Nvidia, Vendor::Arm].map(|vendor| gpu.clone().with_kernels_of(DeviceKind::Gpu, vendor));
    // More latents than the queries in a block of attention on CPU drivers.
    let many = Fixture { latents: formula::latents(&[1, 8, 36, 36]), ..fixture("toy_two_levels") };
    let cases = [("toy_odd", fixture("toy_odd")), ("36x36", many), ("flux1_64x96", fixture("flux1_64x96"))];
    for (case, fixture) in &cases[..if is_full() { cases.len() } else { 2 }] {
        for precision in [Precision::F32, Precision::F16] {
            let wanted = bits(&cpu, fixture, precision);
            for gpu in &others {
                let found = bits(gpu, fixture, precision);
                let other = found.iter().zip(&wanted).filter(|(found, wanted)| found != wanted).count();
                assert_eq!(
                    other,
                    0,
                    "{case} {precision:?}: floats that differ with the kernels of {:?}",
                    gpu.limits().vendor
                );
            }
        }
    }
}

#[test]
fn default_limits_change_nothing() {
    let options = GpuOptions { webgpu_default_limits: true, ..GpuOptions::default() };
    let gpu = block_on(Gpu::request(&options)).unwrap();
    assert_eq!(gpu.limits().max_storage_buffer_binding_size.0, 128 << 20);
    let cases = ["toy_wide", "flux1_64x96", "cogview4_64"];
    for case in &cases[..if is_full() { cases.len() } else { 2 }] {
        let fixture = fixture(case);
        let decoded = decode(&gpu, &fixture, Precision::F32);
        let error = relative_error(&decoded, &fixture.image);
        assert!(error <= 1e-4, "{case}: relative max error {error:.2e}, at most 1e-4");
    }
}

/// Tests the embedded model's picture against diffusers in f32, stored as halves by
/// `tools/demo_model/export.py`.
#[test]
fn the_demo_matches_diffusers() {
    let folder = repository();
    let tensor = |file: &str, name: &str| {
        let source = FileSource::open(folder.join(file)).unwrap();
        let header = block_on(read_header(&source)).unwrap();
        block_on(read_tensor(&source, name, &header.tensors[name])).unwrap()
    };
    let wanted = tensor("tests/fixtures/demo.safetensors", "image");
    let latents = Latents::new(tensor("assets/demo/latents.safetensors", "latents")).unwrap();
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    let checkpoint = block_on(Checkpoint::open(folder.join("assets/demo/model"))).unwrap();
    // The reference is rounded to half precision: 2^-11 of the largest value. torch with every
    // output rounded to f16 is off by 4e-3.
    for (precision, most) in [(Precision::F32, 6e-4), (Precision::F16, 8e-3), (Precision::Fast, 1.6e-2)] {
        if precision == Precision::Fast && !gpu.limits().shader_f16 {
            continue;
        }
        let options = LoadOptions { precision, ..LoadOptions::default() };
        let mut vae = block_on(Vae::load(&gpu, &checkpoint, options)).unwrap();
        let options = DecodeOptions::default();
        let decoded = block_on(vae.decode_raw(&latents, &options, &mut Control::default())).unwrap();
        let error = relative_error(&decoded, &wanted);
        println!("demo {precision:?}: {error:.2e}");
        assert!(error <= most, "demo {precision:?}: relative max error {error:.2e}, at most {most:.0e}");
    }
}

/// Tests a case like SDXL's original weights: the residual stream exceeds 65504, but the picture
/// does not overflow.
#[test]
fn a_stream_beyond_half_precision_decodes_in_f16() {
    decodes_a_stream_beyond_half_precision(Precision::F16, 3.0);
}

/// Tests `fast`, whose transformed tiles are up to 20.25 times as large as their input.
#[test]
fn a_stream_beyond_half_precision_decodes_in_fast() {
    decodes_a_stream_beyond_half_precision(Precision::Fast, 6.0);
}

/// Decodes such a stream with an error of at most `times` torch's error in f16.
fn decodes_a_stream_beyond_half_precision(precision: Precision, times: f32) {
    const GROWTH: f32 = 4e4;
    let grown = ["decoder.conv_in.", ".conv2.", ".to_out.0.", ".conv_shortcut.bias", ".upsamplers.0.conv.bias"];
    let fixture = fixture("toy_odd");
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    let checkpoint = checkpoint_with(&fixture.config, |name, tensor| {
        if grown.iter().any(|part| name.contains(part)) {
            tensor.data.iter_mut().for_each(|value| *value *= GROWTH);
        }
    });
    if precision == Precision::Fast && !gpu.limits().shader_f16 {
        println!("SKIPPED: {} has no shader-f16", gpu.adapter().name);
        return;
    }
    let options = LoadOptions { precision, ..LoadOptions::default() };
    let mut vae = block_on(Vae::load(&gpu, &checkpoint, options)).unwrap();
    let latents = Latents::new(fixture.latents.clone()).unwrap();
    let options = DecodeOptions::default();
    let decoded = block_on(vae.decode_raw(&latents, &options, &mut Control::default())).unwrap();
    let error = relative_error(&decoded, &fixture.image);
    println!("{precision:?}: {error:.2e}, torch with small weights {:.2e}", fixture.f16_error);
    assert!(error <= times * fixture.f16_error, "{error:.2e}, torch with small weights {:.2e}", fixture.f16_error);
}

/// Tests latents whose file says that they are the VAE's own, as `ComfyUI`'s does. They decode to
/// the same bits as with a model that was loaded for such latents, also with weights on the host
/// and in tiles. The next latents are scaled again.
#[test]
fn latents_say_whether_they_are_the_vaes_own() {
    let fixture = fixture("toy_odd");
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    let latents = Latents::new(fixture.latents.clone()).unwrap();
    let own = latents.clone().in_space(LatentSpace::Vae);
    let tiles = Tiling::Blend(Blend::new(BlendRule::Linear, 6, 2).unwrap());
    for (weights_on_host, tiling) in
        [(false, Tiling::Exact), (true, Tiling::Exact), (false, tiles), (false, Tiling::Estimate)]
    {
        let load = |config: &str| {
            let options = LoadOptions { precision: Precision::F32, weights_on_host, ..LoadOptions::default() };
            block_on(Vae::load(&gpu, &checkpoint(config), options)).unwrap()
        };
        let decode = |vae: &mut Vae, latents: &Latents| {
            let options = DecodeOptions { tiling, ..DecodeOptions::default() };
            block_on(vae.decode_raw(latents, &options, &mut Control::default())).unwrap().pixels
        };
        let mut vae = load(&fixture.config);
        let found = [&latents, &own, &own, &latents].map(|latents| decode(&mut vae, latents));
        let mut same: serde_json::Value = serde_json::from_str(&fixture.config).unwrap();
        (same["scaling_factor"], same["shift_factor"]) = (1.0.into(), serde_json::Value::Null);
        let wanted = decode(&mut load(&same.to_string()), &latents);
        assert_ne!(found[0], found[1]);
        assert_eq!([&found[1], &found[2]], [&wanted; 2]);
        assert_eq!(found[3], found[0], "and back");
    }
}

/// Two decodes of latents in the VAE's own space prepare once, and so does preparing before them.
#[test]
fn the_vaes_own_latents_prepare_once() {
    let fixture = fixture("toy_odd");
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    let mut vae = block_on(Vae::load(&gpu, &checkpoint(&fixture.config), LoadOptions::default())).unwrap();
    let own = Latents::new(fixture.latents).unwrap().in_space(LatentSpace::Vae);
    let options = DecodeOptions::default();
    let request = options.request(own.size(), LatentSpace::Vae, PixelFormat::Rgba8);
    block_on(vae.prepare(&request)).unwrap();
    let before = (gpu.ledger().created(), gpu.compiled().0);
    for _ in 0..2 {
        vae.free_unless(&request);
        block_on(vae.decode_with(&own, &options, &mut Control::default())).unwrap();
        assert_eq!((gpu.ledger().created(), gpu.compiled().0), before);
    }
}
