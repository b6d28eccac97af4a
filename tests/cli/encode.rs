//! Encodes that work: every kind of input and output file, the report, and several images.

use std::collections::BTreeMap;

use image::{ExtendedColorType, ImageEncoder as _};
use pollster::block_on;
use serde_json::Value;
use test_kit::formula;
use wgvae::HostTensor;
use wgvae::files::MemorySource;
use wgvae::images::Posterior;
use wgvae::internals::npy::{read_npy, write_npy};
use wgvae::internals::safetensors::{Header, read_header, read_tensor};

use crate::tool::{Entry, Folder, Outcome, fixture, safetensors, weights_of_both};

/// Shape of the images of the small model's golden encode: one row more than its latents cover.
pub(crate) const IMAGE: [usize; 4] = [1, 3, 19, 20];

impl Folder {
    /// Makes a folder with encoder and decoder of the model, and the images of the golden encode in
    /// `image.npy`.
    pub(crate) fn of_both() -> Self {
        let folder = Self::new();
        folder.write_weights(&weights_of_both());
        folder.write("image.npy", &write_npy(&image()));
        folder
    }

    /// Runs `wgvae encode` with the model in this folder, in f32, with more arguments.
    pub(crate) fn encode(&self, more: &[&str]) -> Outcome {
        self.run(&[&["encode", "--model", "model", "--precision", "f32"], more].concat())
    }

    pub(crate) fn npy(&self, name: &str) -> HostTensor {
        block_on(read_npy(&MemorySource::new(name.to_owned(), self.read(name)))).unwrap()
    }

    pub(crate) fn safetensors(&self, name: &str, tensor: &str) -> (Header, HostTensor) {
        let source = MemorySource::new(name.to_owned(), self.read(name));
        let header = block_on(read_header(&source)).unwrap();
        let tensor = block_on(read_tensor(&source, tensor, &header.tensors[tensor])).unwrap();
        (header, tensor)
    }
}

pub(crate) fn image() -> HostTensor {
    formula::input("image", &IMAGE, 1.0)
}

/// Returns a picture of 20 x 18 pixels in which every level differs from its neighbours.
pub(crate) fn levels() -> Vec<u8> {
    (0..20 * 18 * 3_u32).map(|index| (index * 37 % 251) as u8).collect()
}

pub(crate) fn png(levels: &[u8], width: u32, height: u32, color: ExtendedColorType) -> Vec<u8> {
    let mut file = Vec::new();
    image::codecs::png::PngEncoder::new(&mut file).write_image(levels, width, height, color).unwrap();
    file
}

/// Converts a picture to floats `[3, h, w]`, as diffusers does.
fn floats(levels: &[u8]) -> Vec<f32> {
    (0..3)
        .flat_map(|channel| levels.chunks(3).map(move |pixel| 2.0 * (f32::from(pixel[channel]) / 255.0) - 1.0))
        .collect()
}

#[track_caller]
fn assert_close(found: &HostTensor, wanted: &[f32]) {
    assert_eq!(found.data.len(), wanted.len());
    let largest = wanted.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    for (index, (found, wanted)) in found.data.iter().zip(wanted).enumerate() {
        assert!((found - wanted).abs() <= 1e-4 * largest, "element {index}: {found}, not {wanted}");
    }
}

#[test]
fn moments_equal_those_of_diffusers() {
    let folder = Folder::of_both();
    let golden = fixture("toy_two_levels", "moments");
    let run = folder.encode(&["--image", "image.npy", "--moments", "-o", "moments.npy"]).ok();
    assert!(run.stderr.contains("note: image.npy: 20x19 is no multiple of 2 pixels"), "{}", run.stderr);
    assert!(run.stdout.contains("wrote moments.npy (of 1 image, 20x19)"), "{}", run.stdout);
    let found = folder.npy("moments.npy");
    assert_eq!(found.shape, [1, 16, 9, 10]);
    assert_close(&found, &golden.data);

    let image = BTreeMap::from([("image".to_owned(), Entry::f32(&image()))]);
    folder.write("image.safetensors", &safetensors(&image));
    folder.encode(&["--image", "image.npy", "--moments", "-o", "gpu.npy", "--device", "gpu"]).ok();
    let by_shaders = folder.npy("gpu.npy");
    assert_close(&by_shaders, &golden.data);
    let within_limits = ["--memory-budget", "2MiB", "--limits", "webgpu-default"];
    for (wanted, more) in [(found, &["--memory-budget", "1MiB"][..]), (by_shaders, &within_limits[..])] {
        folder
            .encode(&[&["--image", "image.safetensors", "--moments", "-o", "moments.safetensors"][..], more].concat())
            .ok();
        let (header, again) = folder.safetensors("moments.safetensors", "moments");
        assert_eq!(again, wanted, "a budget changes no bit");
        assert!(header.metadata["producer"].starts_with("wgvae "));
    }
}

/// Tests the default output, with a model whose scaling factor is 0.5.
#[test]
fn latents_are_the_mode_at_the_diffusion_models_scale() {
    let folder = Folder::of_both();
    let golden = fixture("toy_two_levels", "moments");
    let mean = &golden.data[..golden.data.len() / 2];
    folder.encode(&["--image", "image.npy", "-o", "latents.safetensors"]).ok();
    let (header, scaled) = folder.safetensors("latents.safetensors", "latents");
    assert_eq!(scaled.shape, [1, 8, 9, 10]);
    assert_close(&scaled, &mean.iter().map(|value| value * 0.5).collect::<Vec<_>>());
    assert_eq!([&header.metadata["unscaled"], &header.metadata["posterior"]], ["false", "mode"]);

    folder.encode(&["--image", "image.npy", "-o", "own.safetensors", "--unscaled"]).ok();
    let (header, own) = folder.safetensors("own.safetensors", "latents");
    assert_close(&own, mean);
    assert_eq!(header.metadata["unscaled"], "true");

    // A decode knows the scale of its latents from the file.
    let decode = |latents: &str, output: &str| {
        folder.run(&["decode", "--model", "model", "--precision", "f32", "--latents", latents, "-o", output]).ok();
        folder.npy(output)
    };
    assert_close(&decode("latents.safetensors", "a.npy"), &decode("own.safetensors", "b.npy").data);
}

#[test]
fn samples_are_those_of_the_seed() {
    let folder = Folder::of_both();
    let sample = |seed: &str| {
        folder.encode(&["--image", "image.npy", "-o", "out.npy", "--unscaled", "--sample", "--seed", seed]).ok();
        folder.npy("out.npy")
    };
    let first = sample("7");
    assert_eq!(first, sample("7"));
    assert_ne!(first, sample("8"));
    folder.encode(&["--image", "image.npy", "-o", "moments.npy", "--moments"]).ok();
    let HostTensor { shape, data } = folder.npy("moments.npy");
    let posterior = Posterior::new(HostTensor { shape: shape[1..].to_vec(), data }, 8).unwrap();
    assert_eq!(first.data, posterior.sample(7, 0).unwrap().data);
    // The default seed is 0, not random.
    folder.encode(&["--image", "image.npy", "-o", "out.npy", "--unscaled", "--sample"]).ok();
    assert_eq!(folder.npy("out.npy"), sample("0"));
}

#[test]
fn a_picture_is_encoded_as_its_floats_are() {
    let folder = Folder::of_both();
    folder.write("a.png", &png(&levels(), 20, 18, ExtendedColorType::Rgb8));
    let of_picture = folder.encode(&["--image", "a.png", "-o", "picture.npy"]).ok();
    assert!(!of_picture.stderr.contains("note:"), "{}", of_picture.stderr);
    let floats = HostTensor { shape: vec![3, 18, 20], data: floats(&levels()) };
    folder.write("a.npy", &write_npy(&floats));
    folder.encode(&["--image", "a.npy", "-o", "floats.npy"]).ok();
    assert_eq!(folder.read("picture.npy"), folder.read("floats.npy"));
    assert_eq!(folder.npy("picture.npy").shape, [1, 8, 9, 10]);
}

#[test]
fn several_files_become_one_batch_or_one_file_each() {
    let folder = Folder::of_both();
    let other: Vec<u8> = levels().iter().map(|level| 255 - level).collect();
    folder.write("a.png", &png(&levels(), 20, 18, ExtendedColorType::Rgb8));
    let two = HostTensor { shape: vec![2, 3, 18, 20], data: [floats(&other), floats(&levels())].concat() };
    folder.write("b.npy", &write_npy(&two));
    let said = folder.encode(&["--image", "a.png", "b.npy", "-o", "all.npy", "--sample"]).ok().stdout;
    assert!(said.contains("wrote all.npy (of 3 images, 20x18)"), "{said}");
    let all = folder.npy("all.npy");
    assert_eq!(all.shape, [3, 8, 9, 10]);
    let [first, second, third] = [0, 1, 2].map(|index| &all.data[index * 720..][..720]);
    assert_ne!(first, second);
    assert_ne!(first, third, "the same picture, other noise");

    let said =
        folder.encode(&["--image", "a.png", "--image", "b.npy", "-o", "each.npy", "--sample", "--each"]).ok().stdout;
    assert!(said.contains("2 files, each-1.npy to each-2.npy"), "{said}");
    assert_eq!(folder.npy("each-1.npy").data, first);
    assert_eq!(folder.npy("each-2.npy").shape, [2, 8, 9, 10]);
    assert!(!folder.path("each.npy").exists());

    // With --each, every image may have its own size.
    folder.write("c.png", &png(&levels()[..10 * 18 * 3], 10, 18, ExtendedColorType::Rgb8));
    let report = folder.encode(&["--image", "a.png", "c.png", "-o", "sizes.npy", "--each", "--json"]).json();
    assert_eq!(report["measured_peak_bytes"], report["predicted_peak_bytes"], "those of the larger");
    assert_eq!([folder.npy("sizes-1.npy").shape, folder.npy("sizes-2.npy").shape], [[1, 8, 9, 10], [1, 8, 9, 5]]);
    // Or --resize gives all images one size.
    folder.encode(&["--image", "c.png", "a.png", "-o", "resized.npy", "--resize", "16x16"]).ok();
    assert_eq!(folder.npy("resized.npy").shape, [2, 8, 8, 8]);
}

#[test]
fn the_report_of_an_encode_has_what_it_promises() {
    let folder = Folder::of_both();
    let args = ["--image", "image.npy", "-o", "out.npy", "--report", "report.json", "--repeat", "2", "--json"];
    let printed = folder.encode(&args).json();
    let report: Value = serde_json::from_slice(&folder.read("report.json")).unwrap();
    assert_eq!(printed, report);
    assert_eq!(report["measured_peak_bytes"], report["predicted_peak_bytes"]);
    assert_eq!(report["images"][0]["file"], "image.npy");
    assert_eq!(report["images"][0]["size"]["height"], 19);
    let encodes = report["encodes"].as_array().unwrap();
    assert_eq!(encodes.len(), 2);
    assert_eq!([&encodes[1]["image"], &encodes[1]["repeat"]], [0, 1]);
    assert_eq!([&encodes[1]["kernels_compiled"], &encodes[1]["buffers_created"]], [0, 0]);
    assert!(report["plan"]["macs"].as_u64() > Some(0));
}
