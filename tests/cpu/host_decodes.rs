//! Decodes and encodes on the host: they agree with diffusers, take the memory that was predicted,
//! and give the same bits for every budget and number of threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pollster::block_on;
use test_kit::clip::latents_of;
use test_kit::family::{check_family, checkpoint};
use test_kit::golden::Golden;
use test_kit::{clip_runs, formula};
use wgvae::device::{Cpu, CpuOptions};
use wgvae::tiling::{Blend, BlendRule};
use wgvae::{
    Bytes, Control, DecodeOptions, Decoded, Device, Directions, EncodeOptions, Error, HostTensor, Images, LatentSpace,
    Latents, LoadOptions, Precision, Progress, Request, Result, Size, Tiling, Vae,
};

use crate::interpret::assert_same_bits;

fn cpu(threads: usize) -> Cpu {
    Cpu::new(&CpuOptions { threads: Some(threads), ..CpuOptions::default() }).unwrap()
}

const NETWORKS: [&str; 37] = [
    "toy_odd",
    "toy_no_attention",
    "toy_reflect",
    "toy_reflect_direct",
    "toy_replicate",
    "toy_circular",
    "toy_circular_direct",
    "toy_hunyuan_image_reflect",
    "toy_flux2",
    "toy_flux2_small_decoder",
    "toy_ideogram4",
    "toy_fibo2",
    "taesd",
    "taesd3",
    "toy_tiny",
    "taef2",
    "toy_taeqi2_1",
    "toy_taesana",
    "toy_taew2_1",
    "toy_lighttaew2_1",
    "toy_taew2_2",
    "toy_taeltx2_3",
    "toy_wan",
    "toy_wan_one_block",
    "toy_wan_odd",
    "toy_wan_upscale2x",
    "toy_qwen2d",
    "toy_hunyuan_image",
    "toy_hunyuan_image_uneven",
    "toy_hunyuan_image_narrow",
    "toy_hunyuan_video",
    "toy_hunyuan_video_uneven",
    "toy_sana",
    "toy_dc_ae",
    "toy_dc_ae_narrow",
    "toy_dc_ae_batch",
    "toy_seedvr",
];

#[test]
fn every_network_agrees_with_its_class() {
    for precision in [Precision::F32, Precision::F16] {
        for name in NETWORKS {
            check_family(&Golden::open(name), name, &Device::Cpu(cpu(2)), precision);
        }
    }
}

fn decode(cpu: &Cpu, golden: &Golden, precision: Precision, budget: Option<Bytes>) -> (Vec<f32>, Bytes) {
    let options = LoadOptions { precision, ..LoadOptions::default() };
    let mut vae = block_on(Vae::load(cpu, &checkpoint(golden), options)).unwrap();
    let latents = Latents::new(golden.latents()).unwrap();
    let options = DecodeOptions { memory_budget: budget, ..DecodeOptions::default() };
    let decoded = block_on(vae.decode_raw(&latents, &options, &mut Control::default())).unwrap();
    assert_eq!(Some(cpu.ledger().peak()), vae.predicted_peak(), "bytes counted and predicted");
    (decoded.pixels, cpu.ledger().peak())
}

#[test]
fn budgets_and_threads_change_no_bit() {
    for precision in [Precision::F32, Precision::F16] {
        for name in ["toy_odd", "toy_reflect", "toy_circular", "toy_dc_ae"] {
            let golden = Golden::open(name);
            let (whole, peak) = decode(&cpu(2), &golden, precision, None);
            for (part, threads) in [(9, 1), (8, 3)] {
                let budget = Bytes(peak.0 / 10 * part);
                let (pixels, peak) = decode(&cpu(threads), &golden, precision, Some(budget));
                assert!(peak <= budget, "{name}: {peak} of {budget}");
                let what = format!("{name} in {precision:?} within {budget} on {threads} threads");
                assert_same_bits(&pixels, &whole, &what);
            }
        }
    }
}

/// Tests that the predicted peak after a decode in tiles is that of the largest, not of the last
/// and smaller one.
#[test]
fn tiles_take_what_is_predicted() {
    let (cpu, golden) = (cpu(2), Golden::open("toy_odd"));
    let mut vae = block_on(Vae::load(&cpu, &checkpoint(&golden), LoadOptions::default())).unwrap();
    let tiling = Tiling::Blend(Blend::new(BlendRule::Linear, 24, 8).unwrap());
    let mut decode = |height, width, tiling| {
        cpu.ledger().restart_peak();
        let options = DecodeOptions { tiling, ..DecodeOptions::default() };
        let latents = Latents::new(formula::latents(&[4, height, width])).unwrap();
        block_on(vae.decode_raw(&latents, &options, &mut Control::default())).unwrap();
        assert_eq!(Some(cpu.ledger().peak()), vae.predicted_peak(), "{tiling:?}");
        cpu.ledger().peak()
    };
    // The last of three tiles has 9 of the 41 rows.
    let tiles = decode(41, 24, tiling);
    assert!(decode(9, 24, Tiling::Exact) < tiles);
    assert_eq!(decode(41, 24, tiling), tiles);
}

/// Decodes a larger picture with every twentieth of the budgets from the smallest to the whole
/// plan's peak.
#[test]
fn every_budget_gives_the_whole_plans_bits() {
    let cpu = cpu(2);
    let options = LoadOptions { precision: Precision::F32, ..LoadOptions::default() };
    let mut vae = block_on(Vae::load(&cpu, &checkpoint(&Golden::open("toy_odd")), options)).unwrap();
    let latents = Latents::new(formula::latents(&[4, 40, 32])).unwrap();
    let mut decode = |memory_budget| {
        let options = DecodeOptions { memory_budget, ..DecodeOptions::default() };
        let pixels = block_on(vae.decode_raw(&latents, &options, &mut Control::default()))?.pixels;
        Ok((pixels, vae.predicted_peak().unwrap()))
    };
    let (wanted, whole) = decode(None).unwrap();
    let Err(Error::Budget { smallest, .. }) = decode(Some(Bytes(1))) else { panic!("a budget of one byte") };
    let mut peaks = Vec::new();
    for part in 0..=20 {
        let budget = Bytes(smallest.0 + (whole.0 - smallest.0) * part / 20);
        let (pixels, predicted) = decode(Some(budget)).unwrap();
        assert_eq!(cpu.ledger().current(), predicted, "{budget}: bytes counted and predicted");
        assert!(predicted <= budget, "{predicted} of {budget}");
        assert_same_bits(&pixels, &wanted, &format!("within {budget}"));
        peaks.push(predicted);
    }
    peaks.dedup();
    assert!(peaks.len() > 5, "only {} different plans", peaks.len());
}

const CLIPS: [&str; 13] = [
    "clip_wan",
    "clip_wan_odd",
    "clip_wan22",
    "clip_hunyuan_video",
    "clip_seedvr",
    "clip_taew2_1",
    "clip_lighttaew2_1",
    "clip_taecvx",
    "clip_taecvx_odd",
    "clip_taeh3",
    "clip_taeltx2_3",
    "clip_ltx2",
    "clip_ltx2_3",
];

#[test]
fn clips_agree_with_their_class() {
    for precision in [Precision::F32, Precision::F16] {
        for name in CLIPS {
            check_clip(name, precision);
        }
    }
}

/// Decodes and encodes the clip of fixture `name`, and decodes some within a smaller budget.
fn check_clip(name: &str, precision: Precision) {
    let golden = Golden::open(name);
    let cpu = cpu(2);
    let load = LoadOptions { precision, directions: Directions::Both, clips: true, ..LoadOptions::default() };
    let mut vae = block_on(Vae::load(&cpu, &checkpoint(&golden), load)).unwrap();
    let (frames, plans) = clip_runs::decode(&mut vae, &latents_of(&golden.latents()), None);
    clip_runs::check(&golden, &format!("{name} frames"), "frames", &frames, precision);
    assert_eq!(cpu.ledger().peak(), plans.peak(), "{name}: bytes counted and predicted");
    let (moments, _) = clip_runs::encode(&mut vae, &golden.pixels().unwrap(), None);
    clip_runs::check(&golden, &format!("{name} moments"), "moments", &moments, precision);
    if !["clip_wan", "clip_seedvr"].contains(&name) {
        // Frames of the others are so small that no plan takes less.
        return;
    }
    // The CPU has no other memory for states that a budget would move elsewhere.
    let budget = Bytes(plans.peak().0 / 100 * 99);
    let latents = latents_of(&golden.latents());
    drop(vae);
    cpu.ledger().restart_peak();
    let mut vae = block_on(Vae::load(&cpu, &checkpoint(&golden), load)).unwrap();
    let (within, plans) = clip_runs::decode(&mut vae, &latents, Some(budget));
    assert!(plans.peak() <= budget, "{name}: {} within {budget}", plans.peak());
    assert_eq!((cpu.ledger().peak(), plans.host_bytes()), (plans.peak(), Bytes(0)), "{name} within {budget}");
    clip_runs::assert_same_bits(&within, &frames, &format!("{name} within {budget}"));
}

/// Tests the last frames and moments of 33 latents, far beyond what any filter sees of the first.
#[test]
fn ends_of_long_clips_agree_with_their_class() {
    for precision in [Precision::F32, Precision::F16] {
        for name in ["long_wan", "long_wan22", "long_hunyuan_video", "long_seedvr", "long_ltx2"] {
            check_end_of_clip(name, precision);
        }
    }
}

fn check_end_of_clip(name: &str, precision: Precision) {
    let golden = Golden::open(name);
    let load = LoadOptions { precision, directions: Directions::Both, clips: true, ..LoadOptions::default() };
    let mut vae = block_on(Vae::load(&cpu(2), &checkpoint(&golden), load)).unwrap();
    let check_end = |output: &str, found: &[f32]| {
        let count = golden.output(output).unwrap().data.len();
        let (end, what) = (&found[found.len() - count..], format!("{name} {output}"));
        clip_runs::check(&golden, &what, output, end, precision);
    };
    check_end("frames", &clip_runs::decode(&mut vae, &latents_of(&golden.latents()), None).0);
    check_end("moments", &clip_runs::encode(&mut vae, &golden.pixels().unwrap(), None).0);
}

/// Decodes step by step, and sets `cancel` after step `last`.
fn decode_up_to(vae: &mut Vae, latents: &Latents, last: Option<usize>) -> Result<Decoded<Vec<f32>>> {
    let cancel = Arc::new(AtomicBool::new(false));
    let mut step = 0;
    let mut progress = |_: Progress<'_>| {
        cancel.store(Some(step) == last, Ordering::Relaxed);
        step += 1;
    };
    let mut control = Control {
        progress: Some(&mut progress),
        cancel: Some(Arc::clone(&cancel)),
        submission_target: Some(Duration::ZERO),
    };
    block_on(vae.decode_raw(latents, &DecodeOptions::default(), &mut control))
}

/// Tests that preparing checks a request first, of which a grid of tiles would not fit any memory.
#[test]
fn what_cannot_be_planned_is_not_prepared() {
    let golden = Golden::open("toy_odd");
    let options = LoadOptions { directions: Directions::Decode, ..LoadOptions::default() };
    let mut vae = block_on(Vae::load(cpu(1), &checkpoint(&golden), options)).unwrap();
    let side = |side| Size { width: side, height: side };
    let tiling = Tiling::Blend(Blend::new(BlendRule::Linear, 2, 1).unwrap());
    let request = Request { tiling, ..Request::decode(side(3_000_000_000), LatentSpace::Model) };
    let error = block_on(vae.prepare(&request)).unwrap_err().to_string();
    assert!(error.starts_with("size: expected 1 to 16384 latents"), "{error}");
    for (request, wanted) in [
        (Request::encode(side(64)), "model: expected one loaded to encode"),
        (Request::decode(side(8), LatentSpace::Model).of_clip(), "model: expected a video model, for a clip"),
    ] {
        let error = vae.planner().plan(&request).unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{error}");
    }
}

#[test]
fn a_request_in_json_has_defaults_and_no_unknown_fields() {
    let request = Request::decode(Size { width: 8, height: 8 }, LatentSpace::Model);
    let json = serde_json::json!({
        "direction": "decode", "size": { "width": 8, "height": 8 }, "latents": "model", "output": "rgba8",
    });
    assert_eq!(serde_json::from_value::<Request>(json.clone()).unwrap(), request);
    assert_eq!(serde_json::from_value::<Request>(serde_json::json!(request)).unwrap(), request);
    let mut wrong = json;
    wrong["memory_bugdet"] = 1_000_000.into();
    let error = serde_json::from_value::<Request>(wrong).unwrap_err().to_string();
    assert!(error.contains("memory_bugdet"), "{error}");
}

#[test]
fn a_decode_may_be_cancelled_at_any_step() {
    let golden = Golden::open("toy_odd");
    let cpu = cpu(2);
    let mut vae = block_on(Vae::load(&cpu, &checkpoint(&golden), LoadOptions::default())).unwrap();
    let latents = Latents::new(golden.latents()).unwrap();
    let wanted = decode_up_to(&mut vae, &latents, None).unwrap().pixels;
    let created = cpu.ledger().created();
    for last in [0, 7, 20] {
        let cancelled = decode_up_to(&mut vae, &latents, Some(last));
        assert!(matches!(cancelled, Err(Error::Cancelled)), "after step {last}");
        assert_same_bits(&decode_up_to(&mut vae, &latents, None).unwrap().pixels, &wanted, "after a cancel");
    }
    assert_eq!(cpu.ledger().created(), created, "nothing was allocated anew");
}

#[test]
fn too_little_memory_takes_a_smaller_plan_or_is_an_error() {
    let golden = Golden::open("toy_odd");
    let (wanted, peak) = decode(&cpu(2), &golden, Precision::Auto, None);
    let checkpoint = checkpoint(&golden);
    let latents = Latents::new(golden.latents()).unwrap();
    for (part, fits) in [(85, true), (5, false)] {
        let memory_limit = Some(Bytes(peak.0 * part / 100));
        let cpu = Cpu::new(&CpuOptions { threads: Some(2), memory_limit }).unwrap();
        let ran = block_on(async {
            let mut vae = Vae::load(&cpu, &checkpoint, LoadOptions::default()).await?;
            vae.decode_raw(&latents, &DecodeOptions::default(), &mut Control::default()).await
        });
        match ran {
            Ok(decoded) if fits => {
                assert!(decoded.fallback.is_some(), "{part} % was enough");
                assert_same_bits(&decoded.pixels, &wanted, "by a smaller plan");
            }
            Err(Error::Device(error)) if !fits => {
                assert!(error.to_string().contains("allowed are in use"), "{error}");
            }
            other => panic!("{part} %: {:?}", other.map(|decoded| decoded.fallback)),
        }
        assert_eq!(cpu.ledger().current(), Bytes(0), "left behind at {part} %");
    }
}

/// A smaller plan computes more than the first one, of which the progress tells.
#[test]
fn progress_in_tiles_ends_at_its_total_after_a_smaller_plan() {
    let golden = Golden::open("toy_odd");
    let latents = Latents::new(golden.latents()).unwrap();
    let tiling = Tiling::Blend(Blend::new(BlendRule::Linear, 4, 1).unwrap());
    let options = DecodeOptions { tiling, ..DecodeOptions::default() };
    let decode = |memory_limit| {
        let cpu = Cpu::new(&CpuOptions { threads: Some(2), memory_limit }).unwrap();
        let mut vae = block_on(Vae::load(&cpu, &checkpoint(&golden), LoadOptions::default())).unwrap();
        let mut told = Vec::new();
        let mut listen = |progress: Progress<'_>| told.push((progress.done, progress.total));
        let mut control = Control { progress: Some(&mut listen), ..Control::default() };
        let decoded = block_on(vae.decode_raw(&latents, &options, &mut control)).unwrap();
        (decoded.fallback, told, cpu.ledger().peak())
    };
    let (first, _, peak) = decode(None);
    assert_eq!(first, None);
    let (fallback, told, _) = decode(Some(Bytes(peak.0 - 1)));
    assert!(fallback.is_some());
    assert!(told.is_sorted(), "{told:?}");
    assert!(told.iter().all(|(done, total)| done <= total), "{told:?}");
    assert_eq!(told.last().map(|(done, total)| done == total), Some(true), "{told:?}");
}

/// Tests that an encode has no most latents, unlike a decode of the same model.
#[test]
fn an_encode_of_taecvx_may_be_long() {
    let golden = Golden::open("clip_taecvx");
    let options = LoadOptions { clips: true, directions: Directions::Encode, ..LoadOptions::default() };
    let mut vae = block_on(Vae::load(&cpu(2), &checkpoint(&golden), options)).unwrap();
    let size = Size { width: 8, height: 8 };
    let mut clip = block_on(vae.encode_clip(size, &EncodeOptions::default())).unwrap();
    for part in 0..40 {
        let count = clip.wants() as usize;
        let frames = HostTensor { shape: vec![count, 3, 8, 8], data: vec![0.5; count * 3 * 64] };
        let encoded = block_on(clip.encode(&Images::new(frames).unwrap(), &mut Control::default()));
        assert!(encoded.is_ok(), "part {part}: {}", encoded.unwrap_err());
    }
}

#[test]
fn a_plan_that_is_freed_leaves_the_weights() {
    let golden = Golden::open("toy_odd");
    let cpu = cpu(2);
    let mut vae = block_on(Vae::load(&cpu, &checkpoint(&golden), LoadOptions::default())).unwrap();
    let weights = cpu.ledger().current();
    let latents = Latents::new(golden.latents()).unwrap();
    let first = decode_up_to(&mut vae, &latents, None).unwrap().pixels;
    // The scaling of the latents is one of the plan's weights.
    let with_scaling = Bytes(weights.0 + 4096);
    assert!(cpu.ledger().current() > with_scaling);
    vae.free();
    assert!(cpu.ledger().current() <= with_scaling, "{} of {weights}", cpu.ledger().current());
    assert_same_bits(&decode_up_to(&mut vae, &latents, None).unwrap().pixels, &first, "after it was freed");
}

#[test]
fn options_without_a_meaning_are_errors() {
    let none = Cpu::new(&CpuOptions { threads: Some(0), ..CpuOptions::default() });
    assert!(none.unwrap_err().to_string().contains("number of threads: expected 1 to 1024, found 0"));
    let golden = Golden::open("toy_odd");
    let options = LoadOptions { precision: Precision::Fast, ..LoadOptions::default() };
    let error = block_on(Vae::load(&cpu(1), &checkpoint(&golden), options)).unwrap_err().to_string();
    assert!(error.contains("precision: expected f16 or f32, on the CPU, found fast"), "{error}");
}
