//! Decodes and encodes of folders: names, order, sizes, and errors in the middle.

use std::collections::BTreeMap;

use image::ExtendedColorType;
use test_kit::formula;
use wgvae::HostTensor;
use wgvae::internals::npy::write_npy;

use crate::clips::video_model;
use crate::encode::png;
use crate::tool::{Entry, Folder, Outcome, safetensors, weights_of_both};

/// Sizes of the latents in the folder, by the names of their files, in natural order.
const FILES: [(&str, [usize; 4]); 3] = [("a2", [1, 8, 3, 4]), ("a10", [1, 8, 5, 2]), ("b", [2, 8, 3, 4])];

fn file_of(latents: &HostTensor) -> Vec<u8> {
    safetensors(&BTreeMap::from([("latents".to_owned(), Entry::f32(latents))]))
}

/// Makes a folder with three files in `latents/`, and others that are not latents.
fn folder() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("latents/more.npy")).unwrap();
    let [two, ten, batch] = FILES.map(|(_, shape)| formula::latents(&shape));
    folder.write("latents/a2.safetensors", &file_of(&two));
    folder.write("latents/a10.npy", &write_npy(&ten));
    folder.write("latents/b.safetensors", &file_of(&batch));
    folder.write("latents/.hidden.npy", b"not an array");
    folder.write("latents/notes.txt", b"not latents");
    folder
}

fn decode(folder: &Folder, more: &[&str]) -> Outcome {
    folder.run(&[&["decode", "--model", "model", "--latents", "latents", "--device", "cpu"], more].concat())
}

/// Decodes one of the files by itself.
fn decode_one(folder: &Folder, latents: &str, output: &str) -> Vec<u8> {
    let args = ["decode", "--model", "model", "--latents", latents, "-o", output, "--device", "cpu"];
    folder.run(&args).ok();
    folder.read(output)
}

/// Returns the names in a folder within `folder`, sorted.
fn names_in(folder: &Folder, name: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path(name)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_folder_is_decoded_with_one_load_of_the_model() {
    let folder = folder();
    let outcome = decode(&folder, &["-o", "pictures", "-v", "--report", "report.json"]).ok();
    assert_eq!(names_in(&folder, "pictures"), ["a10.png", "a2.png", "b-1.png", "b-2.png"]);
    assert_eq!(outcome.stderr.lines().filter(|line| line.ends_with(" s  load")).count(), 1, "{}", outcome.stderr);
    let note = "note: latents: not used: 1 file with endings other than safetensors, latent, npy";
    assert!(outcome.stderr.contains(note), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("wrote 4 files, pictures/a2.png to pictures/b-2.png"), "{}", outcome.stdout);
    let rate = regex::Regex::new(r"(?m)^4 pictures in \d+\.\d s, \d+\.\d a second$").unwrap();
    assert!(rate.is_match(&outcome.stderr), "{}", outcome.stderr);
    for (latents, picture) in [("a2.safetensors", "a2.png"), ("a10.npy", "a10.png")] {
        let one = decode_one(&folder, &format!("latents/{latents}"), "one.png");
        assert!(folder.read(&format!("pictures/{picture}")) == one, "{picture}");
    }
    decode_one(&folder, "latents/b.safetensors", "b.npy");
    folder
        .run(&["decode", "--model", "model", "--latents", "latents/b.safetensors", "-o", "b.png", "--device", "cpu"])
        .ok();
    for picture in ["b-1.png", "b-2.png"] {
        assert!(folder.read(&format!("pictures/{picture}")) == folder.read(picture), "{picture}");
    }
    let report: serde_json::Value = serde_json::from_slice(&folder.read("report.json")).unwrap();
    let images: Vec<u64> =
        report["decodes"].as_array().unwrap().iter().map(|run| run["image"].as_u64().unwrap()).collect();
    assert_eq!(images, [0, 1, 2, 3]);
    assert_eq!(report["files"].as_array().unwrap().len(), 4);
    assert_eq!(report["predicted_peak_bytes"], report["measured_peak_bytes"]);
}

#[test]
fn the_output_is_a_folder_or_a_pattern() {
    let folder = folder();
    std::fs::create_dir(folder.path("by.name")).unwrap();
    folder.write("by.name/a2.webp", b"an older file");
    decode(&folder, &["-o", "by.name", "--format", "webp", "--quiet"]).ok();
    assert_eq!(names_in(&folder, "by.name"), ["a10.webp", "a2.webp", "b-1.webp", "b-2.webp"]);
    assert!(folder.read("by.name/a2.webp").starts_with(b"RIFF"));

    decode(&folder, &["-o", "stems/x-%s.png", "--preview", "4"]).ok();
    assert_eq!(names_in(&folder, "stems"), ["x-a10.png", "x-a2.png", "x-b-1.png", "x-b-2.png"]);
    let small = image::load_from_memory(&folder.read("stems/x-a2.png")).unwrap();
    assert!(small.width().max(small.height()) <= 4);

    decode(&folder, &["-o", "numbers/%03d.png"]).ok();
    assert_eq!(names_in(&folder, "numbers"), ["001.png", "002.png", "003.png", "004.png"]);
    assert!(folder.read("numbers/001.png") == decode_one(&folder, "latents/a2.safetensors", "one.png"));
    assert!(folder.read("numbers/002.png") == decode_one(&folder, "latents/a10.npy", "one.png"));

    // An array holds all images of its file.
    decode(&folder, &["-o", "arrays.v1/", "--format", "npy"]).ok();
    assert_eq!(names_in(&folder, "arrays.v1"), ["a10.npy", "a2.npy", "b.npy"]);
    assert_eq!(folder.npy("arrays.v1/b.npy").shape[0], 2);
}

/// An error keeps the files that were complete before it, and a note counts them.
#[test]
fn an_error_in_one_file_keeps_the_files_before() {
    let folder = folder();
    let mut broken = formula::latents(&[1, 8, 5, 2]);
    broken.data[3] = f32::NAN;
    folder.write("latents/a10.npy", &write_npy(&broken));
    let outcome = decode(&folder, &["-o", "pictures"]);
    outcome.failed("a value that is not finite", 1, &["latents in latents/a10.npy", "finite values"]);
    let note = "note: pictures: the output of 1 of 3 input files is written; stopped at latents/a10.npy";
    assert!(outcome.stderr.contains(note), "{}", outcome.stderr);
    assert_eq!(names_in(&folder, "pictures"), ["a2.png"]);

    folder.write("latents/a10.npy", &write_npy(&formula::latents(&[1, 4, 5, 2])));
    let outcome = decode(&folder, &["-o", "pictures"]);
    outcome.failed("another model's latents", 1, &["latents in latents/a10.npy: expected 8 channels"]);
    // A file without a header ends the work before it begins.
    folder.write("latents/b.safetensors", b"no latents");
    let outcome = decode(&folder, &["-o", "others"]);
    outcome.failed("a file that is no array", 1, &["latents/b.safetensors"]);
    assert!(!folder.path("others").exists());
}

#[test]
fn what_a_folder_cannot_have_is_named() {
    let folder = folder();
    let before = folder.names();
    let fails = |more: &[&str], words: &[&str]| decode(&folder, more).failed("a wrong folder", 1, words);
    fails(&["-o", "picture.png"], &["--output: expected a folder, or a pattern", "found picture.png"]);
    fails(&["-o", "-"], &["--output: expected a folder", "found -"]);
    fails(&["-o", "%s.gif"], &["ending of output file a2.gif"]);
    fails(
        &["-o", "%s.png", "--format", "webp"],
        &["--format: expected use with a folder", "webp with --output %s.png"],
    );
    fails(&["-o", "pictures", "--format", "y4m"], &["--format: expected one of png", "found y4m"]);
    fails(&["-o", "pictures", "--fps", "8"], &["--fps: expected latents of a clip", "images in latents"]);
    fails(&["-o", "pictures", "--bit-depth", "16", "--format", "webp"], &["--bit-depth"]);
    fails(&["-o", "%d-%d.png"], &["pattern %d-%d.png"]);
    fails(&["-o", "nowhere/pictures/"], &["nowhere/pictures", "expected an existing folder nowhere, found none"]);
    fails(&["-o", "model/", "--format", "safetensors", "--tensor", "x"], &["expected a tensor \"x\""]);
    fails(&["-o", "latents/%s.safetensors"], &["--output: expected a different file than --latents names"]);
    folder.write("latents/a2.npy", &write_npy(&formula::latents(&[1, 8, 3, 4])));
    let same = ["--output: expected another name", "a2.png for both latents/a2.npy and latents/a2.safetensors"];
    fails(&["-o", "pictures"], &same);
    assert_eq!(folder.names(), before);

    std::fs::create_dir(folder.path("empty")).unwrap();
    let empty = ["decode", "--model", "model", "--latents", "empty", "-o", "pictures"];
    let words = ["--latents: expected a folder with files that end in one of safetensors, latent, npy", "empty"];
    folder.run(&empty).failed("an empty folder", 1, &words);
}

#[test]
fn a_clip_in_a_folder_is_refused() {
    let folder = Folder::new();
    let (config, weights) = video_model();
    folder.write("model/config.json", config.as_bytes());
    folder.write_weights(&weights);
    std::fs::create_dir(folder.path("latents")).unwrap();
    folder.write("latents/image.safetensors", &file_of(&formula::latents(&[1, 16, 1, 2])));
    decode(&folder, &["-o", "pictures"]).ok();
    folder.write("latents/x.safetensors", &file_of(&formula::latents(&[1, 16, 2, 1, 2])));
    let words = ["--latents: expected latents of images", "a clip in latents/x.safetensors"];
    decode(&folder, &["-o", "pictures"]).failed("a clip", 1, &words);
}

/// Makes a folder with pictures of two sizes in `photos/`.
fn photos() -> Folder {
    let folder = Folder::new();
    folder.write_weights(&weights_of_both());
    std::fs::create_dir(folder.path("photos")).unwrap();
    for (name, (width, height)) in [("p1.png", (20, 18)), ("p02.png", (16, 12)), ("p10.png", (20, 18))] {
        let levels: Vec<u8> = (0..width * height * 3).map(|index| (index * 37 % 251) as u8).collect();
        folder.write(&format!("photos/{name}"), &png(&levels, width, height, ExtendedColorType::Rgb8));
    }
    folder.write("photos/latents.npy", b"not a picture");
    folder
}

fn encode(folder: &Folder, more: &[&str]) -> Outcome {
    folder.run(&[&["encode", "--model", "model", "--device", "cpu"], more].concat())
}

#[test]
fn a_folder_of_pictures_is_encoded() {
    let folder = photos();
    let outcome = encode(&folder, &["--image", "photos", "-o", "latents"]).ok();
    assert_eq!(names_in(&folder, "latents"), ["p02.safetensors", "p1.safetensors", "p10.safetensors"]);
    let words = "wrote 3 files, latents/p1.safetensors to latents/p10.safetensors (of 3 images)";
    assert!(outcome.stdout.contains(words), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("3 pictures in "), "{}", outcome.stderr);
    for name in ["p1", "p02", "p10"] {
        encode(&folder, &["--image", &format!("photos/{name}.png"), "-o", "one.safetensors"]).ok();
        assert!(folder.read(&format!("latents/{name}.safetensors")) == folder.read("one.safetensors"), "{name}");
    }
    decode(&folder, &["-o", "again/"]).ok();
    assert_eq!(names_in(&folder, "again"), ["p02.png", "p1.png", "p10.png"]);

    // Files by name go to a folder, too.
    encode(&folder, &["--image", "photos/p1.png", "photos/p10.png", "-o", "own-%s.npy"]).ok();
    assert_eq!(folder.npy("own-p1.npy"), folder.npy("own-p10.npy"));
    // One file for all needs one size.
    let words = ["images of one size", "photos/p1.png of 20x18 and photos/p02.png of 16x12"];
    encode(&folder, &["--image", "photos", "-o", "all.npy"]).failed("two sizes", 1, &words);
    std::fs::remove_file(folder.path("photos/p02.png")).unwrap();
    encode(&folder, &["--image", "photos", "-o", "all.npy"]).ok();
    assert_eq!(folder.npy("all.npy").shape[0], 2);
}

#[test]
fn a_broken_picture_keeps_the_latents_before() {
    let folder = photos();
    let mut broken = folder.read("photos/p02.png");
    broken.truncate(broken.len() - 40);
    folder.write("photos/p02.png", &broken);
    let outcome = encode(&folder, &["--image", "photos", "-o", "latents", "--format", "npy"]);
    outcome.failed("a broken picture", 1, &["photos/p02.png"]);
    let note = "note: latents: the output of 1 of 3 input files is written; stopped at photos/p02.png";
    assert!(outcome.stderr.contains(note), "{}", outcome.stderr);
    assert_eq!(names_in(&folder, "latents"), ["p1.npy"]);
}

#[test]
fn what_an_encode_of_a_folder_cannot_have_is_named() {
    let folder = photos();
    let fails = |more: &[&str], words: &[&str]| {
        encode(&folder, &[&["--image", "photos"], more].concat()).failed("a wrong folder", 1, words);
    };
    fails(&["-o", "x/%s.npy", "--format", "npy"], &["--format: expected use with a folder"]);
    fails(&["-o", "%s.png"], &["ending of output file p1.png"]);
    fails(&["-o", "latents", "--pad", "repeat"], &["--pad: expected a clip"]);
    fails(&["-o", "latents", "--report", "-"], &["--report"]);
    assert!(!folder.path("latents").exists());
    std::fs::create_dir(folder.path("none")).unwrap();
    let none = ["encode", "--model", "model", "--image", "none", "-o", "latents"];
    folder.run(&none).failed("no pictures", 1, &["--image: expected a folder with files that end in one of png"]);
}
