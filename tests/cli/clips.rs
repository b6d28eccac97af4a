//! Clips through the command line: decodes and encodes part by part, every kind of file, and
//! arguments that give errors.

#[path = "clips/decode.rs"]
mod decode;
#[path = "clips/earlier_frames.rs"]
mod earlier_frames;
#[path = "clips/encode.rs"]
mod encode;
#[cfg(unix)]
#[path = "clips/ends.rs"]
mod ends;
#[path = "clips/later_frames.rs"]
mod later_frames;
#[path = "clips/plan.rs"]
mod plan;
#[path = "clips/refused.rs"]
mod refused;

use std::collections::BTreeMap;

use pollster::block_on;
use test_kit::formula;
use test_kit::written::as_written;
use wgvae::HostTensor;
use wgvae::config::AutoencoderConfig;
use wgvae::files::FileSource;
use wgvae::internals::npy::write_npy;
use wgvae::internals::safetensors::read_header;
use wgvae::model::blocks::Part;
use wgvae::model::networks::{tensors_of_decoder, tensors_of_encoder};

use crate::tool::{Entries, Entry, Folder, Outcome, fixture_path};

/// Shape of the latents of the golden clip, which decode to 17 frames of 40 x 24 pixels.
const LATENTS: [usize; 5] = [1, 16, 5, 3, 5];
/// Shape of the frames of the golden encode.
const PIXELS: [usize; 5] = [1, 3, 17, 31, 47];

/// Returns config.json and weights of a small model for video.
pub(crate) fn video_model() -> (String, Entries) {
    model_of("clip_wan")
}

/// Returns config.json and weights of the model of a golden clip.
fn model_of(clip: &str) -> (String, Entries) {
    let source = FileSource::open(fixture_path(&format!("{clip}.safetensors"))).unwrap();
    let json = block_on(read_header(&source)).unwrap().metadata["config"].clone();
    let config = AutoencoderConfig::from_json(&json).unwrap();
    let mut tensors = BTreeMap::new();
    for part in [Part::Image, Part::First, Part::Next] {
        tensors.extend(tensors_of_decoder(&config, part));
        tensors.extend(tensors_of_encoder(&config, part));
    }
    let weights = as_written(&config, formula::weights(&tensors));
    (json, weights.iter().map(|(name, tensor)| (name.clone(), Entry::f32(tensor))).collect())
}

impl Folder {
    /// Makes a folder with a small model for video, latents of the golden clip in `clip.npy` and
    /// frames of the golden encode in `pixels.npy`.
    pub(crate) fn for_video() -> Self {
        Self::of_clip("clip_wan", &LATENTS, &PIXELS)
    }

    /// Makes such a folder for another golden clip, with `latents` and `pixels` of these shapes.
    fn of_clip(clip: &str, latents: &[usize], pixels: &[usize]) -> Self {
        let (json, weights) = model_of(clip);
        let folder = Self::new();
        folder.write("model/config.json", json.as_bytes());
        folder.write_weights(&weights);
        folder.write_clip(&formula::latents(latents));
        folder.write("pixels.npy", &write_npy(&formula::input("pixels", pixels, 1.0)));
        std::fs::create_dir(folder.path("frames")).unwrap();
        folder
    }

    /// Removes a tensor from the decoder that only clips need. Returns its name.
    pub(crate) fn without_time(&self) -> String {
        const FILE: &str = "model/diffusion_pytorch_model.safetensors";
        let mut file = self.read(FILE);
        let length = usize::try_from(u64::from_le_bytes(file[..8].try_into().unwrap())).unwrap();
        let header: serde_json::Value = serde_json::from_slice(&file[8..8 + length]).unwrap();
        let mut names = header.as_object().unwrap().keys();
        let name = names.find(|name| name.starts_with("decoder") && name.contains("time_conv")).unwrap().clone();
        let at = file.windows(name.len()).position(|bytes| bytes == name.as_bytes()).unwrap();
        file[at] = b'D';
        self.write(FILE, &file);
        name
    }

    fn write_clip(&self, latents: &HostTensor) {
        self.write("clip.npy", &write_npy(latents));
    }

    /// Runs `wgvae decode` of the clip in this folder, in f32.
    fn decode_clip(&self, more: &[&str]) -> Outcome {
        self.run(&Self::decoding(more))
    }

    /// Returns the arguments of this decode.
    fn decoding<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&["decode", "--model", "model", "--latents", "clip.npy", "--precision", "f32"], more].concat()
    }

    /// Returns the arguments of an encode, in f32.
    fn encoding<'a>(image: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        [&["encode", "--model", "model", "--precision", "f32", "--image", image], more].concat()
    }

    /// Returns the names in the folder of frames, sorted.
    fn frames(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path("frames")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

/// Returns `frames` frames of latents for 8 x 8 pixels each: little work, many parts.
fn long(frames: usize) -> HostTensor {
    formula::latents(&[1, LATENTS[1], frames, 1, 1])
}

#[track_caller]
fn assert_close(found: &HostTensor, wanted: &HostTensor) {
    assert_eq!(found.shape, wanted.shape);
    let largest = wanted.data.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    for (index, (found, wanted)) in found.data.iter().zip(&wanted.data).enumerate() {
        assert!((found - wanted).abs() <= 1e-4 * largest, "element {index}: {found}, its class has {wanted}");
    }
}
