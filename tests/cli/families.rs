//! Other networks through the command line: what the diffusion model takes, what the VAE has itself, and what an encoder cannot say.

use pollster::block_on;
use wgvae::internals::npy::write_npy;
use wgvae::internals::safetensors::read_header;
use wgvae::{AutoencoderConfig, FileSource, HostTensor};

use crate::formula;
use crate::tool::{Entry, Folder, encoder_weights, fixture, fixture_path};

/// A folder with the model of a fixture and the images of its golden encode.
fn folder_of(name: &str) -> Folder {
    let source = FileSource::open(fixture_path(&format!("{name}.safetensors"))).unwrap();
    let metadata = block_on(read_header(&source)).unwrap().metadata;
    let config = AutoencoderConfig::from_json(&metadata["config"]).unwrap();
    let mut weights = encoder_weights(&config);
    weights.extend(formula::decoder(&config).iter().map(|(name, tensor)| (name.clone(), Entry::f32(tensor))));
    if config.batch_norm_eps.is_some() {
        let channels = [config.model_channels() as usize];
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

/// The diffusion model's latents are packed 2 by 2 and normalised by the batch norm; the VAE's own are neither.
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
    assert_eq!(encoded(&folder, &["--unscaled"]), latents);
    for flag in ["--sample", "--moments"] {
        let words = [flag, "encoder gives a distribution", "model, whose encoder gives the latents themselves"];
        folder.encode(&["--image", "image.npy", "-o", "none.npy", flag]).failed(flag, 1, &words);
    }
    assert!(!folder.path("none.npy").exists());
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
