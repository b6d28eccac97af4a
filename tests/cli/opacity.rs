//! Models with opacity, whose images have four channels, through every command.

use image::ExtendedColorType;
use serde_json::{Value, json};
use test_kit::formula;
use wgvae::config::AutoencoderConfig;
use wgvae::internals::npy::write_npy;
use wgvae::internals::rgba8;
use wgvae::quality::{psnr, squared_differences, ssim};
use wgvae::{HostTensor, Size};

use crate::decode::{assert_deep, assert_exr};
use crate::encode::png;
use crate::families::metadata_of;
use crate::tool::{Entries, Entry, Folder, Outcome, decoder_weights, encoder_weights};

/// Shape of latents of three layers. Their images have 56 x 40 pixels.
const LAYERS: [usize; 5] = [1, 16, 3, 5, 7];
const SIZE: Size = Size { width: 56, height: 40 };
const PIXELS: usize = 56 * 40;

/// Returns config.json and weights of a small model with opacity.
pub(crate) fn model() -> (String, Entries) {
    let mut json: Value = serde_json::from_str(&metadata_of("toy_wan")["config"]).unwrap();
    json["_class_name"] = json!("AutoencoderKLQwenImage");
    json["input_channels"] = json!(4);
    let config = AutoencoderConfig::from_json(&json.to_string()).unwrap();
    (json.to_string(), encoder_weights(&config).into_iter().chain(decoder_weights(&config)).collect())
}

/// Makes a folder with that model and latents of one image.
fn folder() -> Folder {
    let (json, weights) = model();
    let folder = Folder::new();
    folder.write("model/config.json", json.as_bytes());
    folder.write_weights(&weights);
    folder.write_latents(&Entry::f32(&layer(0)));
    folder
}

/// Returns layer `index` of the latents.
fn layer(index: usize) -> HostTensor {
    let [_, channels, layers, height, width] = LAYERS;
    let (all, plane) = (formula::latents(&LAYERS).data, height * width);
    let data = all.chunks(plane).skip(index).step_by(layers).flatten().copied().collect();
    HostTensor { shape: vec![1, channels, height, width], data }
}

/// Returns the RGBA levels of a picture file.
fn rgba(folder: &Folder, name: &str) -> Vec<u8> {
    let picture = image::load_from_memory(&folder.read(name)).unwrap();
    assert_eq!(picture.color().has_alpha(), !name.ends_with(".jpg"), "{name}");
    picture.into_rgba8().into_raw()
}

/// Converts floats `[4, h, w]` to the levels of a decode.
fn levels_of(floats: &[f32]) -> Vec<u8> {
    (0..PIXELS).flat_map(|pixel| rgba8([0, 1, 2, 3].map(|channel| floats[channel * PIXELS + pixel]))).collect()
}

/// Returns RGBA levels in which colours and alpha vary.
fn levels() -> Vec<u8> {
    (0..PIXELS * 4).map(|index| u8::try_from(index * 37 % 251).unwrap()).collect()
}

/// Converts levels to floats `[c, h, w]`, as diffusers does.
fn floats(levels: &[u8], channels: usize) -> HostTensor {
    let plane = |channel| levels.iter().skip(channel).step_by(channels);
    let data = (0..channels).flat_map(plane).map(|&level| 2.0 * (f32::from(level) / 255.0) - 1.0).collect();
    HostTensor { shape: vec![channels, SIZE.height as usize, SIZE.width as usize], data }
}

#[test]
fn opacity_is_decoded_to_png_and_webp_but_not_to_jpeg() {
    let folder = folder();
    folder.decode(&["-o", "out.npy"]).ok();
    let found = folder.npy("out.npy");
    assert_eq!(found.shape, [1, 4, 40, 56]);
    let wanted = levels_of(&found.data);
    assert!(wanted.chunks(4).any(|pixel| pixel[3] < 64) && wanted.chunks(4).any(|pixel| pixel[3] > 192));
    for name in ["out.png", "out.webp"] {
        assert!(!folder.decode(&["-o", name]).ok().stderr.contains("note:"), "{name}");
        assert_eq!(rgba(&folder, name), wanted, "{name}");
    }
    let said = folder.decode(&["-o", "out.jpg"]).ok().stderr;
    assert!(said.contains("note: out.jpg: JPEG has no transparency: it is dropped, not blended"), "{said}");
    let lossy = rgba(&folder, "out.jpg");
    let colors = lossy.iter().zip(&wanted).enumerate().filter(|(index, _)| index % 4 < 3);
    let mean = colors.map(|(_, (a, b))| f64::from(a.abs_diff(*b))).sum::<f64>() / (3 * PIXELS) as f64;
    assert!(mean < 16.0, "colours are not blended: {mean}");
    folder.decode(&["-o", "out.safetensors"]).ok();
    assert_eq!(folder.safetensors("out.safetensors", "image").1, found);
}

#[test]
fn opacity_is_kept_in_sixteen_bits_and_in_floats() {
    let folder = folder();
    folder.decode(&["-o", "out.npy"]).ok();
    let values = folder.npy("out.npy").data;
    assert_deep(&folder, &["-o", "out.png", "--bit-depth", "16"], "out.png", &values);
    assert_exr(&folder, &["-o", "out.exr"], "out.exr", &values);
}

#[test]
fn layers_become_numbered_pictures() {
    let folder = folder();
    for index in 0..3 {
        folder.write_latents(&Entry::f32(&layer(index)));
        folder.decode(&["-o", &format!("single-{}.npy", index + 1)]).ok();
    }
    folder.write_latents(&Entry::f32(&formula::latents(&LAYERS)));
    let said = folder.decode(&["-o", "out.png"]).ok().stdout;
    assert!(said.contains("3 files, out-1.png to out-3.png"), "{said}");
    folder.decode(&["-o", "out.npy"]).ok();
    let all = folder.npy("out.npy");
    assert_eq!(all.shape, [3, 4, 40, 56]);
    for (index, floats) in (1..).zip(all.data.chunks(4 * PIXELS)) {
        assert_eq!(floats, folder.npy(&format!("single-{index}.npy")).data, "layer {index}");
        assert_eq!(rgba(&folder, &format!("out-{index}.png")), levels_of(floats), "layer {index}");
    }
    folder.decode(&["-o", "deep.png", "--bit-depth", "16"]).ok();
    for index in 0..3 {
        let deep = image::load_from_memory(&folder.read(&format!("deep-{}.png", index + 1))).unwrap();
        assert_eq!(deep.color(), image::ColorType::Rgba16);
    }
    let before = folder.names();
    let refused = |more: &[&str], words: &[&str]| folder.decode(more).failed(&format!("{more:?}"), 1, words);
    refused(
        &["-o", "out.mp4"],
        &["out.mp4", "png, jpg, jpeg, webp, exr, npy, safetensors", "not for video", "\"mp4\""],
    );
    refused(&["-o", "out.y4m"], &["out.y4m", "not for video"]);
    refused(&["-o", "%05d.png"], &["%05d.png", "a name without %", "not for video", "numbers"]);
    refused(&["-o", "-"], &["--output -", "one image", "3 images"]);
    refused(&["-o", "-", "--format", "y4m"], &["--format", "not for video", "y4m"]);
    refused(&["-o", "more.png", "--fps", "24"], &["--fps", "latents of a clip"]);
    assert_eq!(folder.names(), before);
}

fn encoded(folder: &Folder, image: &str, more: &[&str]) -> (Vec<f32>, String) {
    let said = folder.encode(&[&["--image", image, "-o", "encoded.npy"], more].concat()).ok().stderr;
    (folder.npy("encoded.npy").data, said)
}

#[test]
fn opacity_is_encoded_and_opaque_without() {
    let folder = folder();
    folder.write("rgba.png", &png(&levels(), 56, 40, ExtendedColorType::Rgba8));
    folder.write("rgba.npy", &write_npy(&floats(&levels(), 4)));
    let (from_picture, said) = encoded(&folder, "rgba.png", &[]);
    assert!(!said.contains("note:"), "{said}");
    assert_eq!(from_picture, encoded(&folder, "rgba.npy", &[]).0);
    let deep: Vec<u8> = levels().iter().flat_map(|&level| (u16::from(level) * 257).to_ne_bytes()).collect();
    folder.write("deep.png", &png(&deep, 56, 40, ExtendedColorType::Rgba16));
    let (from_sixteen, said) = encoded(&folder, "deep.png", &[]);
    assert!(from_sixteen == from_picture && said.contains("all 16 bits") && !said.contains("transparency"), "{said}");

    let colors: Vec<u8> = levels().chunks(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    let opaque: Vec<u8> = levels().chunks(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2], 255]).collect();
    folder.write("rgb.png", &png(&colors, 56, 40, ExtendedColorType::Rgb8));
    folder.write("rgb.npy", &write_npy(&floats(&colors, 3)));
    folder.write("opaque.png", &png(&opaque, 56, 40, ExtendedColorType::Rgba8));
    let (without, _) = encoded(&folder, "rgb.png", &[]);
    assert_ne!(without, from_picture);
    assert_eq!(without, encoded(&folder, "rgb.npy", &[]).0);
    assert_eq!(without, encoded(&folder, "opaque.png", &[]).0);
    assert_ne!(
        encoded(&folder, "rgba.png", &["--resize", "32x24"]).0,
        encoded(&folder, "opaque.png", &["--resize", "32x24"]).0
    );
    for image in ["rgb.png", "rgba.png"] {
        folder.encode(&["--image", image, "rgba.npy", "-o", "both.npy"]).ok();
        assert_eq!(folder.npy("both.npy").shape, [2, 16, 5, 7]);
    }

    for (shape, words) in [
        (&[5, 40, 56][..], ["[n, 3, h, w] or [n, 4, h, w]", "[5, 40, 56]"]),
        (&[1, 4, 3, 40, 56], ["floats [n, 4, h, w], because the model is not for video", "a clip"]),
    ] {
        folder.write("x.npy", &write_npy(&formula::input("image", shape, 1.0)));
        folder.encode(&["--image", "x.npy", "-o", "none.npy"]).failed("shape", 1, &[&["x.npy"], &words[..]].concat());
    }
}

fn roundtrip(folder: &Folder, more: &[&str]) -> Outcome {
    folder.run(&[&["roundtrip", "--model", "model", "--precision", "f32"], more].concat()).ok()
}

#[test]
fn roundtrips_compare_all_four_channels() {
    let folder = folder();
    folder.write("rgba.png", &png(&levels(), 56, 40, ExtendedColorType::Rgba8));
    let said = roundtrip(&folder, &["rgba.png", "-o", "again.png"]);
    assert!(!said.stderr.contains("note:"), "{}", said.stderr);
    let again = rgba(&folder, "again.png");
    let loss = psnr(squared_differences(&levels(), &again), again.len());
    let channel = |levels: &[u8], channel| levels.chunks(4).flat_map(|pixel| [pixel[channel]; 3]).collect::<Vec<_>>();
    let alike = |index| ssim(&channel(&levels(), index), &channel(&again, index), SIZE).unwrap();
    let alike = (0..4).map(alike).sum::<f64>() / 4.0;
    assert!(said.stdout.contains(&format!("PSNR {loss:.2} dB, SSIM {alike:.4}")), "{said:?}, not {loss} and {alike}");
    let said = roundtrip(&folder, &["rgba.png", "-o", "again.jpg"]).stderr;
    assert!(said.contains("note: again.jpg: JPEG has no transparency"), "{said}");

    // An opaque picture is compared with an alpha of 255.
    let colors: Vec<u8> = levels().chunks(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    folder.write("rgb.png", &png(&colors, 56, 40, ExtendedColorType::Rgb8));
    let json: Value =
        serde_json::from_str(&roundtrip(&folder, &["rgb.png", "-o", "again.png", "--json"]).stdout).unwrap();
    let opaque: Vec<u8> = levels().chunks(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2], 255]).collect();
    let loss = psnr(squared_differences(&opaque, &rgba(&folder, "again.png")), opaque.len());
    assert_eq!(json["psnr_db"], loss);
}

#[test]
fn tilings_are_compared_in_all_four_channels() {
    let folder = folder();
    let tiles = ["--tile-size", "32", "--tile-overlap", "8"];
    let args = ["compare-tiling", "--model", "model", "--latents", "latents.safetensors", "--precision", "f32"];
    let facts =
        folder.run(&[&args, &["-o", "difference.png", "--tilings", "blend", "--json"][..], &tiles].concat()).json();
    folder.decode(&["-o", "exact.npy"]).ok();
    folder.decode(&[&["-o", "tiles.npy", "--tiling", "blend"], &tiles[..]].concat()).ok();
    let level = |value: f32| (f64::from(value) * 0.5 + 0.5).clamp(0.0, 1.0) * 255.0;
    let (exact, tiled) = (folder.npy("exact.npy").data, folder.npy("tiles.npy").data);
    let errors: Vec<f64> = exact.iter().zip(&tiled).map(|(&a, &b)| (level(a) - level(b)).abs()).collect();
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let found = facts["tilings"][1]["mean_error_levels"].as_f64().unwrap();
    assert!(mean > 0.0 && (found - mean).abs() < 1e-6 * mean, "{found}, not {mean}");
    let shown = image::load_from_memory(&folder.read("difference.png")).unwrap();
    assert!(!shown.color().has_alpha());
}

#[test]
fn facts_about_models_with_opacity() {
    let folder = folder();
    let text = folder.run(&["inspect", "--model", "model"]).ok().stdout;
    assert!(text.contains("images                    4 channels: red, green, blue and opacity"), "{text}");
    assert!(!text.contains("video"), "{text}");
    let facts = folder.run(&["inspect", "--model", "model", "--json"]).json();
    assert_eq!([&facts["config"]["in_channels"], &facts["config"]["out_channels"]], [4, 4]);
    assert!(!Folder::new().run(&["inspect", "--model", "model"]).ok().stdout.contains("\nimages"));

    let plan = ["plan", "--family", "qwen_image_layered", "--size", "256x256", "--json"];
    assert_eq!(folder.run(&plan).json()["result"]["channels"], 4);
    assert_eq!(folder.run(&[&plan[..], &["--encode"]].concat()).json()["input"]["channels"], 4);
    folder.run(&[&plan[..], &["--frames", "5"]].concat()).failed("frames", 1, &["--frames", "a model for video"]);
    for more in [&[][..], &["--encode"]] {
        let args =
            ["memory", "--models", "model", "--sizes", "32x32", "--precisions", "f32", "--adapter", "0", "--json"];
        let row = &folder.run(&[&args[..], more].concat()).json()["measurements"][0];
        assert_eq!(
            (&row["error"], &row["measured"]["ledger_peak"]),
            (&Value::Null, &row["predicted"]["peak"]),
            "{row}"
        );
    }
}
