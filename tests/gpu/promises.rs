//! Promises about memory, reuse, cancelling and lost devices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pollster::block_on;
use wgvae::device::DeviceError;
use wgvae::images::{ChannelOrder, PixelFormat};
use wgvae::{
    Control, DecodeOptions, Error, Gpu, GpuOptions, HostTensor, Images, LatentSpace, Latents, LoadOptions, Precision,
    Storage, Vae,
};

use crate::decode::{Fixture, checkpoint, checkpoint_with, fixture, relative_error};

fn load(case: &str) -> (Gpu, Vae, Latents) {
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    let fixture = fixture(case);
    let options = LoadOptions { precision: Precision::F32, ..LoadOptions::default() };
    let vae = block_on(Vae::load(&gpu, &checkpoint(&fixture.config), options)).unwrap();
    (gpu, vae, Latents::new(fixture.latents).unwrap())
}

#[test]
fn the_measured_peak_is_the_predicted_one() {
    for profile in [false, true] {
        let (gpu, mut vae, latents) = load("toy_wide");
        let options = DecodeOptions { profile, ..DecodeOptions::default() };
        let predicted = vae
            .planner()
            .plan(&options.request(latents.size(), LatentSpace::Model, PixelFormat::Rgba8))
            .unwrap()
            .peak();
        block_on(vae.decode_with(&latents, &options, &mut Control::default())).unwrap();
        assert_eq!(gpu.ledger().peak(), predicted);
        drop(vae);
        assert_eq!(gpu.ledger().current().0, 0, "every buffer is freed");
    }
}

#[test]
fn the_drivers_allocator_agrees_within_five_percent() {
    let (gpu, mut vae, latents) = load("sd15_128");
    block_on(vae.decode(&latents)).unwrap();
    let ours = gpu.ledger().current().0;
    let (allocated, _) = gpu.allocator_bytes().expect("Vulkan and DX12 have an allocator report");
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    let ratio = allocated as f64 / ours as f64;
    assert!((ratio - 1.0).abs() <= 0.05, "allocator {allocated}, ours {ours}, ratio {ratio:.3}");
}

/// Tests that wgpu's copies of what is uploaded stay small at every tensor of a load.
#[test]
fn the_drivers_allocator_has_little_more_than_the_weights_during_a_load() {
    let fixture = fixture("sd15_128");
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    let most = Arc::new(AtomicU64::new(0));
    let (watched, seen) = (gpu.clone(), Arc::clone(&most));
    gpu.watch(Some(Arc::new(move |_| {
        let held = watched.allocator_bytes().expect("Vulkan and DX12 tell").0;
        seen.fetch_max(held.saturating_sub(watched.ledger().current().0), Ordering::Relaxed);
    })));
    let options = LoadOptions { precision: Precision::F32, ..LoadOptions::default() };
    let _vae = block_on(Vae::load(&gpu, &checkpoint(&fixture.config), options)).unwrap();
    gpu.watch(None);
    let (most, ours) = (most.load(Ordering::Relaxed), gpu.ledger().current().0);
    // Buffers are rounded up.
    assert!(ours > 64 << 20 && most <= (16 << 20) + ours / 20, "{most} beside {ours}");
}

/// wgpu copies what is uploaded, and would keep the copies until the first submission, when the
/// plan's other buffers are there, too.
#[test]
fn the_drivers_allocator_has_the_weights_once_after_a_load() {
    let (gpu, vae, _) = load("sd15_128");
    let (held, ours) = (|| gpu.allocator_bytes().expect("Vulkan and DX12 tell").0, gpu.ledger().current().0);
    // Buffers are rounded up, and small ones by much.
    let rounded = ours + ours / 20;
    assert!(ours > 10 << 20 && held() <= rounded, "allocator {}, ours {ours}", held());
    drop(vae);
    assert!(held() < 1 << 20, "allocator {} after the drop", held());
}

#[test]
fn a_second_decode_compiles_and_allocates_nothing() {
    let (gpu, mut vae, latents) = load("toy_odd");
    let options = DecodeOptions::default();
    let first = block_on(vae.decode_raw(&latents, &options, &mut Control::default())).unwrap();
    let before = (gpu.ledger().created(), gpu.compiled().0);
    let second = block_on(vae.decode_raw(&latents, &options, &mut Control::default())).unwrap();
    assert_eq!((gpu.ledger().created(), gpu.compiled().0), before);
    assert_eq!(first.pixels, second.pixels);
}

#[test]
fn a_second_preview_compiles_and_allocates_nothing() {
    let (gpu, mut vae, latents) = load("toy_odd");
    let image = vae.image_size(&latents);
    let side = image.width.max(image.height) / 2;
    let first = block_on(vae.preview(&latents, side)).unwrap();
    assert!(first.size.width.max(first.size.height) <= side && first.size != image, "{}", first.size);
    assert_eq!(gpu.ledger().peak(), vae.predicted_peak().unwrap());
    let before = (gpu.ledger().created(), gpu.compiled().0);
    let other: Vec<f32> = fixture("toy_odd").latents.data.iter().map(|value| -value).collect();
    let other = Latents::new(HostTensor { shape: fixture("toy_odd").latents.shape, data: other }).unwrap();
    let second = block_on(vae.preview(&other, side)).unwrap();
    assert_eq!((gpu.ledger().created(), gpu.compiled().0), before);
    assert_ne!(first.pixels, second.pixels, "other latents make another picture");
    let again = block_on(vae.preview(&latents, side)).unwrap();
    assert_eq!((gpu.ledger().created(), gpu.compiled().0), before);
    assert_eq!(first.pixels, again.pixels);
}

#[test]
fn another_size_compiles_nothing_and_frees_the_old_one_first() {
    let (gpu, mut vae, latents) = load("toy_odd");
    let options = DecodeOptions::default();
    block_on(vae.decode_with(&latents, &options, &mut Control::default())).unwrap();
    let (compiled, first_peak) = (gpu.compiled().0, gpu.ledger().peak());
    let smaller = Latents::new(HostTensor { shape: vec![4, 4, 6], data: vec![0.1; 96] }).unwrap();
    block_on(vae.decode_with(&smaller, &options, &mut Control::default())).unwrap();
    assert_eq!(gpu.compiled().0, compiled);
    assert_eq!(gpu.ledger().peak(), first_peak);
}

#[test]
fn a_batch_is_decoded_image_by_image() {
    let (_, mut vae, latents) = load("toy_odd");
    let fixture = fixture("toy_odd");
    let mut data = vec![0.25; fixture.latents.data.len()];
    data.extend_from_slice(&fixture.latents.data);
    let mut shape = fixture.latents.shape.clone();
    shape[0] = 2;
    let batch = Latents::new(HostTensor { shape, data }).unwrap();
    let options = DecodeOptions::default();
    let alone = block_on(vae.decode_raw(&latents, &options, &mut Control::default())).unwrap();
    let second = block_on(vae.decode_raw(batch.at(1), &options, &mut Control::default())).unwrap();
    assert_eq!(alone.pixels, second.pixels);
}

#[test]
fn one_image_of_several_must_be_chosen() {
    let (_, mut vae, _) = load("toy_odd");
    let latents = Latents::new(HostTensor { shape: vec![2, 4, 4, 6], data: vec![0.1; 192] }).unwrap();
    let error = block_on(vae.decode(&latents)).unwrap_err().to_string();
    assert_eq!(error, "latents: expected one image, or one chosen by `at`, found 2 images");
    let error = block_on(vae.decode(latents.at(2))).unwrap_err().to_string();
    assert_eq!(error, "image index: expected below 2, found 2");
    let images = Images::new(HostTensor { shape: vec![2, 3, 16, 16], data: vec![0.1; 1536] }).unwrap();
    let error = block_on(vae.encode(&images)).unwrap_err().to_string();
    assert_eq!(error, "images: expected one image, or one chosen by `at`, found 2 images");
}

#[test]
fn a_cancelled_decode_stops_and_the_next_one_works() {
    let (_, mut vae, latents) = load("toy_wide");
    let options = DecodeOptions::default();
    let whole = block_on(vae.decode_raw(&latents, &options, &mut Control::default())).unwrap();
    let cancel = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&cancel);
    let mut calls = 0;
    let mut progress = |progress: wgvae::Progress<'_>| {
        calls += 1;
        assert!(progress.done < progress.total, "cancelled before the end");
        set.store(true, Ordering::Relaxed);
    };
    let mut control = Control {
        progress: Some(&mut progress),
        cancel: Some(cancel),
        submission_target: Some(std::time::Duration::ZERO),
    };
    let error = block_on(vae.decode_raw(&latents, &options, &mut control)).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
    assert!(calls >= 1);
    let again = block_on(vae.decode_raw(&latents, &options, &mut Control::default())).unwrap();
    assert_eq!(whole.pixels, again.pixels);
}

#[test]
fn a_lost_device_is_an_error() {
    let (gpu, mut vae, latents) = load("toy_odd");
    gpu.destroy();
    let error = block_on(vae.decode(&latents)).unwrap_err();
    assert!(matches!(error, Error::Device(DeviceError::Lost { .. })), "{error}");
}

#[test]
fn a_device_lost_in_the_middle_is_an_error() {
    let (gpu, mut vae, latents) = load("toy_wide");
    let mut progress = |_: wgvae::Progress<'_>| gpu.destroy();
    let mut control = Control {
        progress: Some(&mut progress),
        submission_target: Some(std::time::Duration::ZERO),
        ..Control::default()
    };
    let error = block_on(vae.decode_with(&latents, &DecodeOptions::default(), &mut control)).unwrap_err();
    assert!(matches!(error, Error::Device(_)), "{error}");
}

#[test]
fn an_unknown_adapter_is_an_error_that_lists_those_there_are() {
    let options = GpuOptions { adapter: Some("no such card".to_owned()), ..GpuOptions::default() };
    let error = block_on(Gpu::request(&options)).unwrap_err();
    assert!(error.to_string().contains("no such card"), "{error}");
}

#[test]
fn wrong_latents_are_an_error() {
    let (_, mut vae, _) = load("toy_odd");
    let wrong = Latents::new(HostTensor { shape: vec![3, 4, 4], data: vec![0.0; 48] }).unwrap();
    let error = block_on(vae.decode(&wrong)).unwrap_err();
    assert!(error.to_string().contains("4 channels"), "{error}");
    for (shape, data) in [(vec![4, 0, 4], vec![]), (vec![4, 4], vec![0.0; 16]), (vec![1, 1, 1], vec![f32::NAN])] {
        assert!(matches!(Latents::new(HostTensor { shape, data }), Err(Error::Input { .. })));
    }
}

#[test]
fn all_pixels_are_written() {
    let (_, mut vae, latents) = load("toy_two_levels");
    let decoded = block_on(vae.decode(&latents)).unwrap();
    assert!(decoded.pixels.chunks_exact(4).all(|pixel| pixel[3] == 255));
}

/// Values that make a decode overflow: the precision; true if halves are packed; latents above its
/// range; a factor for weights that makes activations exceed the range, and one that does not.
const OVERFLOWS: [(Precision, bool, f32, [f32; 2]); 3] = [
    (Precision::F32, false, 3e38, [3e38, 1e10]),
    (Precision::F16, false, 1e6, [1.5e5, 1e3]),
    (Precision::F16, true, 1e6, [1.5e5, 1e3]),
];

/// Loads fixture `case`, its weights changed by `change`, in one of the precisions of
/// [`OVERFLOWS`].
fn changed(case: &str, (precision, packed): (Precision, bool), change: impl Fn(&str, &mut HostTensor)) -> Vae {
    let gpu = block_on(Gpu::request(&GpuOptions { without_shader_f16: packed, ..GpuOptions::default() })).unwrap();
    let checkpoint = checkpoint_with(&fixture(case).config, change);
    let options = LoadOptions { precision, ..LoadOptions::default() };
    let vae = block_on(Vae::load(&gpu, &checkpoint, options)).unwrap();
    assert!(!packed || vae.storage() == Storage::PackedF16, "{:?}", vae.storage());
    vae
}

/// Decodes `latents`. Returns the outcome for each output, with nothing for its pixels.
fn outcomes(mut vae: Vae, latents: &Latents) -> Vec<wgvae::Result<()>> {
    let (options, mut control) = (DecodeOptions::default(), Control::default());
    let mut outcomes = vec![
        block_on(vae.decode(latents)).map(drop),
        block_on(vae.decode_raw(latents, &options, &mut control)).map(drop),
    ];
    let stays = block_on(vae.decode_picture(latents, ChannelOrder::Rgba, &options, &mut control));
    outcomes.push(stays.and_then(|_| block_on(vae.read_picture())).map(drop));
    outcomes
}

/// Returns a change of weights: those whose names contain a part, times its factor.
fn grown(growths: &[(&str, f32)]) -> impl Fn(&str, &mut HostTensor) {
    move |name, tensor| {
        for (_, growth) in growths.iter().filter(|(part, _)| name.contains(part)) {
            tensor.data.iter_mut().for_each(|value| *value *= growth);
        }
    }
}

/// Returns latents of the toy model, all of them `value`.
fn all_alike(value: f32) -> Latents {
    let shape = fixture("toy_odd").latents.shape;
    Latents::new(HostTensor { data: vec![value; shape.iter().product()], shape }).unwrap()
}

#[test]
fn latents_that_overflow_are_an_error_and_no_black_picture() {
    for (precision, packed, huge, _) in OVERFLOWS {
        for value in [huge, -huge] {
            for outcome in outcomes(changed("toy_odd", (precision, packed), |_, _| {}), &all_alike(value)) {
                assert!(
                    matches!(outcome, Err(Error::NotFinite { .. })),
                    "{precision:?}, packed {packed}, {value:e}: {outcome:?}"
                );
            }
        }
    }
}

/// Tests weights that fit the precision but whose activations overflow: the values of attention,
/// which nothing scales. The norms after it would make a picture even from values clamped at the
/// largest half.
#[test]
fn weights_that_overflow_are_an_error_and_no_black_picture() {
    let latents = Latents::new(fixture("toy_odd").latents).unwrap();
    let decode = |precision, packed, growth: f32| {
        outcomes(changed("toy_odd", (precision, packed), grown(&[(".to_v.weight", growth)])), &latents)
    };
    for (precision, packed, _, [beyond, within]) in OVERFLOWS {
        for outcome in decode(precision, packed, beyond) {
            assert!(
                matches!(outcome, Err(Error::NotFinite { .. })),
                "{precision:?}, packed {packed}, {beyond:e}: {outcome:?}"
            );
        }
        for outcome in decode(precision, packed, within) {
            assert!(outcome.is_ok(), "{precision:?}, packed {packed}, {within:e}: {outcome:?}");
        }
    }
}

/// Tests values that fit f32, but whose squares or products do not: those that a group norm, a norm
/// of pixels and linear attention sum. An infinite sum as a divisor would make zeros, and a
/// picture of the summands after them.
#[test]
fn sums_that_overflow_are_an_error_and_no_wrong_picture() {
    for (case, growths) in [
        ("toy_odd", &[("decoder.conv_in.", 1e22)][..]),
        ("toy_wan", &[("decoder.conv_in.", 1e22)]),
        ("toy_sana", &[(".to_q.", 1e19), (".to_k.", 1e-3)]),
    ] {
        let latents = Latents::new(fixture(case).latents).unwrap();
        for outcome in outcomes(changed(case, (Precision::F32, false), grown(growths)), &latents) {
            assert!(matches!(outcome, Err(Error::NotFinite { .. })), "{case}, {growths:?}: {outcome:?}");
        }
    }
}

/// Tests Sana's linear attention, whose keys and values exceed half precision: up to 16 times that,
/// the result is that of f32, and beyond it is an error.
#[test]
fn linear_attention_beyond_half_precision_is_right_or_an_error() {
    let Fixture { latents, f16_error, image, .. } = fixture("toy_sana");
    let latents = Latents::new(latents).unwrap();
    let within: &[(&str, f32)] = &[(".to_k.", 1e4), (".to_v.", 1e4)];
    let beyond = [within, &[("decoder.conv_in.", 64.0)]].concat();
    let decode = |precision, packed| {
        let mut vae = changed("toy_sana", (precision, packed), grown(within));
        block_on(vae.decode_raw(&latents, &DecodeOptions::default(), &mut Control::default())).unwrap()
    };
    let wanted = HostTensor { data: decode(Precision::F32, false).pixels, shape: image.shape };
    for packed in [false, true] {
        let error = relative_error(&decode(Precision::F16, packed), &wanted);
        println!("packed {packed}: {error:.1e}, torch in f16 without growth {f16_error:.1e}");
        assert!(error <= 2.0 * f16_error, "packed {packed}: {error:.1e}");
        for outcome in outcomes(changed("toy_sana", (Precision::F16, packed), grown(&beyond)), &latents) {
            assert!(matches!(outcome, Err(Error::NotFinite { .. })), "packed {packed}: {outcome:?}");
        }
    }
}
