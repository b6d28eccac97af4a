//! Decodes in tiles against diffusers' own, and their promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pollster::block_on;
use test_kit::{formula, repository};
use wgvae::files::FileSource;
use wgvae::images::{PixelFormat, Rows};
use wgvae::internals::safetensors::{read_header, read_tensor};
use wgvae::tiling::{Blend, BlendRule};
use wgvae::{
    Control, DecodeOptions, Decoded, Error, Gpu, GpuOptions, HostTensor, LatentSpace, Latents, LoadOptions, Plans,
    Precision, Progress, Size, Tiling, Vae,
};

use crate::decode::{checkpoint, relative_error};

/// Golden decode in tiles.
struct Fixture {
    config: String,
    latents: Latents,
    tiling: Tiling,
    image: HostTensor,
    /// Difference between tiles and the whole image: max |tiles - whole| / max |whole|.
    seam: f32,
}

fn fixture(case: &str) -> Fixture {
    let path = repository().join("tests/fixtures").join(format!("{case}.safetensors"));
    let source = FileSource::open(path).unwrap();
    let header = block_on(read_header(&source)).unwrap();
    let shape: Vec<usize> = serde_json::from_str(&header.metadata["latent_shape"]).unwrap();
    let rule = match header.metadata["rule"].as_str() {
        "diffusers" => BlendRule::Linear,
        "seedvr2" => BlendRule::Cosine,
        other => panic!("rule {other}"),
    };
    let number = |name: &str| header.metadata[name].parse().unwrap();
    Fixture {
        config: header.metadata["config"].clone(),
        latents: Latents::new(formula::latents(&shape)).unwrap(),
        tiling: Tiling::Blend(Blend::new(rule, number("tile"), number("overlap")).unwrap()),
        image: block_on(read_tensor(&source, "image", &header.tensors["image"])).unwrap(),
        seam: header.metadata["seam"].parse().unwrap(),
    }
}

fn load(fixture: &Fixture, precision: Precision) -> (Gpu, Vae) {
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    let options = LoadOptions { precision, weights_on_host: true, ..LoadOptions::default() };
    let vae = block_on(Vae::load(&gpu, &checkpoint(&fixture.config), options)).unwrap();
    (gpu, vae)
}

fn decode(vae: &mut Vae, fixture: &Fixture, options: &DecodeOptions) -> Decoded<Vec<f32>> {
    block_on(vae.decode_raw(&fixture.latents, options, &mut Control::default())).unwrap()
}

fn tiled(tiling: Tiling) -> DecodeOptions {
    DecodeOptions { tiling, ..DecodeOptions::default() }
}

const CASES: [&str; 8] = [
    "tiled_diffusers",
    "tiled_diffusers_slivers",
    "tiled_diffusers_one_row",
    "tiled_hunyuan_image",
    "tiled_dc_ae",
    "tiled_seedvr2",
    "tiled_seedvr2_slivers",
    "tiled_seedvr2_deep",
];

#[test]
fn tiled_decodes_match_diffusers_and_seedvr2() {
    for case in CASES {
        let fixture = fixture(case);
        let (_, mut vae) = load(&fixture, Precision::F32);
        let error = relative_error(&decode(&mut vae, &fixture, &tiled(fixture.tiling)), &fixture.image);
        let whole = relative_error(&decode(&mut vae, &fixture, &tiled(Tiling::Exact)), &fixture.image);
        println!("{case}: {error:.2e}, the whole image {whole:.2e} from it");
        assert!(error <= 1e-4, "{case}: relative max error {error:.2e}, at most 1e-4");
        assert!(whole >= 0.5 * fixture.seam, "{case}: the tiles make no difference: {whole:.2e}");
    }
}

#[test]
fn the_measured_peak_is_the_predicted_one() {
    for case in ["tiled_diffusers_slivers", "tiled_seedvr2"] {
        for format in [PixelFormat::Rgba8, PixelFormat::Raw] {
            let fixture = fixture(case);
            let (gpu, mut vae) = load(&fixture, Precision::F32);
            let options = tiled(fixture.tiling);
            let predicted = vae
                .planner()
                .plan(&options.request(fixture.latents.size(), LatentSpace::Model, format))
                .unwrap()
                .peak();
            let mut sink = |_: Rows<'_>| Ok(());
            block_on(vae.decode_rows(&fixture.latents, format, &options, &mut Control::default(), &mut sink)).unwrap();
            assert_eq!(gpu.ledger().peak(), predicted, "{case}");
            let whole = vae
                .planner()
                .plan(&tiled(Tiling::Exact).request(fixture.latents.size(), LatentSpace::Model, format))
                .unwrap()
                .peak();
            assert!(predicted < whole, "{case}: {predicted} in tiles, {whole} without");
        }
    }
}

#[test]
fn a_budget_is_kept_in_tiles_too() {
    let fixture = fixture("tiled_seedvr2");
    let (gpu, mut vae) = load(&fixture, Precision::F32);
    let tiny = DecodeOptions { memory_budget: Some(wgvae::Bytes(1)), ..tiled(fixture.tiling) };
    let Err(Error::Budget { smallest: needed, .. }) = vae
        .planner()
        .plan(&tiny.request(fixture.latents.size(), LatentSpace::Model, PixelFormat::Raw))
        .map(Plans::into_first)
    else {
        panic!("one byte")
    };
    let options = DecodeOptions { memory_budget: Some(needed), ..tiny };
    let predicted = vae
        .planner()
        .plan(&options.request(fixture.latents.size(), LatentSpace::Model, PixelFormat::Raw))
        .unwrap()
        .peak();
    let error = relative_error(&decode(&mut vae, &fixture, &options), &fixture.image);
    assert!(error <= 1e-4, "{error:.2e}");
    assert!(gpu.ledger().peak() <= needed, "{} of {needed}", gpu.ledger().peak());
    assert_eq!(gpu.ledger().peak(), predicted);
}

#[test]
fn pictures_are_those_of_the_floats() {
    let fixture = fixture("tiled_diffusers_slivers");
    let (_, mut vae) = load(&fixture, Precision::F32);
    let floats = decode(&mut vae, &fixture, &tiled(fixture.tiling)).pixels;
    let options = tiled(fixture.tiling);
    let levels = block_on(vae.decode_with(&fixture.latents, &options, &mut Control::default())).unwrap().pixels;
    for (pixel, found) in levels.chunks_exact(4).enumerate() {
        for channel in 0..3 {
            let wanted = (floats[channel * floats.len() / 3 + pixel] * 0.5 + 0.5).clamp(0.0, 1.0) * 255.0;
            assert!(
                (f32::from(found[channel]) - wanted).abs() <= 0.5001,
                "pixel {pixel}: {} of {wanted}",
                found[channel]
            );
        }
        assert_eq!(found[3], 255);
    }
}

#[test]
fn what_fits_one_tile_is_decoded_whole() {
    let fixture = fixture("tiled_seedvr2_deep");
    let (_, mut vae) = load(&fixture, Precision::F32);
    let size = fixture.latents.size();
    let tile = size.width.max(size.height);
    for rule in [BlendRule::Linear, BlendRule::Cosine] {
        let tiling = Tiling::Blend(Blend::new(rule, tile, 1).unwrap());
        assert_eq!(
            vae.planner().plan(&tiled(tiling).request(size, LatentSpace::Model, PixelFormat::Raw)).unwrap().count(),
            1
        );
        let whole = decode(&mut vae, &fixture, &tiled(Tiling::Exact));
        assert_eq!(decode(&mut vae, &fixture, &tiled(tiling)).pixels, whole.pixels);
        let smaller = Tiling::Blend(Blend::new(rule, tile - 1, 1).unwrap());
        assert!(
            vae.planner().plan(&tiled(smaller).request(size, LatentSpace::Model, PixelFormat::Raw)).unwrap().count()
                > 1
        );
    }
}

#[test]
fn progress_goes_over_all_tiles_and_cancelling_stops_between_them() {
    let fixture = fixture("tiled_diffusers");
    let (_, mut vae) = load(&fixture, Precision::F32);
    let options = tiled(fixture.tiling);
    let work = vae
        .planner()
        .plan(&options.request(fixture.latents.size(), LatentSpace::Model, PixelFormat::Raw))
        .unwrap()
        .macs(1);
    let mut reached = 0;
    let mut watch = |progress: Progress<'_>| {
        assert_eq!(progress.total, work);
        assert!(progress.done >= reached, "{} after {reached}", progress.done);
        reached = progress.done;
    };
    let mut control = Control { progress: Some(&mut watch), ..Control::default() };
    let whole = block_on(vae.decode_raw(&fixture.latents, &options, &mut control)).unwrap();
    assert_eq!(reached, work);
    assert!(whole.run.seconds > 0.0 && whole.run.submissions.len() >= 20, "{:?}", whole.run);

    let cancel = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&cancel);
    let mut stop = |progress: Progress<'_>| {
        assert!(progress.done < progress.total, "cancelled before the end");
        set.store(progress.done > work / 2, Ordering::Relaxed);
    };
    let mut control = Control { progress: Some(&mut stop), cancel: Some(cancel), ..Control::default() };
    let error = block_on(vae.decode_raw(&fixture.latents, &options, &mut control)).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
    assert_eq!(decode(&mut vae, &fixture, &options).pixels, whole.pixels);
}

#[test]
fn a_prepared_tile_is_the_largest() {
    let fixture = fixture("tiled_diffusers_slivers");
    let (gpu, mut vae) = load(&fixture, Precision::F16);
    let (size, options) = (fixture.latents.size(), tiled(fixture.tiling));
    let peak =
        block_on(vae.prepare(&options.request(size, LatentSpace::Model, PixelFormat::Raw))).unwrap().memory.peak();
    assert_eq!(peak, vae.planner().plan(&options.request(size, LatentSpace::Model, PixelFormat::Raw)).unwrap().peak());
    assert_eq!(gpu.ledger().current(), peak);
    let created = gpu.ledger().created();
    block_on(vae.prepare(&options.request(size, LatentSpace::Model, PixelFormat::Raw))).unwrap();
    assert_eq!(gpu.ledger().created(), created);
}

#[test]
fn an_overflow_names_the_pixel_of_the_image() {
    let fixture = fixture("tiled_diffusers");
    let (_, mut vae) = load(&fixture, Precision::F32);
    let (width, height) = (fixture.latents.size().width as usize, fixture.latents.size().height as usize);
    let mut latents = HostTensor { shape: vec![4, height, width], data: vec![0.25; 4 * width * height] };
    // The last latent lies in the last tile of the last row but one, and in the sliver below it.
    latents.data[4 * width * height - 1] = 3e38;
    let latents = Latents::new(latents).unwrap();
    let control = &mut Control::default();
    let error = block_on(vae.decode_with(&latents, &tiled(fixture.tiling), control)).unwrap_err();
    let Error::NotFinite { column, row } = error else { panic!("{error}") };
    // That tile starts at column 24 and row 12. A latent covers four pixels a side, and the norms
    // spread the error over the whole tile.
    assert_eq!((column, row), (4 * 24, 4 * 12));
}

/// Tests the limit on pixels: each tile is small, but a model of eight levels makes 128 by 128
/// pixels of every latent, so the whole image is too large.
#[test]
fn pixels_are_limited_in_tiles_too() {
    let mut config: serde_json::Value = serde_json::from_str(&fixture("tiled_diffusers").config).unwrap();
    config["block_out_channels"] = [4; 8].into();
    config["layers_per_block"] = 1.into();
    config["norm_num_groups"] = 2.into();
    config["up_block_types"] = ["UpDecoderBlock2D"; 8].into();
    config["down_block_types"] = ["DownEncoderBlock2D"; 8].into();
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    let vae = block_on(Vae::load(&gpu, &checkpoint(&config.to_string()), LoadOptions::default())).unwrap();
    let options = tiled(Tiling::Blend(Blend::new(BlendRule::Linear, 2, 1).unwrap()));
    let plans = |side| {
        vae.planner()
            .plan(&options.request(Size { width: side, height: side }, LatentSpace::Model, PixelFormat::Raw))
            .map(|plans| plans.count())
    };
    assert_eq!(plans(16).unwrap(), 16 * 16);
    let error = plans(1024).unwrap_err().to_string();
    assert!(error.contains("pixels"), "{error}");
}

/// Tests the estimate with norms of a smaller copy: near the exact picture, in one pass, and with
/// less memory where memory counts. By default, a GPU takes more of it for speed.
#[test]
fn an_estimate_is_near_and_takes_less() {
    let fixture = crate::decode::fixture("toy_wide");
    let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
    let load = LoadOptions { precision: Precision::F32, ..LoadOptions::default() };
    let mut vae = block_on(Vae::load(&gpu, &checkpoint(&fixture.config), load)).unwrap();
    let channels = vae.config().latent_channels as usize;
    let latents = Latents::new(test_kit::formula::latents(&[channels, 96, 80])).unwrap();
    let mut decode = |tiling| {
        let options = DecodeOptions { least_memory: true, ..tiled(tiling) };
        let peak =
            vae.planner().plan(&options.request(latents.size(), LatentSpace::Model, PixelFormat::Raw)).unwrap().peak();
        let decoded = block_on(vae.decode_raw(&latents, &options, &mut Control::default())).unwrap();
        assert_eq!(gpu.ledger().current(), peak);
        (decoded.pixels, peak)
    };
    let ((exact, whole), (estimate, less)) = (decode(Tiling::Exact), decode(Tiling::Estimate));
    let largest = exact.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let mean = exact.iter().zip(&estimate).map(|(a, b)| (a - b).abs() / largest).sum::<f32>() / exact.len() as f32;
    println!("{mean:.1e} of the largest on the mean, {less} instead of {whole}");
    assert!(mean > 0.0 && mean < 0.02, "{mean:.1e}");
    assert!(less < whole, "{less} instead of {whole}");
}
