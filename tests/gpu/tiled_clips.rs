//! Clips in tiles on a device, against diffusers' own tiles and SeedVR2's rule in f64.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pollster::block_on;
use test_kit::clip::{frames_of, latents_of};
use test_kit::family::{checkpoint, relative_error};
use test_kit::golden::Golden;
use wgvae::clips::ClipDecoder;
use wgvae::images::{PixelFormat, Pixels};
use wgvae::tiling::{Blend, BlendRule};
use wgvae::{
    Bytes, Control, DecodeOptions, EncodeOptions, Error, Gpu, GpuOptions, HostTensor, LatentSpace, Latents,
    LoadOptions, Precision, Progress, Tiling, Vae,
};

/// Returns the tiling that a fixture was made with.
fn tiling(golden: &Golden) -> Tiling {
    let number = |name: &str| golden.metadata[name].parse().unwrap();
    let rule = match golden.metadata["rule"].as_str() {
        "diffusers" => BlendRule::Linear,
        "seedvr2" => BlendRule::Cosine,
        other => panic!("no rule {other}"),
    };
    Tiling::Blend(Blend::new(rule, number("tile"), number("overlap")).unwrap())
}

fn load(golden: &Golden) -> (Gpu, Vae) {
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    let load = LoadOptions { precision: Precision::F32, clips: true, weights_on_host: true, ..LoadOptions::default() };
    let vae = block_on(Vae::load(&gpu, &checkpoint(golden), load)).unwrap();
    (gpu, vae)
}

/// Decodes all frames.
fn decode(clip: &mut ClipDecoder<'_>, latents: &Latents) -> Vec<Pixels> {
    let mut frames = Vec::new();
    let mut sink = |pixels| {
        frames.push(pixels);
        Ok(())
    };
    for index in 0..latents.count() {
        block_on(clip.decode(latents.at(index), &mut Control::default(), &mut sink)).unwrap();
    }
    while block_on(clip.finish(&mut Control::default(), &mut sink)).unwrap().is_some() {}
    frames
}

fn floats(frames: Vec<Pixels>) -> Vec<f32> {
    let values = frames.into_iter().flat_map(|pixels| match pixels {
        Pixels::Raw(values) => values,
        Pixels::Rgba8(_) => panic!("asked for floats"),
    });
    values.collect()
}

/// Decodes the clip of fixture `name`. Checks the result, the predicted memory, and that a budget
/// changes no bit.
fn tiled(name: &str) {
    let golden = Golden::open(name);
    let (latents, wanted) = (latents_of(&golden.latents()), golden.output("frames").unwrap());
    let wanted = frames_of(wanted, 0..wanted.shape[2]);
    let (gpu, mut vae) = load(&golden);
    let clip_latents = Some(latents.count());
    let options = DecodeOptions { tiling: tiling(&golden), clip_latents, ..DecodeOptions::default() };
    let mut clip = block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &options)).unwrap();
    let found = floats(decode(&mut clip, &latents));
    let (peak, host) = (clip.plans().peak(), clip.plans().host_bytes());
    drop(clip);
    let error = relative_error(&found, &wanted);
    println!("{name}: {error:.1e}, {peak}, {host} in host memory");
    assert!(error <= 1e-4, "{name}: {error:.1e}");
    assert_eq!(gpu.ledger().peak(), peak, "{name}: measured and predicted");
    assert!(host > Bytes(0), "{name}: what tiles keep is in host memory");

    let whole = DecodeOptions { tiling: Tiling::Exact, ..options };
    let mut clip = block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &whole)).unwrap();
    let seam: f32 = golden.metadata["seam"].parse().unwrap();
    let apart = relative_error(&floats(decode(&mut clip, &latents)), &wanted);
    assert!(apart >= 0.5 * seam, "{name}: the tiles make no difference: {apart:.1e}");
    drop(clip);

    let within = |budget| DecodeOptions { memory_budget: Some(budget), ..options };
    let Err(Error::Budget { smallest, .. }) =
        vae.planner().plan(&within(Bytes(1)).request(latents.size(), LatentSpace::Model, PixelFormat::Raw).of_clip())
    else {
        panic!("one byte")
    };
    // A budget that is enough for tiles of every size.
    let budget = Bytes(smallest.0 * 2);
    drop(vae);
    let (gpu, mut vae) = load(&golden);
    let mut clip =
        block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &within(budget))).unwrap();
    assert_eq!(floats(decode(&mut clip, &latents)), found, "{name} within {budget}");
    assert_eq!(gpu.ledger().peak(), clip.plans().peak(), "{name}: measured and predicted within {budget}");
    assert!(clip.plans().peak() <= budget, "{name}: {} within {budget}", clip.plans().peak());
}

/// Tests a cancelled part: some tiles are then one part ahead, so the clip must not go on. The next
/// clip is right.
#[test]
fn a_cancelled_part_ends_the_clip() {
    let golden = Golden::open("tiled_clip_seedvr");
    let latents = latents_of(&golden.latents());
    let (_gpu, mut vae) = load(&golden);
    let options = DecodeOptions { tiling: tiling(&golden), ..DecodeOptions::default() };
    let mut clip = block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &options)).unwrap();
    let part = |clip: &mut ClipDecoder<'_>, control: &mut Control<'_>| {
        block_on(clip.decode(latents.at(0), control, &mut |_| Ok(()))).map(|_| ())
    };
    let cancel = Arc::new(AtomicBool::new(false));
    let mut in_the_middle = |at: Progress<'_>| cancel.store(at.done * 2 > at.total, Ordering::Relaxed);
    let mut control =
        Control { progress: Some(&mut in_the_middle), cancel: Some(cancel.clone()), ..Control::default() };
    assert!(matches!(part(&mut clip, &mut control), Err(Error::Cancelled)));
    let error = part(&mut clip, &mut Control::default()).unwrap_err();
    assert!(error.to_string().contains("begin another"), "{error}");
    drop(clip);

    let mut clip = block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &options)).unwrap();
    let wanted = golden.output("frames").unwrap();
    let error = relative_error(&floats(decode(&mut clip, &latents)), &frames_of(wanted, 0..wanted.shape[2]));
    assert!(error <= 1e-4, "{error:.1e}");
}

#[test]
fn wan() {
    tiled("tiled_clip_wan");
}

#[test]
fn seedvr() {
    tiled("tiled_clip_seedvr");
}

#[test]
fn hunyuan_video() {
    tiled("tiled_clip_hunyuan_video");
}

#[test]
fn ltx2() {
    tiled("tiled_clip_ltx2");
}

/// Tests that the first frame of a clip in tiles equals an image in tiles: both are blended before
/// clamping.
#[test]
fn images_of_video_networks() {
    for name in ["tiled_clip_wan", "tiled_clip_seedvr"] {
        let golden = Golden::open(name);
        let latents = latents_of(&golden.latents());
        let wanted = frames_of(golden.output("frames").unwrap(), 0..1);
        let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
        let load = LoadOptions { precision: Precision::F32, ..LoadOptions::default() };
        let mut vae = block_on(Vae::load(&gpu, &checkpoint(&golden), load)).unwrap();
        let options = DecodeOptions { tiling: tiling(&golden), ..DecodeOptions::default() };
        let decoded = block_on(vae.decode_raw(latents.at(0), &options, &mut Control::default())).unwrap();
        let error = relative_error(&decoded.pixels, &wanted);
        assert!(error <= 1e-4, "{name}: {error:.1e}");
    }
}

/// Tests that pictures agree with floats, that a clip that fits a tile equals the exact one, and
/// that invalid tilings are errors.
#[test]
fn pictures_and_refusals() {
    let golden = Golden::open("tiled_clip_wan");
    let latents = latents_of(&golden.latents());
    let (_gpu, mut vae) = load(&golden);
    let raw = DecodeOptions { tiling: tiling(&golden), ..DecodeOptions::default() };
    let values = floats(decode(
        &mut block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &raw)).unwrap(),
        &latents,
    ));
    let pictures = decode(
        &mut block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Rgba8, &raw)).unwrap(),
        &latents,
    );
    let plane = values.len() / pictures.len() / 3;
    for (frame, pixels) in pictures.iter().enumerate() {
        let Pixels::Rgba8(levels) = pixels else { panic!("asked for pictures") };
        for (index, level) in levels.iter().enumerate().filter(|(index, _)| index % 4 < 3) {
            let value = values[(frame * 3 + index % 4) * plane + index / 4];
            let wanted = (value * 0.5 + 0.5).clamp(0.0, 1.0) * 255.0;
            assert!((f32::from(*level) - wanted).abs() <= 0.5001, "frame {frame}: {level} for {wanted}");
        }
    }

    let large = Tiling::Blend(Blend::new(BlendRule::Linear, 64, 16).unwrap());
    let options = DecodeOptions { tiling: large, ..raw };
    let fits = floats(decode(
        &mut block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &options)).unwrap(),
        &latents,
    ));
    let exact = DecodeOptions { tiling: Tiling::Exact, ..raw };
    let whole = floats(decode(
        &mut block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &exact)).unwrap(),
        &latents,
    ));
    assert_eq!(fits, whole);

    let estimate = DecodeOptions { tiling: Tiling::Estimate, ..raw };
    let error = block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &estimate)).unwrap_err();
    assert!(error.to_string().contains("tiling"), "{error}");
    let mut clip = block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &raw)).unwrap();
    let small = Latents::new(HostTensor { shape: vec![1, 16, 2, 2], data: vec![0.0; 64] }).unwrap();
    let error = block_on(clip.decode(&small, &mut Control::default(), &mut |_| Ok(()))).unwrap_err();
    assert!(error.to_string().contains("2x2"), "{error}");
    drop(clip);
    assert!(block_on(vae.encode_clip(latents.size(), &EncodeOptions::default())).is_err(), "loaded to decode");
}
