//! `wgvae roundtrip`: the picture and the text that it writes.

use image::ExtendedColorType;
use wgvae::Size;
use wgvae::quality::{psnr, squared_differences, ssim};

use crate::encode::{levels, png};
use crate::tool::{Folder, Outcome, finish};

fn roundtrip(folder: &Folder, more: &[&str]) -> Outcome {
    folder.run(&[&["roundtrip", "--model", "model", "--precision", "f32"], more].concat())
}

#[test]
fn the_reconstruction_is_written_and_compared() {
    let folder = Folder::of_both();
    folder.write("a.png", &png(&levels(), 20, 18, ExtendedColorType::Rgb8));
    let said = roundtrip(&folder, &["a.png", "-o", "again.png"]).ok().stdout;
    let again = image::load_from_memory(&folder.read("again.png")).unwrap().into_rgb8();
    assert_eq!((again.width(), again.height()), (20, 18));
    let loss = psnr(squared_differences(&levels(), again.as_raw()), levels().len());
    let alike = ssim(&levels(), again.as_raw(), Size { width: 20, height: 18 }).unwrap();
    assert!(said.contains(&format!("PSNR {loss:.2} dB, SSIM {alike:.4}")), "{said}, not {loss} and {alike}");

    let json = roundtrip(&folder, &["a.png", "-o", "b.png", "--json", "--memory-budget", "2MiB"]).json();
    assert_eq!([&json["psnr_db"], &json["ssim"]].map(|value| value.as_f64()), [Some(loss), Some(alike)]);
    assert_eq!(json["image"]["width"], 20);
    assert!(json["measured_peak_bytes"].as_u64() <= json["predicted_peak_bytes"].as_u64());

    // A separate encode and decode give the same picture.
    folder.encode(&["--image", "a.png", "-o", "latents.safetensors"]).ok();
    folder.decode(&["-o", "by-hand.png"]).ok();
    let by_hand = image::load_from_memory(&folder.read("by-hand.png")).unwrap().into_rgb8();
    let furthest = by_hand.as_raw().iter().zip(again.as_raw()).map(|(a, b)| a.abs_diff(*b)).max();
    assert!(furthest <= Some(1), "{furthest:?}");
}

/// On Linux a name is bytes, which need not be text.
#[cfg(target_os = "linux")]
#[test]
fn names_that_are_no_text_are_written_and_reported() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = Folder::of_both();
    let name = std::ffi::OsStr::from_bytes(b"\xff.png");
    let run = |args: &[&str]| finish(folder.command(args).arg(name)).json();
    let decoded = run(&["decode", "--model", "model", "--latents", "latents.safetensors", "--json", "-o"]);
    assert_eq!(decoded["files"][0], "\u{fffd}.png");
    let again = folder.path("").join(name);
    image::load_from_memory(&std::fs::read(&again).unwrap()).unwrap();
    let encoded = run(&["encode", "--model", "model", "-o", "again.npy", "--json", "--image"]);
    assert_eq!(encoded["images"][0]["file"], "\u{fffd}.png");
    std::fs::remove_file(again).unwrap();
    folder.write("a.png", &png(&levels(), 20, 18, ExtendedColorType::Rgb8));
    assert_eq!(run(&["roundtrip", "--model", "model", "a.png", "--json", "-o"])["file"], "\u{fffd}.png");
}

#[test]
fn a_picture_too_small_for_ssim_has_a_psnr() {
    let folder = Folder::of_both();
    folder.write("a.png", &png(&levels()[..10 * 10 * 3], 10, 10, ExtendedColorType::Rgb8));
    let said = roundtrip(&folder, &["a.png", "-o", "b.jpg"]).ok().stdout;
    assert!(said.contains(" dB, SSIM n/a (below 11 pixels a side)"), "{said}");
    let json = roundtrip(&folder, &["a.png", "-o", "b.webp", "--json"]).json();
    assert!(json["ssim"].is_null() && json["psnr_db"].is_number(), "{json}");
}

#[test]
fn roundtrips_that_cannot_be() {
    let folder = Folder::of_both();
    folder.write("a.png", &png(&levels(), 20, 18, ExtendedColorType::Rgb8));
    let refused = |more: &[&str], code, words: &[&str]| roundtrip(&folder, more).failed(&more.join(" "), code, words);
    refused(&["a.png", "-o", "a.png"], 1, &["--output", "IMAGE", "a.png"]);
    refused(&["a.png", "-o", "b.npy"], 1, &["b.npy", "png, jpg, jpeg, webp"]);
    refused(&["-o", "b.png"], 2, &["IMAGE"]);
    refused(&["missing.png", "-o", "b.png"], 1, &["missing.png", "No such file"]);
    folder.write("two.npy", &wgvae::internals::npy::write_npy(&test_kit::formula::input("image", &[2, 3, 8, 8], 1.0)));
    refused(&["two.npy", "-o", "b.png"], 1, &["two.npy", "one image", "2 images"]);
    let whole = png(&levels(), 20, 18, ExtendedColorType::Rgb8);
    folder.write("short.png", &whole[..whole.len() / 2]);
    refused(&["short.png", "-o", "b.png"], 1, &["short.png", "cut short"]);
    folder.write("empty.png", &[]);
    refused(&["empty.png", "-o", "b.png"], 1, &["empty.png", "PNG, JPEG or WebP"]);
    folder.write("one.png", &png(&levels()[..3], 1, 1, ExtendedColorType::Rgb8));
    refused(&["one.png", "-o", "b.png"], 1, &["size of one.png", "at least 2 pixels", "found 1x1"]);
    let half = Folder::new();
    half.write("a.png", &png(&levels(), 20, 18, ExtendedColorType::Rgb8));
    roundtrip(&half, &["a.png", "-o", "b.png"]).failed("no encoder", 1, &["model", "encoder"]);
    let mut encoder = crate::tool::weights_of_both();
    encoder.retain(|name, _| name.starts_with("encoder."));
    half.write_weights(&encoder);
    roundtrip(&half, &["a.png", "-o", "b.png"]).failed("no decoder", 1, &["model", "decoder"]);
    assert!(!folder.path("b.png").exists() && !half.path("b.png").exists());
}
