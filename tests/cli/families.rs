//! Other networks through the command line: latents for the diffusion model, the VAE's own latents,
//! and options that an encoder cannot serve.

use std::collections::BTreeMap;

use pollster::block_on;
use test_kit::formula;
use test_kit::written::as_written;
use wgvae::HostTensor;
use wgvae::config::{AutoencoderConfig, Family};
use wgvae::files::FileSource;
use wgvae::internals::npy::write_npy;
use wgvae::internals::safetensors::read_header;
use wgvae::model::networks::{decoder_tensors, encoder_tensors};

use crate::tool::{Entry, Folder, decoder_weights, encoder_weights, fixture, fixture_path, safetensors};

/// Returns the metadata of a fixture.
pub(crate) fn metadata_of(name: &str) -> BTreeMap<String, String> {
    let source = FileSource::open(fixture_path(&format!("{name}.safetensors"))).unwrap();
    block_on(read_header(&source)).unwrap().metadata
}

/// Makes a folder with the model of a fixture and the images of its golden encode.
fn folder_of(name: &str) -> Folder {
    let metadata = metadata_of(name);
    let config = AutoencoderConfig::from_json(&metadata["config"]).unwrap();
    let mut tensors = encoder_tensors(&config);
    tensors.extend(decoder_tensors(&config));
    let weights = as_written(&config, formula::weights(&tensors));
    let mut weights: BTreeMap<String, Entry> =
        weights.into_iter().map(|(name, tensor)| (name, Entry::f32(&tensor))).collect();
    if config.batch_norm_eps.is_some() {
        let channels = [config.latent_scale().0.len()];
        let statistics = ["bn.running_mean", "bn.running_var"];
        weights.extend(statistics.map(|name| (name.to_owned(), Entry::f32(&formula::weight(name, &channels)))));
    }
    let folder = Folder::new();
    folder.write("model/config.json", metadata["config"].as_bytes());
    folder.write_weights(&weights);
    let shape: Vec<usize> = serde_json::from_str(&metadata["image_shape"]).unwrap();
    folder.write("image.npy", &write_npy(&formula::input("image", &shape, 1.0)));
    folder
}

#[track_caller]
fn assert_golden(found: &HostTensor, golden: &HostTensor) {
    assert_eq!(found.shape, golden.shape);
    let largest = golden.data.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    for (index, (found, wanted)) in found.data.iter().zip(&golden.data).enumerate() {
        assert!((found - wanted).abs() <= 1e-4 * largest, "element {index}: {found}, its class has {wanted}");
    }
}

fn encoded(folder: &Folder, more: &[&str]) -> HostTensor {
    folder.encode(&[&["--image", "image.npy", "-o", "out.npy"], more].concat()).ok();
    folder.npy("out.npy")
}

#[test]
fn qwen_image_21_has_opacity_and_a_decoder_of_other_widths() {
    let folder = folder_of("toy_qwen_image21");
    assert_golden(&encoded(&folder, &[]), &fixture("toy_qwen_image21", "encoded"));
    let inspected = folder.run_without_adapter(&["inspect", "--model", "model"]).ok().stdout;
    assert!(inspected.contains("images                    4 channels"), "{inspected}");
    assert!(inspected.contains("levels of the encoder     [12, 24, 48, 96, 96] channels"), "{inspected}");
    assert!(inspected.contains("levels of the decoder     [18, 36, 72, 144, 144] channels"), "{inspected}");
}

#[test]
fn wan_22_has_patches_and_a_decoder_of_other_widths() {
    let folder = folder_of("toy_wan22");
    assert_golden(&encoded(&folder, &[]), &fixture("toy_wan22", "encoded"));
    assert_golden(&encoded(&folder, &["--moments"]), &fixture("toy_wan22", "moments"));
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 48, 2, 3])));
    assert_golden(&decoded(&folder, "model", "latents.safetensors", &[]), &fixture("toy_wan22", "image"));
    let inspected = folder.run_without_adapter(&["inspect", "--model", "model"]).ok().stdout;
    assert!(inspected.contains("levels of the encoder     [10, 20, 40, 40] channels"), "{inspected}");
    assert!(inspected.contains("levels of the decoder     [18, 36, 72, 72] channels"), "{inspected}");
    assert!(inspected.contains("pixels in channels        2x2"), "{inspected}");
}

#[test]
fn a_decoder_may_make_four_pixels_of_one() {
    let folder = folder_of("toy_wan_upscale2x");
    assert_golden(&encoded(&folder, &[]), &fixture("toy_wan_upscale2x", "encoded"));
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 16, 3, 5])));
    assert_golden(&decoded(&folder, "model", "latents.safetensors", &[]), &fixture("toy_wan_upscale2x", "image"));
    // Sizes of tiles and previews are those of the decode.
    let more = |more: &[&str]| decoded(&folder, "model", "latents.safetensors", more).shape;
    assert_eq!(more(&["--tiling", "cosine", "--tile-size", "64", "--tile-overlap", "16"]), [1, 3, 48, 80]);
    assert_eq!(more(&["--preview", "40"]), [1, 3, 16, 32]);
    let inspected = folder.run_without_adapter(&["inspect", "--model", "model"]).ok().stdout;
    assert!(inspected.contains("16 channels, 8 pixels a side each, 16 in a decode"), "{inspected}");
    let words = ["decodes are as large as its images", "16 pixels a latent in a decode"];
    let round = ["roundtrip", "image.npy", "--model", "model", "-o", "back.png"];
    folder.run_without_adapter(&round).failed("roundtrip", 1, &words);
}

#[test]
fn hunyuan_image_has_a_factor_and_pixels_in_its_channels() {
    let folder = folder_of("toy_hunyuan_image");
    assert_golden(&encoded(&folder, &[]), &fixture("toy_hunyuan_image", "encoded"));
    assert_golden(&encoded(&folder, &["--moments"]), &fixture("toy_hunyuan_image", "moments"));
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 16, 3, 5])));
    assert_golden(&decoded(&folder, "model", "latents.safetensors", &[]), &fixture("toy_hunyuan_image", "image"));
    let inspected = folder.run_without_adapter(&["inspect", "--model", "model"]).ok().stdout;
    assert!(inspected.contains("network                   AutoencoderKLHunyuanImage"), "{inspected}");
}

#[test]
fn dc_ae_has_batch_norms_and_attention() {
    let folder = folder_of("toy_dc_ae_batch");
    assert_golden(&encoded(&folder, &[]), &fixture("toy_dc_ae_batch", "encoded"));
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 16, 3, 4])));
    assert_golden(&decoded(&folder, "model", "latents.safetensors", &[]), &fixture("toy_dc_ae_batch", "image"));
    let inspected = folder.run_without_adapter(&["inspect", "--model", "model"]).ok().stdout;
    for line in [
        "levels of the decoder          none, 2 x ResBlock of 32 with batch norms, 1 x EfficientViTBlock of 32",
        "sizes change by moving pixels  yes (encoder), yes (decoder)",
    ] {
        assert!(inspected.contains(line), "{inspected}");
    }
}

/// Tests that the diffusion model's latents are packed 2 by 2 and normalised by the batch norm, and
/// that the VAE's own are neither.
#[test]
fn flux2_latents_are_packed_and_normalised() {
    let folder = folder_of("toy_flux2");
    assert_golden(&encoded(&folder, &[]), &fixture("toy_flux2", "encoded"));
    let moments = fixture("toy_flux2", "moments");
    assert_golden(&encoded(&folder, &["--moments"]), &moments);
    let mode = HostTensor { shape: vec![1, 8, 6, 10], data: moments.data[..480].to_vec() };
    assert_golden(&encoded(&folder, &["--unscaled"]), &mode);
}

#[test]
fn wan_latents_are_normalised_by_channel() {
    let folder = folder_of("toy_wan");
    assert_golden(&encoded(&folder, &[]), &fixture("toy_wan", "encoded"));
    assert_golden(&encoded(&folder, &["--moments"]), &fixture("toy_wan", "moments"));
}

#[test]
fn tiny_autoencoders_have_latents_and_no_distribution() {
    let folder = folder_of("toy_tiny");
    let latents = encoded(&folder, &[]);
    assert_golden(&latents, &fixture("toy_tiny", "encoded"));
    assert_eq!(encoded(&folder, &["--unscaled", "--family", "taesd"]).shape, latents.shape);
    for flag in ["--sample", "--moments"] {
        let words = [flag, "encoder gives a distribution", "model, whose encoder gives the latents themselves"];
        folder.encode(&["--image", "image.npy", "-o", "none.npy", flag]).failed(flag, 1, &words);
    }
    assert!(!folder.path("none.npy").exists());
}

/// Writes latents as `ComfyUI` saves them: the VAE's own.
fn write_comfy_latents(folder: &Folder, own: &HostTensor) {
    let nothing = Entry { dtype: "F32", shape: vec![0], bytes: Vec::new() };
    let tensors = [("latent_tensor", Entry::f32(own)), ("latent_format_version_0", nothing)];
    folder.write("own.latent", &safetensors(&tensors.map(|(name, entry)| (name.to_owned(), entry)).into()));
}

fn decoded(folder: &Folder, model: &str, latents: &str, more: &[&str]) -> HostTensor {
    let args = ["decode", "--model", model, "--latents", latents, "--precision", "f32", "-o", "decoded.npy"];
    folder.run(&[args.as_slice(), more].concat()).ok();
    folder.npy("decoded.npy")
}

/// Tests that a tiny autoencoder takes the diffusion model's latents. It scales the latents of the
/// VAE that it replaces, which `ComfyUI` saves, as that VAE's pipeline does.
#[test]
fn tiny_autoencoders_scale_the_latents_of_the_vae_that_they_stand_in_for() {
    for (name, family, other, shape) in
        [("taesd", "taesd", "taesdxl", [1, 4, 3, 4]), ("taesd3", "taesd3", "taef1", [1, 16, 2, 5])]
    {
        let folder = folder_of(name);
        write_comfy_latents(&folder, &formula::input("own_latents", &shape, 1.7));
        let golden = fixture(name, "image_own");
        let arguments = ["decode", "--model", "model", "--latents", "own.latent", "-o", "out.npy"];
        folder.run(&arguments).failed(name, 1, &["family", family, other, "--family", "found none"]);
        assert_golden(&decoded(&folder, "model", "own.latent", &["--family", family]), &golden);
        // The file name is enough to tell the family, and another family gives another picture.
        std::fs::copy(
            folder.path("model/diffusion_pytorch_model.safetensors"),
            folder.path(&format!("{family}.safetensors")),
        )
        .unwrap();
        assert_golden(&decoded(&folder, &format!("{family}.safetensors"), "own.latent", &[]), &golden);
        assert_ne!(decoded(&folder, "model", "own.latent", &["--family", other]), golden);

        // Latents in the diffusion model's scale need no family.
        assert_golden(&encoded(&folder, &[]), &fixture(name, "encoded"));
        let words = ["family", family, other];
        folder.encode(&["--image", "image.npy", "-o", "none.npy", "--unscaled"]).failed(name, 1, &words);
        assert_golden(&encoded(&folder, &["--unscaled", "--family", family]), &fixture(name, "encoded_own"));
        let back = |image: &str| folder.run(&["roundtrip", image, "--model", "model", "-o", "back.png"]);
        back("image.npy").failed("odd sides", 1, &["IMAGE: expected multiples of 8 pixels"]);
        folder.write("even.npy", &write_npy(&formula::input("image", &[3, 32, 48], 1.0)));
        back("even.npy").ok();
    }
}

/// Tests TAEHV's network: files of several trainings have the same tensors, but take latents in
/// different scales.
#[test]
fn tiny_autoencoders_for_video_need_a_family() {
    let config = Family::find("taew2_1").unwrap().config();
    let mut weights = encoder_weights(&config);
    weights.extend(decoder_weights(&config));
    let folder = Folder::new();
    folder.write_weights(&weights);
    std::fs::remove_file(folder.path("model/config.json")).unwrap();
    let own = formula::input("own_latents", &[1, 16, 2, 3], 1.7);
    write_comfy_latents(&folder, &own);
    folder.write("latents.npy", &write_npy(&own));
    folder.write("clip.npy", &write_npy(&formula::input("latents", &[1, 16, 2, 2, 3], 1.7)));
    folder.write("image.npy", &write_npy(&formula::input("image", &[3, 16, 24], 1.0)));

    let decode = |latents: &'static str| ["decode", "--model", "model", "--latents", latents, "-o", "out.npy"];
    let candidates = ["family", "taew2_1", "lighttaew2_1", "found none"];
    folder.run(&decode("latents.npy")).failed("no family", 1, &candidates);
    folder.run(&decode("own.latent")).failed("no family", 1, &candidates);
    folder.encode(&["--image", "image.npy", "-o", "none.npy"]).failed("no family", 1, &candidates);
    folder.run(&decode("clip.npy")).failed("no family", 1, &candidates);
    clips_of_taew2_1(&folder);

    // One training takes the VAE's own latents as they are, the other the diffusion model's.
    let with = |latents, family| decoded(&folder, "model", latents, &["--family", family]);
    let light = with("own.latent", "lighttaew2_1");
    assert_golden(&with("latents.npy", "taew2_1"), &light);
    assert_ne!(with("own.latent", "taew2_1"), light);
    assert_ne!(with("latents.npy", "lighttaew2_1"), light);
    let light = encoded(&folder, &["--family", "lighttaew2_1", "--unscaled"]);
    assert_golden(&encoded(&folder, &["--family", "taew2_1"]), &light);

    // CogVideoX's keeps all frames of two latents.
    folder.run(&[decode("clip.npy").as_slice(), &["--family", "taecvx"]].concat()).ok();
    assert_eq!(folder.npy("out.npy").shape, [1, 3, 8, 16, 24]);
}

/// Tests the numbers of frames of `MiniMax-H3`'s tiny autoencoder, which its shapes tell.
#[test]
fn chunks_of_frames_need_no_family() {
    let config = Family::find("taeh3").unwrap().config();
    let mut weights = encoder_weights(&config);
    weights.extend(decoder_weights(&config));
    let folder = Folder::new();
    folder.write_weights(&weights);
    std::fs::remove_file(folder.path("model/config.json")).unwrap();
    let clip = |latents: usize| {
        folder.write("clip.npy", &write_npy(&formula::input("latents", &[1, 24, latents, 1, 1], 1.7)));
        folder.run(&["decode", "--model", "model", "--latents", "clip.npy", "-o", "frames.npy"])
    };
    clip(3).failed("3 latents", 1, &["latents in clip.npy", "5n + 2 frames of latents", "found 3"]);
    clip(7).ok();
    assert_eq!(folder.npy("frames.npy").shape, [1, 3, 22, 16, 16]);
    let encode = ["encode", "--model", "model", "--image", "frames.npy", "-o", "encoded.npy"];
    folder.run(&encode).ok();
    assert_eq!(folder.npy("encoded.npy").shape, [1, 24, 7, 1, 1]);
    folder.write("frames.npy", &write_npy(&formula::input("pixels", &[1, 3, 6, 16, 16], 1.0)));
    folder.run(&encode).failed("6 frames", 1, &["such as 22", "adds 16", "found 6"]);
    folder.write("image.npy", &write_npy(&formula::input("image", &[3, 16, 16], 1.0)));
    let words = ["a clip, because this model's latents of one image are two frames"];
    folder.encode(&["--image", "image.npy", "-o", "none.npy"]).failed("an image", 1, &words);
    let plan = ["plan", "--family", "taeh3", "--size", "64x64", "--frames"];
    folder.run_without_adapter(&[plan.as_slice(), &["39"]].concat()).ok();
    let error = folder.run_without_adapter(&[plan.as_slice(), &["23"]].concat());
    error.failed("23 frames", 1, &["--frames", "39", "found 23"]);
}

/// Decodes a clip of two frames of latents: the first gives one frame, as an image does, and the
/// other four. Encodes any number of frames, four for each frame of latents.
fn clips_of_taew2_1(folder: &Folder) {
    let family: &[&str] = &["--family", "taew2_1", "--precision", "f32"];
    let decode = |latents, output| {
        let args = ["decode", "--model", "model", "--latents", latents, "-o", output];
        folder.run(&[args.as_slice(), family].concat()).ok()
    };
    decode("clip.npy", "frames.npy");
    let (latents, frames) = (folder.npy("clip.npy"), folder.npy("frames.npy"));
    assert_eq!(frames.shape, [1, 3, 5, 16, 24]);
    let take = |clip: &HostTensor, count: usize| {
        let plane = clip.shape[3] * clip.shape[4];
        let data = clip.data.chunks(clip.shape[2] * plane).flat_map(|frames| frames[..count * plane].to_vec());
        HostTensor { data: data.collect(), shape: vec![1, clip.shape[1], count, clip.shape[3], clip.shape[4]] }
    };
    let image = take(&latents, 1);
    folder.write("image_of_clip.npy", &write_npy(&HostTensor { shape: vec![1, 16, 2, 3], ..image }));
    decode("image_of_clip.npy", "decoded.npy");
    assert_eq!(take(&frames, 1).data, folder.npy("decoded.npy").data, "the first frame is the image");

    let encode = |name: &str, more: &[&str]| {
        let args = ["encode", "--model", "model", "--image", name, "-o", "encoded.npy"];
        let said = folder.run(&[args.as_slice(), family, more].concat()).ok();
        let loses = name == "four.npy";
        assert_eq!(said.stderr.contains("4 frames, but the latents decode to 1"), loses, "{}", said.stderr);
        folder.npy("encoded.npy")
    };
    let all = encode("frames.npy", &[]);
    assert_eq!(all.shape, [1, 16, 2, 2, 3]);
    folder.write("four.npy", &write_npy(&take(&frames, 4)));
    assert_eq!(encode("four.npy", &[]), take(&all, 1), "the frames of the first latents");
    let moments = ["encode", "--model", "model", "--image", "frames.npy", "-o", "none.npy", "--moments"];
    folder.run(&[moments.as_slice(), family].concat()).failed("moments", 1, &["--moments", "gives a distribution"]);
    let within = ["--memory-budget", "1MiB"];
    let args = ["encode", "--model", "model", "--image", "frames.npy", "-o", "none.npy"];
    folder.run(&[args.as_slice(), family, &within].concat()).failed("a budget", 1, &["smallest"]);
    let mirror = ["--pad", "mirror"];
    let expected = ["--pad", "this model repeats the last frame", "found mirror"];
    folder.run(&[args.as_slice(), family, &mirror].concat()).failed("mirror", 1, &expected);
    let image = ["decode", "--model", "model", "--latents", "image_of_clip.npy", "-o", "none.npy", "--preview-rate"];
    let expected = ["--preview-rate", "latents of a clip", "images in image_of_clip.npy"];
    folder.run(&[image.as_slice(), family].concat()).failed("an image", 1, &expected);
    let plan = ["plan", "--family", "taew2_1", "--size", "64x64", "--frames"];
    folder.run_without_adapter(&[plan.as_slice(), &["5"]].concat()).ok();
    folder.run_without_adapter(&[plan.as_slice(), &["6"]].concat()).failed("a decode", 1, &["5 or 9"]);
    folder.run_without_adapter(&[plan.as_slice(), &["6", "--encode"]].concat()).ok();
    folder.run_without_adapter(&[plan.as_slice(), &["6", "--preview-rate"]].concat()).ok();
    let image = ["plan", "--family", "taew2_1", "--size", "64x64", "--preview-rate"];
    folder.run_without_adapter(&image).failed("a plan of an image", 2, &["--frames"]);
    let other = ["plan", "--family", "wan21", "--size", "64x64", "--frames", "5", "--preview-rate"];
    folder.run_without_adapter(&other).failed("another model", 1, &["--preview-rate", "a model of TAEHV's family"]);
    let preview = ["decode", "--model", "model", "--latents", "clip.npy", "-o", "preview.npy", "--preview-rate"];
    folder.run(&[preview.as_slice(), family].concat()).ok();
    assert_eq!(folder.npy("preview.npy").shape, [1, 3, 2, 16, 24]);
    decode("clip.npy", "clip.y4m");
    assert_eq!(encode("clip.y4m", &[]).shape, all.shape);
}

/// Tests Ideogram 4 and FIBO 2, which use FLUX.2's VAE and pack, or do not pack, its normalised
/// latents. Their pipeline's folder tells which.
#[test]
fn relatives_of_flux2_are_told_by_their_pipeline_or_by_name() {
    for (name, family, class, shape) in [
        ("toy_ideogram4", "ideogram4", "Ideogram4Pipeline", [1, 32, 3, 5]),
        ("toy_fibo2", "fibo2", "BriaFibo2Pipeline", [1, 8, 6, 10]),
    ] {
        let folder = folder_of(name);
        folder.write_latents(&Entry::f32(&formula::latents(&shape)));
        let golden = fixture(name, "image");
        assert_golden(&decoded(&folder, "model", "latents.safetensors", &["--family", family]), &golden);
        assert_golden(&encoded(&folder, &["--family", family]), &fixture(name, "encoded"));

        std::fs::create_dir(folder.path("pipeline")).unwrap();
        std::fs::rename(folder.path("model"), folder.path("pipeline/vae")).unwrap();
        folder.write("pipeline/model_index.json", format!(r#"{{"_class_name": "{class}"}}"#).as_bytes());
        for model in ["pipeline", "pipeline/vae", "pipeline/vae/diffusion_pytorch_model.safetensors"] {
            assert_golden(&decoded(&folder, model, "latents.safetensors", &[]), &golden);
        }
    }
}

/// Tests borders by the flag and by config.json. The flag goes first.
#[test]
fn borders_of_an_autoencoder_kl_are_stated() {
    let folder = folder_of("toy_reflect");
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 4, 5, 11])));
    let (image, moments) = (fixture("toy_reflect", "image"), fixture("toy_reflect", "moments"));
    let check = |model: &str, more: &[&str]| {
        assert_golden(&decoded(&folder, model, "latents.safetensors", more), &image);
        assert_golden(&encoded(&folder, &[&["--moments"], more].concat()), &moments);
    };
    check("model", &[]);
    let config = metadata_of("toy_reflect")["config"].replace(r#", "padding_mode": "reflect""#, "");
    assert!(!config.contains("reflect"));
    folder.write("model/config.json", config.as_bytes());
    check("model", &["--border", "reflect"]);
    folder.write("model/config.json", metadata_of("toy_reflect")["config"].replace("reflect", "replicate").as_bytes());
    check("model", &["--border", "reflect"]);
    let inspect = ["inspect", "--model", "model"];
    let inspected = folder.run_without_adapter(&inspect).ok().stdout;
    assert!(inspected.contains("beyond the borders        replicate"), "{inspected}");
    let inspected = folder.run_without_adapter(&[inspect.as_slice(), &["--border", "reflect"]].concat()).ok().stdout;
    assert!(inspected.contains("beyond the borders        reflect"), "{inspected}");

    folder.write_latents(&Entry::f32(&formula::latents(&[1, 4, 1, 11])));
    let words = ["at least 2x2 latents", "11x1"];
    folder.decode(&["--border", "reflect", "-o", "out.png"]).failed("one row", 1, &words);
    folder.write("image.npy", &write_npy(&formula::input("image", &[1, 3, 24, 15], 1.0)));
    let words = ["at least 2x2 latents", "1x3"];
    let narrow = ["--image", "image.npy", "--border", "reflect", "-o", "out.npy"];
    folder.encode(&narrow).failed("one column", 1, &words);
    folder.decode(&["--border", "mirror", "-o", "out.png"]).failed("no mode", 2, &["--border", "reflect", "circular"]);
    let plan = ["plan", "--size", "64x64", "--border", "reflect", "--family"];
    folder.run_without_adapter(&[plan.as_slice(), &["sdxl"]].concat()).ok();
    for (family, name) in [("taesd", "AutoencoderTiny"), ("wan21", "AutoencoderKLWan")] {
        let words = ["--border", "a model of AutoencoderKL's kind", name];
        folder.run_without_adapter(&[plan.as_slice(), &[family]].concat()).failed(family, 1, &words);
    }
}

#[test]
fn latents_of_fibo_2_have_even_sides_and_no_tiles() {
    let folder = folder_of("toy_fibo2");
    let refused = |what: &str, shape: &[usize], more: &[&str], words: &[&str]| {
        folder.write_latents(&Entry::f32(&formula::latents(shape)));
        folder.decode(&[&["--family", "fibo2", "-o", "out.png"], more].concat()).failed(what, 1, words);
    };
    refused("odd", &[1, 8, 5, 10], &[], &["multiples of 2", "10x5"]);
    refused("tiles", &[1, 8, 6, 10], &["--tiling", "blend", "--tile-size", "32"], &["tiling", "unscaled"]);
    // FLUX.2's own model tells the meaning of its latents.
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 8, 6, 10])));
    folder.decode(&["-o", "out.png"]).failed("own", 1, &["32 channels", "--unscaled", "found 8 channels"]);
}

#[test]
fn latents_of_another_family_are_refused_with_the_families_that_fit() {
    let folder = folder_of("toy_tiny");
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 16, 4, 4])));
    let words = ["latents.safetensors", "4 channels, as the model has", "16 channels", "sd3", "flux1"];
    folder.decode(&["-o", "out.png"]).failed("16 channels", 1, &words);
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 128, 4, 4])));
    folder.decode(&["-o", "out.png"]).failed("128 channels", 1, &["128 channels", "flux2"]);
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 5, 4, 4])));
    folder.decode(&["-o", "out.png"]).failed("5 channels", 1, &["found 5 channels"]);
}
