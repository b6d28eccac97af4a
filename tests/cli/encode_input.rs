//! Notes and errors of `wgvae encode` about pictures that it changes or rejects.

use image::ExtendedColorType;
use test_kit::formula;
use test_kit::png_header::png_header;
use wgvae::HostTensor;
use wgvae::internals::npy::write_npy;

use crate::encode::{image, levels, png};
use crate::tool::{Entry, Folder, safetensors, weights_of_both};

/// Encodes a file of these bytes, which must work. Returns stderr.
fn said(name: &str, bytes: &[u8], more: &[&str]) -> String {
    let folder = Folder::of_both();
    folder.write(name, bytes);
    folder.encode(&[&["--image", name, "-o", "out.npy"], more].concat()).ok().stderr
}

#[test]
fn what_is_not_encoded_as_it_is_is_said() {
    let cases: [(&str, Vec<u8>, &str); 5] = [
        ("rgba.png", png(&levels()[..20 * 12 * 4], 20, 12, ExtendedColorType::Rgba8), "transparency is dropped"),
        ("grey.png", png(&levels()[..20 * 12], 20, 12, ExtendedColorType::L8), "a grey picture"),
        ("deep.png", png(&levels()[..20 * 6 * 6], 20, 6, ExtendedColorType::Rgb16), "all 16 bits"),
        ("odd.png", png(&levels()[..19 * 17 * 3], 19, 17, ExtendedColorType::Rgb8), "scaled to 18x16, as 19x17"),
        ("print.jpg", crate::tool::fixture_bytes("cmyk.jpg"), "a CMYK picture"),
    ];
    for (name, bytes, words) in cases {
        let stderr = said(name, &bytes, &[]);
        assert!(stderr.contains(&format!("note: {name}: {words}")), "{name}: {stderr}");
    }
    let mut wild = image();
    wild.data[5] = 1.5;
    let stderr = said("wild.npy", &write_npy(&wild), &[]);
    assert!(stderr.contains("note: wild.npy: values range from -") && stderr.contains("to 1.5, but"), "{stderr}");
    let stderr =
        said("a.png", &png(&levels(), 20, 18, ExtendedColorType::Rgb8), &["--resize", "9x9", "--fit", "stretch"]);
    assert!(stderr.contains("scaled to 8x8, as 9x9 is no multiple of 2 pixels"), "{stderr}");
}

/// Tests names that look like patterns of numbered pictures: those of downloads.
#[test]
fn a_file_that_is_there_is_no_pattern() {
    let folder = Folder::of_both();
    let bytes = png(&levels(), 20, 18, ExtendedColorType::Rgb8);
    folder.write("plain.png", &bytes);
    folder.encode(&["--image", "plain.png", "-o", "plain.npy"]).ok();
    std::fs::create_dir(folder.path("photos")).unwrap();
    for name in ["my%20dog.png", "100%done.png"] {
        folder.write(name, &bytes);
        folder.write(&format!("photos/{name}"), &bytes);
        folder.encode(&["--image", name, "-o", "out.npy"]).ok();
        assert!(folder.read("out.npy") == folder.read("plain.npy"), "{name}");
    }
    folder.encode(&["--image", "photos", "-o", "latents", "--report", "latents/report.json"]).ok();
    for file in ["latents/my%20dog.safetensors", "latents/100%done.safetensors", "latents/report.json"] {
        assert!(folder.path(file).is_file(), "{file}");
    }
    let text = ["pattern my%20dogs.png", "%% for a percent sign", "%20d"];
    folder.encode(&["--image", "my%20dogs.png", "-o", "out.npy"]).failed("no such file", 1, &text);
}

/// Encodes a file `name` of these bytes, which must fail with `words` before a file is written.
#[track_caller]
fn refused_with(name: &str, bytes: &[u8], more: &[&str], words: &[&str]) {
    let folder = Folder::of_both();
    folder.write(name, bytes);
    let before = folder.names();
    folder.encode(&[&["--image", name, "-o", "out.npy"], more].concat()).failed(name, 1, words);
    assert_eq!(folder.names(), before, "{name}: files changed");
}

#[test]
fn pictures_that_cannot_be_read() {
    let whole = png(&levels(), 20, 18, ExtendedColorType::Rgb8);
    let refused = |name: &str, bytes: &[u8], words: &[&str]| refused_with(name, bytes, &[], words);
    refused("short.png", &whole[..whole.len() / 2], &["short.png", "cut short"]);
    let mut jpeg = Vec::new();
    image::ImageEncoder::write_image(
        image::codecs::jpeg::JpegEncoder::new(&mut jpeg),
        &levels(),
        20,
        18,
        ExtendedColorType::Rgb8,
    )
    .unwrap();
    refused("short.jpg", &jpeg[..jpeg.len() - 40], &["short.jpg", "cut short"]);
    let mut webp = Vec::new();
    let encoder = image::codecs::webp::WebPEncoder::new_lossless(&mut webp);
    image::ImageEncoder::write_image(encoder, &levels(), 20, 18, ExtendedColorType::Rgb8).unwrap();
    refused("short.webp", &webp[..webp.len() - 40], &["short.webp"]);
    refused("short.webp", &webp[..10], &["short.webp"]);
    refused("promise.png", &png_header(64, 64), &["promise.png", "cut short"]);
    refused("empty.png", &[], &["empty.png", "PNG, JPEG or WebP", ".npy or .safetensors"]);
    refused("a.gif", b"GIF89a", &["a.gif", "PNG, JPEG or WebP"]);
    refused("a.pt", b"PK\x03\x04", &["a.pt", "PNG, JPEG or WebP"]);
    let mut broken = whole.clone();
    broken[60] ^= 0xFF;
    refused("broken.png", &broken, &["broken.png"]);
}

#[test]
fn pictures_of_sizes_that_the_model_cannot_have() {
    let one = png(&levels()[..3], 1, 1, ExtendedColorType::Rgb8);
    refused_with("one.png", &one, &[], &["size of one.png", "at least 2 pixels", "found 1x1"]);
    let odd = png(&levels()[..19 * 17 * 3], 19, 17, ExtendedColorType::Rgb8);
    refused_with("odd.png", &odd, &["--exact-size"], &["size of odd.png", "multiples of 2 pixels", "found 19x17"]);
    let exact = ["--exact-size", "--resize", "15x16"];
    refused_with("odd.png", &odd, &exact, &["--resize of odd.png", "multiples of 2 pixels", "found 15x16"]);
    refused_with("odd.png", &odd, &["--resize", "60000x60000"], &["60000x60000"]);
    refused_with("image2.npy", &write_npy(&image()), &["--exact-size"], &["size of image2.npy", "found 20x19"]);
    refused_with("image2.npy", &write_npy(&image()), &["--resize", "8x8"], &["--resize", "floats in image2.npy"]);
    // Fails before the pixels are read.
    refused_with("vast.png", &png_header(65_536, 65_536), &[], &["vast.png", "1 to 1073741824 pixels", "65536x65536"]);
    refused_with("none.png", &png_header(0, 5), &[], &["none.png"]);
    let long = png(&[0; 40_000 * 2], 40_000, 2, ExtendedColorType::L8);
    refused_with("long.png", &long, &[], &["1 to 16384 latents each way", "20000x1"]);
    let thin = formula::input("image", &[3, 1, 20], 1.0);
    refused_with("thin.npy", &write_npy(&thin), &[], &["image in thin.npy", "at least 2x2 pixels", "20x1"]);
}

#[test]
fn floats_that_cannot_be_encoded() {
    let refused = |tensor: &HostTensor, words: &[&str]| refused_with("x.npy", &write_npy(tensor), &[], words);
    for (value, name) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        let mut tensor = image();
        tensor.data[11] = value;
        refused(&tensor, &["image in x.npy", "finite", &format!("{name} at element 11")]);
    }
    let of = |shape: &[usize]| formula::input("image", shape, 1.0);
    refused(&of(&[1, 4, 8, 8]), &["image in x.npy", "[n, 3, h, w] or [3, h, w]", "[1, 4, 8, 8]"]);
    refused(&of(&[8, 8, 3]), &["image in x.npy", "[8, 8, 3]"]);
    refused(&of(&[8, 8]), &["image in x.npy", "[8, 8]"]);
    refused(&of(&[1, 3, 0, 8]), &["image in x.npy", "extent 0"]);
    refused(&of(&[0, 3, 8, 8]), &["image in x.npy", "extent 0"]);
    let file = safetensors(&[("z".to_owned(), Entry::f32(&image()))].into());
    refused_with("z.safetensors", &file, &[], &["images in z.safetensors", "\"image\" or \"images\"", "only \"z\""]);
    let folder = Folder::of_both();
    folder.write("z.safetensors", &file);
    folder.encode(&["--image", "z.safetensors", "--tensor", "z", "-o", "out.npy"]).ok();
}

#[test]
fn images_of_two_sizes_are_no_batch() {
    let folder = Folder::of_both();
    folder.write("a.png", &png(&levels(), 20, 18, ExtendedColorType::Rgb8));
    folder.write("b.png", &png(&levels()[..18 * 18 * 3], 18, 18, ExtendedColorType::Rgb8));
    let words = ["--image", "one size", "--each", "a.png of 20x18", "b.png of 18x18"];
    folder.encode(&["--image", "a.png", "b.png", "-o", "out.npy"]).failed("two sizes", 1, &words);
}

#[test]
fn models_without_an_encoder_cannot_encode() {
    let folder = Folder::new();
    folder.write("image.npy", &write_npy(&image()));
    folder.encode(&["--image", "image.npy", "-o", "out.npy"]).failed("decoder alone", 1, &["model", "encoder"]);
    let mut weights = weights_of_both();
    weights.remove("encoder.conv_norm_out.weight");
    folder.write_weights(&weights);
    let words = ["model", "1 missing tensor(s), first \"encoder.conv_norm_out.weight\""];
    folder.encode(&["--image", "image.npy", "-o", "out.npy"]).failed("a tensor is missing", 1, &words);
    weights.retain(|name, _| name.starts_with("encoder."));
    folder.write_weights(&weights);
    folder.decode(&["-o", "out.png"]).failed("encoder alone", 1, &["model", "decoder"]);
    assert!(!folder.path("out.npy").exists() && !folder.path("out.png").exists());
}

#[test]
fn outputs_of_an_encode_that_cannot_be_written() {
    let folder = Folder::of_both();
    let before = folder.names();
    let refused = |more: &[&str], words: &[&str]| {
        folder.encode(&[&["--image", "image.npy"], more].concat()).failed(&more.join(" "), 1, words);
    };
    refused(&["-o", "out.png"], &["ending of output file out.png", "one of safetensors, npy", "\"png\""]);
    refused(&["-o", "missing/out.npy"], &["missing/out.npy", "existing folder missing"]);
    refused(&["-o", "image.npy"], &["--output", "--image", "image.npy"]);
    refused(&["-o", "out.npy", "--report", "./out.npy"], &["--report", "--output", "./out.npy"]);
    refused(&["-o", "model/diffusion_pytorch_model.safetensors"], &["--output", "--model"]);
    folder.write("out-2.npy", &write_npy(&image()));
    folder.encode(&["--image", "image.npy", "--image", "out-2.npy", "-o", "out.npy", "--each"]).failed(
        "each",
        1,
        &["--output", "--image", "out-2.npy"],
    );
    std::fs::remove_file(folder.path("out-2.npy")).unwrap();
    assert_eq!(folder.names(), before);
}

#[test]
fn arguments_of_an_encode_that_make_no_sense() {
    let folder = Folder::of_both();
    let cases: [(&[&str], &str); 9] = [
        (&["-o", "out.npy"], "--image"),
        (&["--image", "image.npy"], "--output"),
        (&["--image", "image.npy", "-o", "out.npy", "--sample", "--moments"], "--moments"),
        (&["--image", "image.npy", "-o", "out.npy", "--unscaled", "--moments"], "--moments"),
        (&["--image", "image.npy", "-o", "out.npy", "--seed", "1"], "--sample"),
        (&["--image", "image.npy", "-o", "out.npy", "--sample", "--seed", "-1"], "-1"),
        (&["--image", "image.npy", "-o", "out.npy", "--fit", "cover"], "--resize"),
        (&["--image", "image.npy", "-o", "out.npy", "--resize", "64"], "WIDTHxHEIGHT"),
        (&["--image", "image.npy", "-o", "out.npy", "--resize", "8x8", "--fit", "tile"], "cover"),
    ];
    for (args, word) in cases {
        folder.encode(args).failed(&args.join(" "), 2, &[word]);
    }
    assert!(!folder.path("out.npy").exists());
}
