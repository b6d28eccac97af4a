//! Published models with all their channels, in their published layouts, at a small size: each one
//! loads, decodes and encodes on a device.

use pollster::block_on;
use test_kit::family::relative_error;
use test_kit::hollow::{Hollow, key_list};
use test_kit::{formula, repository};
use wgvae::files::ByteSource;
use wgvae::{
    Checkpoint, Control, DecodeOptions, Directions, Gpu, GpuOptions, Images, LatentSpace, Latents, LoadOptions,
    Precision, Size, Vae,
};

/// Width and height in pixels. Attention sees 64 tokens.
const SIDE: u32 = 64;

/// Makes a checkpoint of the formula's weights in files of these key lists. Layouts of diffusers
/// have a config.json; the others need the family.
fn checkpoint(family: &str, lists: &[&str]) -> Checkpoint {
    let file = |list: &&str| -> Box<dyn ByteSource> {
        Box::new(Hollow::new(&key_list(list), serde_json::json!({}), Some(formula::part_of_weight)))
    };
    let files = lists.iter().map(file).collect();
    if lists[0].ends_with(".diffusers") {
        let path = repository().join(format!("tests/fixtures/configs/{family}.json"));
        let json = std::fs::read_to_string(path).unwrap();
        return block_on(Checkpoint::from_sources(files, Some(&json))).unwrap();
    }
    block_on(Checkpoint::from_sources(files, None)).unwrap().with_family(family).unwrap()
}

fn finite(values: &[f32]) -> bool {
    values.iter().all(|value| value.is_finite())
}

/// Decodes latents and encodes an image, in f32 and in halves. Checks that results have the right
/// size, are finite, agree, and take the predicted memory.
fn runs(family: &str, lists: &[&str]) {
    let checkpoint = checkpoint(family, lists);
    let config = checkpoint.scaled_config().unwrap();
    let size = config.latent_size(Size { width: SIDE, height: SIDE }, LatentSpace::Model);
    let shape = [1, config.model_channels(), size.height, size.width].map(|extent| extent as usize);
    let latents = Latents::new(formula::latents(&shape)).unwrap();
    let shape = [1, config.in_channels as usize, SIDE as usize, SIDE as usize];
    let image = Images::new(formula::input("image", &shape, 1.0)).unwrap();
    let own = config.latent_size(Size { width: SIDE, height: SIDE }, LatentSpace::Vae);
    let results = [Precision::F32, Precision::F16].map(|precision| {
        let gpu = block_on(Gpu::request(&GpuOptions::default())).unwrap();
        let load = LoadOptions { precision, directions: Directions::Both, ..LoadOptions::default() };
        let mut vae = block_on(Vae::load(&gpu, &checkpoint, load)).unwrap();
        let options = DecodeOptions::default();
        let decoded = block_on(vae.decode_raw(&latents, &options, &mut Control::default())).unwrap();
        let peak = vae.predicted_peak().unwrap();
        assert_eq!(gpu.ledger().peak(), peak, "{family}: measured and predicted peak of a decode");
        let pixels = decoded.pixels;
        assert_eq!(pixels.len(), (config.out_channels * SIDE * SIDE) as usize, "{family}");
        let encoded = block_on(vae.encode(&image)).unwrap();
        assert_eq!(gpu.ledger().current(), vae.predicted_peak().unwrap(), "{family}: held and predicted for an encode");
        let moments = encoded.moments;
        assert_eq!(moments.shape[1..], [own.height as usize, own.width as usize], "{family}");
        assert!(finite(&pixels) && finite(&moments.data), "{family} {precision:?}");
        println!(
            "{family} {precision:?}: loaded in {:.2} s, decoded in {:.2} s of at most {peak}, encoded in {:.2} s",
            vae.load_seconds(),
            decoded.run.seconds,
            encoded.run.seconds
        );
        [pixels, moments.data]
    });
    let [single, halves] = results;
    for ((what, single), halves) in ["image", "moments"].iter().zip(&single).zip(&halves) {
        let error = relative_error(halves, single);
        println!("{family} {what}: halves are off by {error:.1e}");
        assert!(error <= 0.01, "{family} {what}: halves are off by {error:.1e}");
    }
}

#[test]
#[ignore = "a minute on a CPU driver: cargo xtask test --full"]
fn stable_diffusion() {
    runs("sd15", &["sd15.diffusers"]);
    runs("sdxl", &["sd15.ldm"]);
    runs("sd_x4_upscaler", &["sd_x4_upscaler.diffusers"]);
    runs("sd3", &["sd3.ldm"]);
}

#[test]
#[ignore = "a minute on a CPU driver: cargo xtask test --full"]
fn flux() {
    runs("flux1", &["flux1.ae_safetensors"]);
    runs("flux2", &["flux2.bfl"]);
    runs("flux2_small_decoder", &["flux2_small_decoder.diffusers"]);
}

#[test]
#[ignore = "a minute on a CPU driver: cargo xtask test --full"]
fn cogview4() {
    runs("cogview4", &["cogview4.diffusers"]);
}

#[test]
#[ignore = "a minute on a CPU driver: cargo xtask test --full"]
fn hunyuan_image() {
    runs("hunyuan_image", &["hunyuan_image.original"]);
}

#[test]
#[ignore = "a minute on a CPU driver: cargo xtask test --full"]
fn sana() {
    runs("sana", &["sana.original"]);
    runs("dc_ae_lite", &["dc_ae_lite.diffusers"]);
    runs("dc_ae_f32c32_in", &["dc_ae_f32c32_in.diffusers"]);
}

#[test]
#[ignore = "a minute on a CPU driver: cargo xtask test --full"]
fn tiny() {
    runs("taesd", &["taesd.upstream_encoder", "taesd.upstream_decoder"]);
    runs("taesd3", &["taef1.diffusers"]);
    runs("taef1", &["taef1.diffusers"]);
    runs("taef2", &["taef2.upstream_encoder", "taef2.upstream_decoder"]);
    runs("taeqi2_1", &["taeqi2_1.upstream_encoder", "taeqi2_1.upstream_decoder"]);
    runs("taesana", &["taesana.upstream_encoder", "taesana.upstream_decoder"]);
    for family in ["taehv", "taecvx", "taew2_1", "lighttaew2_1"] {
        runs(family, &["taew2_1.upstream"]);
    }
    for family in ["taew2_2", "lighttaew2_2"] {
        runs(family, &["taew2_2.upstream"]);
    }
    runs("taehv1_5", &["taehv1_5.upstream"]);
    for family in ["taeltx_2", "taeltx2_3"] {
        runs(family, &["taeltx2_3.upstream"]);
    }
}

#[test]
#[ignore = "a minute on a CPU driver: cargo xtask test --full"]
fn video_models_take_images() {
    runs("qwen_image", &["qwen_image.diffusers"]);
    runs("wan21", &["wan21.original"]);
    runs("wan22", &["wan22.original"]);
    runs("seedvr2", &["seedvr2.original"]);
}

#[test]
#[ignore = "a minute on a CPU driver: cargo xtask test --full"]
fn models_with_opacity() {
    runs("qwen_image_layered", &["qwen_image_layered.diffusers"]);
    runs("qwen_image21", &["qwen_image21.original"]);
}
