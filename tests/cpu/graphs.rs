//! Graphs of all networks, computed in f64 by their definition and compared with diffusers. This
//! tests builders and takes of weights without plans.

use test_kit::clip::{frames_of, parts_after, size_of_frame, turns};
use test_kit::formula;
use test_kit::golden::{Golden, first_channels};
use test_kit::reference::graph::{States, evaluate, evaluate_part};
use test_kit::sweep::is_full;
use wgvae::config::AutoencoderConfig;
use wgvae::model::blocks::Part;
use wgvae::model::graph::{Graph, Shape};
use wgvae::model::networks::{decoder, encoder, frames, part_of_decoder, part_of_encoder};
use wgvae::model::tensors::file_tensors;
use wgvae::plan::PlaneExtents;
use wgvae::{HostTensor, LatentSpace, Size};

/// Largest error: fixtures and the factors of latents are in f32.
const MOST: f64 = 1e-6;

fn size_of(tensor: &HostTensor) -> Size {
    let [height, width] = [2, 3].map(|axis| u32::try_from(tensor.shape[axis]).unwrap());
    Size { width, height }
}

fn run(graph: &Graph, input: &HostTensor) -> Vec<f64> {
    evaluate(graph, &formula::weights(&file_tensors(graph)), &input.data)
}

fn check(what: &str, found: &[f64], wanted: &HostTensor) {
    assert_eq!(found.len(), wanted.data.len(), "{what}: values");
    let largest = wanted.data.iter().fold(0.0_f64, |most, value| most.max(f64::from(value.abs())));
    let differences = found.iter().zip(&wanted.data).map(|(found, wanted)| (found - f64::from(*wanted)).abs());
    let error =
        differences.fold(0.0_f64, |most, value| if value.is_nan() { f64::NAN } else { most.max(value) }) / largest;
    println!("{what}: {error:.1e}");
    assert!(error <= MOST, "{what}: {error:.1e} from diffusers");
}

/// Decodes and encodes everything in fixture `name`.
fn check_fixture(name: &str) {
    let golden = Golden::open(name);
    let config = &golden.config;
    config.validate().unwrap();
    let latents = golden.latents();
    assert_eq!(latents.shape[1], config.channels(LatentSpace::Model) as usize, "{name}");
    let decoded = run(&decoder(config, size_of(&latents), LatentSpace::Model), &latents);
    check(&format!("{name} image"), &decoded, golden.output("image").unwrap());
    if let Some(own) = golden.own_latents() {
        assert_eq!(own.shape[1], config.channels(LatentSpace::Vae) as usize, "{name}");
        let decoded = run(&decoder(config, size_of(&own), LatentSpace::Vae), &own);
        check(&format!("{name} image_own"), &decoded, golden.output("image_own").unwrap());
    }
    let Some(image) = golden.image() else { return };
    let graph = encoder(config, size_of(&image));
    let encoded = run(&graph, &image);
    if let Some(moments) = golden.output("moments") {
        let channels = graph.shape(graph.nodes.last().expect("an output").output).channels;
        check(&format!("{name} moments"), &encoded, &first_channels(moments, channels));
    }
    if let Some(own) = golden.output("encoded_own").filter(|_| config.takes_own_latents()) {
        check(&format!("{name} encoded_own"), &encoded, own);
    }
    if let Some(scaled) = golden.output("encoded") {
        let own = config.latent_size(size_of(&image), LatentSpace::Vae);
        assert_eq!(config.latent_size(size_of(&image), LatentSpace::Model), size_of(scaled), "{name}");
        check(&format!("{name} encoded"), &as_the_model_takes_it(config, &encoded, own), scaled);
    }
}

/// Returns the mode of an encoder's output, in patches and scaled; a decoder undoes both first.
fn as_the_model_takes_it(config: &AutoencoderConfig, encoded: &[f64], own: Size) -> Vec<f64> {
    let (factor, offset) = config.latent_scale();
    let patch = config.patch as usize;
    let (width, height) = (own.width as usize, own.height as usize);
    let mut packed = Vec::new();
    for channel in 0..factor.len() {
        let (c, py, px) = (channel / (patch * patch), channel / patch % patch, channel % patch);
        for row in 0..height / patch {
            for column in 0..width / patch {
                let z = encoded[(c * height + row * patch + py) * width + column * patch + px];
                packed.push((z - f64::from(offset[channel])) / f64::from(factor[channel]));
            }
        }
    }
    packed
}

#[test]
fn autoencoder_kl() {
    for name in ["toy_odd", "toy_no_attention", "toy_two_levels", "toy_direct"] {
        check_fixture(name);
    }
    check_fixture("toy_asymmetric");
}

#[test]
fn borders_of_autoencoder_kl() {
    for name in [
        "toy_reflect",
        "toy_reflect_direct",
        "toy_replicate",
        "toy_circular",
        "toy_circular_direct",
        "toy_hunyuan_image_reflect",
    ] {
        check_fixture(name);
    }
}

#[test]
fn flux2() {
    check_fixture("toy_flux2");
    check_fixture("toy_flux2_small_decoder");
}

#[test]
fn autoencoder_tiny() {
    check_fixture("toy_tiny");
    check_fixture("taesd");
    check_fixture("taesd3");
}

#[test]
fn taef2() {
    check_fixture("taef2");
}

#[test]
fn tiny_without_a_class() {
    check_fixture("toy_taeqi2_1");
    check_fixture("toy_taesana");
    for name in ["toy_taew2_1", "toy_lighttaew2_1", "toy_taew2_2", "toy_taeltx2_3"] {
        check_fixture(name);
    }
}

#[test]
fn dc_ae() {
    check_fixture("toy_sana");
    check_fixture("toy_dc_ae");
    check_fixture("toy_dc_ae_narrow");
    check_fixture("toy_dc_ae_batch");
}

#[test]
fn wan() {
    check_fixture("toy_wan");
    check_fixture("toy_wan_one_block");
    check_fixture("lightvae");
}

#[test]
fn wan_of_odd_widths() {
    check_fixture("toy_wan_odd");
    check_fixture("toy_wan_odd_levels");
}

#[test]
fn wan_for_images() {
    check_fixture("toy_qwen2d");
    check_fixture("toy_wan_upscale2x");
}

#[test]
fn rgba() {
    check_fixture("toy_layered");
    check_fixture("toy_ming_image");
}

#[test]
fn qwen_image21() {
    check_fixture("toy_qwen_image21");
    check_fixture("toy_qwen_image21_narrow");
    check_fixture("toy_qwen_image21_one_block");
}

#[test]
fn wan22() {
    check_fixture("toy_wan22");
    check_fixture("toy_wan22_time");
    check_fixture("toy_wan22_no_patches");
}

#[test]
fn hunyuan_image() {
    check_fixture("toy_hunyuan_image");
    check_fixture("toy_hunyuan_image_uneven");
    check_fixture("toy_hunyuan_image_narrow");
}

#[test]
fn hunyuan_video() {
    check_fixture("toy_hunyuan_video");
    check_fixture("toy_hunyuan_video_uneven");
}

#[test]
fn ltx2() {
    check_fixture("toy_ltx2");
    check_fixture("toy_ltx2_3");
}

#[test]
fn seedvr() {
    check_fixture("toy_seedvr");
}

/// Decodes and encodes the clip of fixture `name`, part by part.
fn check_clip(name: &str) {
    let golden = Golden::open(name);
    let config = &golden.config;
    let [first, step] = [Part::First, Part::Next].map(|part| frames(config, part) as usize);
    let run = |graph: &dyn Fn(Part) -> Graph, clip: &HostTensor, (first, step), outputs: &HostTensor, what: &str| {
        let mut states = States::new();
        let mut done = 0;
        for (turn, part, range) in turns(clip.shape[2], (first, step), parts_after(&graph(Part::Next))) {
            let graph = graph(part);
            let weights = formula::weights(&file_tensors(&graph));
            let input = range.clone().map(|range| frames_of(clip, range));
            let found = evaluate_part(&graph, &weights, input.as_deref(), turn, &mut states);
            let Shape { frames, channels, height, width, first } =
                graph.shape(graph.nodes.last().expect("an output").output);
            let size = Size { width, height };
            let existing = PlaneExtents { size, channels, frames, first }.existing(turn);
            let each = found.len() / frames as usize;
            let found = &found[existing.start * each..existing.end * each];
            let outputs = first_channels(outputs, channels);
            let wanted = HostTensor { shape: Vec::new(), data: frames_of(&outputs, done..done + existing.len()) };
            if !existing.is_empty() {
                check(&format!("{name} {what} {range:?}"), found, &wanted);
            }
            done += existing.len();
        }
        assert_eq!(done, outputs.shape[2], "{name} {what}: frames");
    };
    let latents = golden.latents();
    let decoder = |part| part_of_decoder(config, part, size_of_frame(&latents), LatentSpace::Model);
    run(&decoder, &latents, (1, 1), golden.output("frames").unwrap(), "frames");
    let pixels = golden.pixels().unwrap();
    let encoder = |part| part_of_encoder(config, part, size_of_frame(&pixels));
    run(&encoder, &pixels, (first, step), golden.output("moments").unwrap(), "moments");
}

#[test]
fn clips() {
    check_clip("clip_wan");
    check_clip("clip_wan_odd");
    check_clip("clip_wan22");
    check_clip("clip_hunyuan_video");
    check_clip("clip_seedvr");
    for name in ["clip_taew2_1", "clip_lighttaew2_1", "clip_taew2_1_preview", "clip_taew2_2", "clip_taeltx2_3"] {
        check_clip(name);
    }
    check_clip("clip_ltx2");
    check_clip("clip_ltx2_3");
}

/// Tests larger images and networks, which takes minutes.
#[test]
fn published_networks() {
    if is_full() {
        for name in ["toy_small_decoder", "toy_wide", "sd3_odd", "flux1_64x96"] {
            check_fixture(name);
        }
    }
}
