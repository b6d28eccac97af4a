//! Clips on a device, part by part, against the f64 result of diffusers' or the original class for
//! the whole clip.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pollster::block_on;
use test_kit::clip::{frames_of, latents_of, size_of_frame};
use test_kit::clip_runs::{assert_same_bits, check, decode, encode, floats_into};
use test_kit::family::checkpoint;
use test_kit::formula;
use test_kit::golden::Golden;
use test_kit::sweep::is_full;
use wgvae::device::{DeviceError, DeviceKind, Vendor};
use wgvae::images::PixelFormat;
use wgvae::plan::Home;
use wgvae::{
    Bytes, Control, DecodeOptions, Directions, EncodeOptions, Error, Gpu, GpuOptions, HostTensor, Images, LatentSpace,
    Latents, LoadOptions, Plans, Precision, Progress, Result, Size, Vae,
};

use crate::families::PRECISIONS;

/// Loads a model for clips in both directions, in a precision, on a device that may lack
/// `shader-f16`.
fn load(golden: &Golden, (precision, packed): (Precision, bool), weights_on_host: bool) -> (Gpu, Vae) {
    let options = GpuOptions { without_shader_f16: packed, ..GpuOptions::default() };
    let gpu = block_on(Gpu::request(&options)).unwrap();
    let load = LoadOptions { precision, directions: Directions::Both, clips: true, weights_on_host };
    let vae = block_on(Vae::load(&gpu, &checkpoint(golden), load)).unwrap();
    (gpu, vae)
}

/// Returns the smallest budget for which `plan` finds plans, starting from a budget of one byte.
fn smallest_budget(plan: impl Fn(Option<Bytes>) -> Result<Plans>) -> Bytes {
    let mut budget = Bytes(1);
    for _ in 0..4 {
        match plan(Some(budget)) {
            Ok(_) => return budget,
            Err(Error::Budget { smallest, .. }) => budget = smallest,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("no budget is enough")
}

/// Decodes and encodes the clip of fixture `name`: without a budget, with the predicted memory, and
/// within a small budget with the same bits. Returns true if that budget leaves something in host
/// memory, in every precision.
fn clip(name: &str) -> bool {
    let mut uses_host = true;
    let golden = Golden::open(name);
    let (latents, pixels) = (latents_of(&golden.latents()), golden.pixels().unwrap());
    for precision in PRECISIONS {
        let (gpu, mut vae) = load(&golden, precision, false);
        let (frames, whole) = decode(&mut vae, &latents, None);
        check(&golden, &format!("{name} frames {precision:?}"), "frames", &frames, precision.0);
        assert_eq!(gpu.ledger().peak(), whole.peak(), "{name}: measured and predicted peak of a decode");
        let (moments, _) = encode(&mut vae, &pixels, None);
        check(&golden, &format!("{name} moments {precision:?}"), "moments", &moments, precision.0);
        drop(vae);

        let (gpu, mut vae) = load(&golden, precision, true);
        let clip_latents = Some(latents.count());
        let options = |memory_budget| DecodeOptions { memory_budget, clip_latents, ..DecodeOptions::default() };
        let plan = |budget| {
            vae.planner().plan(&options(budget).request(latents.size(), LatentSpace::Model, PixelFormat::Raw).of_clip())
        };
        let budget = smallest_budget(plan);
        let (within, plans) = decode(&mut vae, &latents, Some(budget));
        assert!(plans.peak() <= budget, "{name}: {} within {budget}", plans.peak());
        uses_host &= plans.host_bytes() > Bytes(0);
        assert_eq!(gpu.ledger().peak(), plans.peak(), "{name}: measured and predicted within {budget}");
        assert_same_bits(&within, &frames, &format!("{name} frames {precision:?} within {budget}"));
        let options = |memory_budget| EncodeOptions { memory_budget, ..EncodeOptions::default() };
        let plan = |budget| vae.planner().plan(&options(budget).request(size_of_frame(&pixels)).of_clip());
        let budget = smallest_budget(plan);
        let (within, _) = encode(&mut vae, &pixels, Some(budget));
        assert_same_bits(&within, &moments, &format!("{name} moments {precision:?} within {budget}"));
    }
    uses_host
}

/// Tests that the kernels for GPUs, which multiply all frames as one matrix, change no bit.
#[test]
fn the_kernels_for_gpus_give_the_same_bits() {
    const KINDS: [(DeviceKind, Vendor); 4] = [
        (DeviceKind::Cpu, Vendor::Other),
        (DeviceKind::Gpu, Vendor::Nvidia),
        (DeviceKind::Gpu, Vendor::Intel),
        (DeviceKind::Gpu, Vendor::Arm),
    ];
    for name in ["clip_wan", "clip_hunyuan_video", "clip_taew2_1"] {
        let golden = Golden::open(name);
        let latents = latents_of(&golden.latents());
        let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
        let decoded = KINDS.map(|(kind, vendor)| {
            let gpu = gpu.clone().with_kernels_of(kind, vendor);
            let load = LoadOptions { precision: Precision::F16, clips: true, ..LoadOptions::default() };
            let mut vae = block_on(Vae::load(&gpu, &checkpoint(&golden), load)).unwrap();
            decode(&mut vae, &latents, None).0
        });
        for (other, kind) in decoded[1..].iter().zip(&KINDS[1..]) {
            assert_same_bits(other, &decoded[0], &format!("{name} with the kernels of {kind:?}"));
        }
    }
}

#[test]
fn wan() {
    assert!(clip("clip_wan"), "nothing in host memory");
}

#[test]
fn wan22() {
    assert!(clip("clip_wan22"), "nothing in host memory");
}

#[test]
fn hunyuan_video() {
    assert!(clip("clip_hunyuan_video"), "nothing in host memory");
}

#[test]
fn ltx2() {
    assert!(clip("clip_ltx2"), "nothing in host memory");
    clip("clip_ltx2_3");
}

#[test]
fn seedvr() {
    assert!(clip("clip_seedvr"), "nothing in host memory");
}

#[test]
fn tiny() {
    assert!(clip("clip_taew2_1"), "nothing in host memory");
    // Staging would take more memory than some of these small clips keep.
    for name in ["clip_lighttaew2_1", "clip_taew2_1_preview", "clip_taew2_2", "clip_taeltx2_3"] {
        clip(name);
    }
}

#[test]
fn tiny_with_other_starts() {
    for name in ["clip_taecvx", "clip_taecvx_odd", "clip_taeh3"] {
        clip(name);
    }
}

/// Tests that the first frames of `CogVideoX` need the number of latents, and that the clip must
/// have it.
#[test]
fn a_clip_whose_first_frames_depend_on_its_length_has_that_length() {
    let golden = Golden::open("clip_taecvx");
    let (_gpu, mut vae) = load(&golden, (Precision::F32, false), false);
    let latents = latents_of(&golden.latents());
    let mut frames = |clip_latents, count| -> Result<u32> {
        let options = DecodeOptions { clip_latents, ..DecodeOptions::default() };
        let mut clip = block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &options))?;
        let mut frames = 0;
        let mut sink = |_| {
            frames += 1;
            Ok(())
        };
        for _ in 0..count {
            block_on(clip.decode(latents.at(0), &mut Control::default(), &mut sink))?;
        }
        while block_on(clip.finish(&mut Control::default(), &mut sink))?.is_some() {}
        Ok(frames)
    };
    let counts: Vec<_> = (1..6).map(|count| frames(Some(count), count).unwrap()).collect();
    assert_eq!(counts, [1, 8, 9, 16, 17]);
    for (given, count, text) in [
        (None, 1, "clip_latents: expected the number of latents"),
        (Some(2), 1, "latents of the clip: expected 2, as clip_latents says, found 1"),
        (Some(2), 3, "latents of the clip: expected at most 2 latents"),
    ] {
        let error = frames(given, count).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}

/// Tests the frames that parts of an encode by `MiniMax-H3` take: one where a chunk begins.
#[test]
fn chunks_begin_with_one_frame() {
    let golden = Golden::open("clip_taeh3");
    let (_gpu, mut vae) = load(&golden, (Precision::F32, false), false);
    let size = Size { width: 16, height: 16 };
    let data = formula::input("pixels", &[1, 3, 4, 16, 16], 1.0);
    for (clip_latents, fits) in [(Some(2), true), (Some(6), false), (Some(12), true), (None, true)] {
        let options = DecodeOptions { clip_latents, ..DecodeOptions::default() };
        let latents = Size { width: 2, height: 2 };
        let clip = block_on(vae.decode_clip(latents, LatentSpace::Model, PixelFormat::Raw, &options));
        let text = "latents of the clip: expected 5n + 2 frames of latents, such as 2, 7 and 12, found 6";
        assert_eq!(clip.err().map(|error| error.to_string()), (!fits).then(|| text.to_owned()), "{clip_latents:?}");
    }
    let mut clip = block_on(vae.encode_clip(size, &EncodeOptions::default())).unwrap();
    let mut wants = Vec::new();
    for _ in 0..11 {
        let count = clip.wants() as usize;
        let frames = HostTensor { shape: vec![count, 3, 16, 16], data: frames_of(&data, 0..count) };
        block_on(clip.encode(&Images::new(frames).unwrap(), &mut Control::default())).unwrap();
        wants.push(count);
    }
    assert_eq!(wants, [1, 4, 4, 4, 4, 1, 4, 4, 4, 4, 1]);
    let three = HostTensor { shape: vec![3, 3, 16, 16], data: frames_of(&data, 0..3) };
    let error = block_on(clip.encode(&Images::new(three).unwrap(), &mut Control::default())).unwrap_err();
    assert!(error.to_string().contains("expected 4 of 16x16, found 3 of 16x16"), "{error}");
}

/// Tests that a short part ends an encode whose last part is filled up, and that other networks
/// take no short part.
#[test]
fn only_a_last_part_may_be_short() {
    let frames = |count| {
        let data = formula::input("pixels", &[1, 3, count, 8, 8], 1.0);
        Images::new(HostTensor { shape: vec![count, 3, 8, 8], data: frames_of(&data, 0..count) }).unwrap()
    };
    for (name, short) in [("clip_taew2_1", 3), ("clip_wan", 2)] {
        let (_gpu, mut vae) = load(&Golden::open(name), (Precision::F32, false), false);
        let mut clip = block_on(vae.encode_clip(Size { width: 8, height: 8 }, &EncodeOptions::default())).unwrap();
        let first = frames(clip.wants() as usize);
        block_on(clip.encode(&first, &mut Control::default())).unwrap();
        let result = block_on(clip.encode(&frames(short), &mut Control::default()));
        assert_eq!(result.is_ok(), name == "clip_taew2_1", "{name}");
        let after = block_on(clip.encode(&frames(4), &mut Control::default()));
        let expected = if result.is_ok() { "expected 0 of 8x8" } else { "" };
        assert!(after.is_ok() != result.is_ok(), "{name}: a part after a short one");
        assert!(after.err().is_none_or(|error| error.to_string().contains(expected)), "{name}");
    }
}

/// Tests a budget with room for some states only: some are on the device, some in host memory.
#[test]
fn what_parts_keep_fills_what_a_budget_leaves() {
    let golden = Golden::open("clip_seedvr");
    // Large enough that states take more memory than the staging of their transfers.
    let latents = formula::latents(&[2, golden.config.latent_channels as usize, 24, 32]);
    let latents = Latents::new(latents).unwrap();
    let precision = (Precision::F16, false);
    let (_gpu, mut vae) = load(&golden, precision, false);
    let (frames, whole) = decode(&mut vae, &latents, None);
    drop(vae);
    let (gpu, mut vae) = load(&golden, precision, true);
    let budget = Bytes(whole.peak().0 - whole.state_bytes().0 / 2);
    let (found, plans) = decode(&mut vae, &latents, Some(budget));
    let is_some = |home| plans.later().states.iter().any(|state| state.home == home);
    assert!(is_some(Home::Device) && is_some(Home::Host), "all in one place within {budget}, {}", whole.peak());
    assert!(plans.peak() <= budget, "{} within {budget}", plans.peak());
    assert_eq!(gpu.ledger().peak(), plans.peak(), "measured and predicted within {budget}");
    assert_same_bits(&found, &frames, &format!("within {budget}"));
}

/// Tests that the length costs no memory: `count` parts take as much as two, and leave nothing
/// behind.
fn many_parts(name: &str, side: usize, count: u32) -> Vec<(Bytes, u64, usize)> {
    let golden = Golden::open(name);
    let (gpu, mut vae) = load(&golden, (Precision::F32, false), false);
    let latents = Latents::new(formula::latents(&[1, golden.config.latent_channels as usize, side, side])).unwrap();
    let before = gpu.ledger().current();
    let options = DecodeOptions { clip_latents: Some(count), ..DecodeOptions::default() };
    let mut clip = block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &options)).unwrap();
    let mut frames = 0;
    let mut sink = |_| {
        frames += 1;
        Ok(())
    };
    let mut held = Vec::new();
    for _ in 0..count {
        block_on(clip.decode(latents.at(0), &mut Control::default(), &mut sink)).unwrap();
        if held.is_empty() {
            assert_eq!(gpu.ledger().peak(), clip.plans().first().memory.peak(), "{name}: the first part's own peak");
        }
        held.push((gpu.ledger().current(), gpu.ledger().created(), gpu.compiled().0));
    }
    while block_on(clip.finish(&mut Control::default(), &mut sink)).unwrap().is_some() {}
    assert_eq!(frames, 1 + golden.config.temporal_factor() * (count - 1), "{name}");
    assert_eq!(gpu.ledger().peak(), clip.plans().peak(), "{name}");
    // After the second part, nothing is allocated or compiled.
    assert!(held[1..].iter().all(|each| *each == held[1]), "{name}: {held:?}");
    drop(clip);
    let plan = vae.predicted_peak().unwrap();
    assert!(gpu.ledger().current() < plan && gpu.ledger().current() >= before, "{name}: states are left behind");
    held
}

#[test]
fn many_parts_take_what_two_take() {
    let count = if is_full() { 200 } else { 60 };
    many_parts("clip_wan", 1, count);
    many_parts("clip_wan22", 1, count);
    many_parts("clip_taew2_1", 1, count);
    // Memory for all of them is there from the second part on.
    many_parts("clip_hunyuan_video", 1, 50);
    // All parts have the same plan, which is prepared once.
    let held = many_parts("clip_ltx2", 2, count);
    assert_eq!(held[0], held[1]);
}

/// Tests that room for more latents changes no bit, and that a clip may not have more than planned.
#[test]
fn attention_over_earlier_frames_has_room_for_what_was_planned() {
    let golden = Golden::open("clip_hunyuan_video");
    let (_gpu, mut vae) = load(&golden, (Precision::F32, false), false);
    let latents = latents_of(&golden.latents());
    let mut decoded = |clip_latents: u32, count| {
        let options = DecodeOptions { clip_latents: Some(clip_latents), ..DecodeOptions::default() };
        let mut clip =
            block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &options)).unwrap();
        let mut frames = Vec::new();
        let mut sink = floats_into(&mut frames);
        let mut run = |index| block_on(clip.decode(latents.at(index), &mut Control::default(), &mut sink)).map(drop);
        let result = (0..count).try_for_each(&mut run);
        drop(sink);
        (frames, result)
    };
    let (wanted, result) = decoded(5, 5);
    result.unwrap();
    let (frames, result) = decoded(40, 5);
    result.unwrap();
    assert_same_bits(&frames, &wanted, "room for 40 latents");
    for most in 1..5 {
        let (frames, result) = decoded(most, 5);
        assert_same_bits(&frames, &wanted[..frames.len()], &format!("room for {most} latents"));
        assert_eq!(frames.len(), wanted.len() / 17 * (1 + 4 * (most as usize - 1)));
        let text = result.unwrap_err().to_string();
        assert!(text.contains("clip_latents") && text.contains(&format!("at most {most} latents")), "{text}");
    }
}

/// Tests a device that lacks memory when a clip's first part is prepared: a smaller plan gives the
/// same frames, in this part and the next, or the clip ends with an error that says so.
fn failing_first_part(name: &str) {
    let golden = Golden::open(name);
    let (gpu, mut vae) = load(&golden, (Precision::F32, false), true);
    let latents = Latents::new(formula::latents(&[2, golden.config.latent_channels as usize, 8, 8])).unwrap();
    let (wanted, _) = decode(&mut vae, &latents, None);
    let options = DecodeOptions::default();
    let mut fallbacks = 0;
    for skipped in (0..).step_by(5) {
        let mut clip =
            block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &options)).unwrap();
        let mut frames = Vec::new();
        let mut sink = floats_into(&mut frames);
        gpu.ledger().fail_after(Some(skipped));
        let first = block_on(clip.decode(latents.at(0), &mut Control::default(), &mut sink));
        let is_over = gpu.ledger().fail_after(None);
        match first {
            Ok((_, fallback)) => {
                assert_eq!(fallback.is_none(), is_over, "allocation {skipped}");
                fallbacks += usize::from(fallback.is_some());
                block_on(clip.decode(latents.at(1), &mut Control::default(), &mut sink)).unwrap();
                drop(sink);
                assert_same_bits(&frames, &wanted, &format!("allocation {skipped}"));
            }
            Err(error) => assert!(matches!(error, Error::Device(DeviceError::OutOfMemory { .. })), "{error}"),
        }
        if is_over {
            break;
        }
    }
    assert!(fallbacks > 0, "{name}: no allocation led to a smaller plan");
}

#[test]
fn an_allocation_of_a_first_part_may_fail() {
    failing_first_part("clip_wan");
    // Its plan keeps keys and values.
    failing_first_part("clip_hunyuan_video");
}

/// Decodes a clip with `control` in its second part, where a test injects a fault.
fn decode_with(vae: &mut Vae, latents: &Latents, control: &mut Control<'_>) -> Result<()> {
    let options = DecodeOptions::default();
    let mut clip = block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &options))?;
    block_on(clip.decode(latents.at(0), &mut Control::default(), &mut |_| Ok(())))?;
    block_on(clip.decode(latents.at(1), control, &mut |_| Ok(()))).map(|_| ())
}

/// Tests that each allocation of a clip may fail, or each `step`th, to be quick: the result is an
/// error or a smaller plan, nothing is left behind, and the next clip is right. Returns the errors.
fn failing_allocations(name: &str, step: usize) -> Vec<String> {
    let golden = Golden::open(name);
    let latents = latents_of(&golden.latents());
    let (gpu, mut vae) = load(&golden, (Precision::F32, false), false);
    let (wanted, _) = decode(&mut vae, &latents, None);
    // Frees the prepared plans.
    let free =
        |vae: &mut Vae| drop(block_on(vae.encode_clip(Size { width: 64, height: 64 }, &EncodeOptions::default())));
    free(&mut vae);
    let loaded = gpu.ledger().current();
    let mut failures = Vec::new();
    for skipped in (0..).step_by(step) {
        free(&mut vae);
        gpu.ledger().fail_after(Some(skipped));
        let result = decode_with(&mut vae, &latents, &mut Control::default());
        if gpu.ledger().fail_after(None) {
            // If a smaller plan is found, the clip goes on.
            result.unwrap();
            break;
        }
        if let Err(error) = result {
            let is_memory = matches!(error, Error::Device(DeviceError::OutOfMemory { .. }));
            assert!(is_memory, "{name}, allocation {skipped}: {error}");
            failures.push(error.to_string());
        }
        free(&mut vae);
        assert_eq!(gpu.ledger().current(), loaded, "{name}: allocation {skipped} left something");
        let (again, _) = decode(&mut vae, &latents, None);
        assert_same_bits(&again, &wanted, &format!("{name} after allocation {skipped} failed"));
    }
    println!("{name}: {} failures", failures.len());
    failures
}

#[test]
fn every_allocation_may_fail_once() {
    assert!(failing_allocations("clip_seedvr", 5).len() >= 10);
    assert!(!failing_allocations("clip_ltx2", 97).is_empty());
    let failures = failing_allocations("clip_hunyuan_video", 3);
    let is_named = |part: &str| failures.iter().any(|error| error.contains(part));
    assert!(is_named("to_k") || is_named("to_v"), "no states of keys or values: {failures:?}");
}

/// Tests cancelling, and losing the device, at some steps of the second part.
fn cancelled_and_lost(name: &str, faults: &[u32]) {
    let golden = Golden::open(name);
    let latents = latents_of(&golden.latents());
    let (_gpu, mut vae) = load(&golden, (Precision::F32, false), false);
    let (wanted, _) = decode(&mut vae, &latents, None);
    for &fault in faults {
        let cancel = Arc::new(AtomicBool::new(false));
        let mut step = 0;
        let mut progress = |_: Progress<'_>| {
            cancel.store(step >= fault, Ordering::Relaxed);
            step += 1;
        };
        let target = Some(Duration::ZERO);
        let mut control =
            Control { progress: Some(&mut progress), cancel: Some(cancel.clone()), submission_target: target };
        let result = decode_with(&mut vae, &latents, &mut control);
        assert!(matches!(result, Err(Error::Cancelled)), "{name}, step {fault}: {result:?}");
        let (again, _) = decode(&mut vae, &latents, None);
        assert_same_bits(&again, &wanted, &format!("{name} after a cancel at step {fault}"));

        let (gpu, mut lost) = load(&golden, (Precision::F32, false), false);
        let mut step = 0;
        let mut progress = |_: Progress<'_>| {
            if step == fault {
                gpu.destroy();
            }
            step += 1;
        };
        let mut control = Control { progress: Some(&mut progress), submission_target: target, ..Control::default() };
        let result = decode_with(&mut lost, &latents, &mut control);
        assert!(matches!(result, Err(Error::Device(_))), "{name}, step {fault}: {result:?}");
        drop(lost);
        assert_eq!(gpu.ledger().current(), Bytes(0), "{name}: step {fault} left something");
    }
}

#[test]
fn a_clip_may_be_cancelled_or_lose_its_device_at_any_step() {
    cancelled_and_lost("clip_wan", &[0, 40, 120]);
    cancelled_and_lost("clip_hunyuan_video", &[0, 20, 60]);
    // Most steps of this network wait for later parts.
    cancelled_and_lost("clip_ltx2", &[0, 5]);
}

/// Tests that input of a wrong shape is an error, and that an error ends the clip but not the VAE.
#[test]
fn an_error_ends_a_clip_and_the_next_is_right() {
    let golden = Golden::open("clip_seedvr");
    let latents = latents_of(&golden.latents());
    let (_gpu, mut vae) = load(&golden, (Precision::F32, false), false);
    let (wanted, _) = decode(&mut vae, &latents, None);
    {
        let mut clip =
            block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &DecodeOptions::default()))
                .unwrap();
        let mut ignore = |_| Ok(());
        block_on(clip.decode(latents.at(0), &mut Control::default(), &mut ignore)).unwrap();
        let mut cancelled = Control { cancel: Some(Arc::new(AtomicBool::new(true))), ..Control::default() };
        let error = block_on(clip.decode(latents.at(1), &mut cancelled, &mut ignore)).unwrap_err();
        assert!(matches!(error, Error::Cancelled), "{error}");
        let error = block_on(clip.decode(latents.at(1), &mut Control::default(), &mut ignore)).unwrap_err();
        assert!(error.to_string().contains("begin another"), "{error}");
    }
    {
        let mut clip =
            block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &DecodeOptions::default()))
                .unwrap();
        let mut full = |_| Err(Error::input("disk", "room", "none"));
        let error = block_on(clip.decode(latents.at(0), &mut Control::default(), &mut full)).unwrap_err();
        assert!(error.to_string().starts_with("disk"), "{error}");
        let error = block_on(clip.decode(latents.at(1), &mut Control::default(), &mut |_| Ok(()))).unwrap_err();
        assert!(error.to_string().contains("begin another"), "frames are lost: {error}");
    }
    let (again, _) = decode(&mut vae, &latents, None);
    assert_same_bits(&again, &wanted, "after two clips that ended early");
    let small = Size { width: 2, height: 2 };
    let error = block_on(vae.decode(latents.at(0))).unwrap_err();
    assert!(error.to_string().contains("clips"), "{error}");
    let mut clip =
        block_on(vae.decode_clip(small, LatentSpace::Model, PixelFormat::Raw, &DecodeOptions::default())).unwrap();
    let error = block_on(clip.decode(latents.at(0), &mut Control::default(), &mut |_| Ok(()))).unwrap_err();
    assert!(matches!(error, Error::Input { .. }), "{error}");
    drop(clip);
    let size = latents.size();
    let own = latents.in_space(LatentSpace::Vae);
    let mut clip =
        block_on(vae.decode_clip(size, LatentSpace::Model, PixelFormat::Raw, &DecodeOptions::default())).unwrap();
    let error = block_on(clip.decode(&own, &mut Control::default(), &mut |_| Ok(()))).unwrap_err();
    assert!(error.to_string().contains("the VAE's own"), "{error}");
}
