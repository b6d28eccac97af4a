//! Every network on a device, in both directions, against the f64 result of its own class. Files
//! are in the network's own layout.

use pollster::block_on;
use wgvae::config::Network;
use wgvae::files::MemorySource;
use wgvae::images::{PixelFormat, Posterior};
use wgvae::internals::safetensors::write_safetensors;
use wgvae::model::blocks::Part;
use wgvae::model::networks;
use wgvae::{
    Bytes, Checkpoint, Control, DecodeOptions, Device, Directions, EncodeOptions, Error, HostTensor, Images,
    LatentSpace, Latents, LoadOptions, Plans, Precision, Request, Vae,
};

use crate::formula;
use crate::golden::Golden;
use crate::written::as_written;

/// Returns max |a - b| / max |b|; NaN if any value is NaN.
pub fn relative_error(found: &[f32], wanted: &[f32]) -> f32 {
    assert_eq!(found.len(), wanted.len());
    let largest = wanted.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    let differences = found.iter().zip(wanted).map(|(a, b)| (a - b).abs());
    differences.fold(0.0_f32, |most, value| if value <= most { most } else { value }) / largest
}

/// Makes a checkpoint of the formula's weights, with the fixture's config or with its family.
pub fn checkpoint(golden: &Golden) -> Checkpoint {
    let config = &golden.config;
    let mut tensors = networks::decoder_tensors(config);
    tensors.extend(networks::encoder_tensors(config));
    if config.has_time() {
        tensors.extend(networks::tensors_of_decoder(config, Part::Next));
        tensors.extend(networks::tensors_of_encoder(config, Part::Next));
    }
    if config.batch_norm_eps.is_some() {
        let channels = vec![config.latent_scale().0.len() as u64];
        tensors.extend(["mean", "var"].map(|part| (format!("bn.running_{part}"), channels.clone())));
    }
    let weights = as_written(config, formula::weights(&tensors));
    let tensors: Vec<(&str, &HostTensor)> = weights.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let source = MemorySource::new("formula", write_safetensors(&tensors).unwrap());
    // Networks without a class in diffusers have no config.json.
    let (json, family) = match &config.network {
        Network::SeedVr(_) => (None, Some("seedvr2")),
        Network::Tiny(tiny) if golden.metadata["config"].contains("tiny_reference") || tiny.use_midblock_gn => {
            (None, None)
        }
        Network::Kl(_)
        | Network::Tiny(_)
        | Network::Wan(_)
        | Network::Ltx2(_)
        | Network::HunyuanVideo(_)
        | Network::Dc(_) => (Some(golden.metadata["config"].as_str()), None),
    };
    let checkpoint = block_on(Checkpoint::from_source(Box::new(source), json)).unwrap();
    match family.or(golden.metadata.get("family").map(String::as_str)) {
        Some(family) => checkpoint.with_family(family).unwrap(),
        None => checkpoint,
    }
}

fn check(golden: &Golden, name: &str, output: &str, found: &[f32], precision: Precision) {
    let (wanted, f16_error) = (golden.output(output).unwrap(), golden.f16_error(output));
    let error = relative_error(found, &wanted.data);
    println!("{name} {output} {precision:?}: {error:.1e}, torch in f16 {f16_error:.1e}");
    let most = if precision == Precision::F32 { 1e-5 } else { 2.0 * f16_error };
    assert!(error <= most, "{name} {output} {precision:?}: {error:.1e}, at most {most:.1e}");
}

fn decode(vae: &mut Vae, latents: &Latents, budget: Option<Bytes>) -> Vec<f32> {
    let options = DecodeOptions { memory_budget: budget, ..DecodeOptions::default() };
    block_on(vae.decode_raw(latents, &options, &mut Control::default())).unwrap().pixels
}

fn encode(vae: &mut Vae, image: &Images, budget: Option<Bytes>) -> HostTensor {
    let options = EncodeOptions { memory_budget: budget, ..EncodeOptions::default() };
    block_on(vae.encode_with(image, &options, &mut Control::default())).unwrap().moments
}

/// Decodes and encodes all that fixture `name` contains on `device`: the model's latents, the VAE's
/// own, the image. Does so without a budget, and within smaller ones with the same bits.
pub fn check_family(golden: &Golden, name: &str, device: &Device, precision: Precision) {
    let load = LoadOptions { precision, directions: Directions::Both, ..LoadOptions::default() };
    let mut vae = block_on(Vae::load(device, &checkpoint(golden), load)).unwrap();
    let latents = Latents::new(golden.latents()).unwrap();
    let whole = decode(&mut vae, &latents, None);
    check(golden, name, "image", &whole, precision);
    let peak = vae.predicted_peak().unwrap();
    assert_eq!(device.ledger().peak(), peak, "{name}: measured and predicted peak of a decode");
    if let Some(own) = golden.own_latents() {
        let own = Latents::new(own).unwrap().in_space(LatentSpace::Vae);
        check(golden, name, "image_own", &decode(&mut vae, &own, None), precision);
    }
    let image = Images::new(golden.image().unwrap()).unwrap();
    let moments = encode(&mut vae, &image, None);
    let output = golden.encoded();
    assert_eq!([&[1], moments.shape.as_slice()].concat(), golden.output(output).unwrap().shape);
    check(golden, name, output, &moments.data, precision);
    for (output, unscaled) in [("encoded", false), ("encoded_own", true)] {
        let Some(wanted) = golden.output(output) else { continue };
        let mode = Posterior::new(moments.clone(), vae.config().latent_channels).unwrap().into_mode();
        let latents = vae.encoded_latents(mode, LatentSpace::from_unscaled(unscaled)).unwrap();
        assert_eq!([&[1], latents.shape.as_slice()].concat(), wanted.shape);
        check(golden, name, output, &latents.data, precision);
    }
    assert_eq!(device.ledger().current(), vae.predicted_peak().unwrap(), "{name}: held and predicted for an encode");
    encode_within_a_budget(name, &mut vae, &image, &moments);
    decode_within_a_budget(name, &mut vae, &latents, (&whole, peak));
}

/// Returns the smallest budget that the planner finds for `request`, whose budget is one byte.
fn smallest_budget(vae: &Vae, request: &Request) -> Bytes {
    match vae.planner().plan(request).map(Plans::into_first) {
        Err(Error::Budget { smallest, .. }) => smallest,
        other => panic!("one byte is no budget: {other:?}"),
    }
}

/// Returns true if all values have the same bits.
fn same_bits(one: &[f32], other: &[f32]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.to_bits() == other.to_bits())
}

/// Checks that an encode within the smallest budget found gives the same bits.
fn encode_within_a_budget(name: &str, vae: &mut Vae, image: &Images, whole: &HostTensor) {
    let tiny = EncodeOptions { memory_budget: Some(Bytes(1)), ..EncodeOptions::default() };
    let smallest = smallest_budget(vae, &tiny.request(image.size()));
    let within = encode(vae, image, Some(smallest));
    assert!(vae.predicted_peak().unwrap() <= smallest);
    assert!(same_bits(&within.data, &whole.data), "{name}: an encode within {smallest} has other bits");
}

/// Checks that a decode within half of its peak, or the smallest budget found if that is larger,
/// gives the same bits.
fn decode_within_a_budget(name: &str, vae: &mut Vae, latents: &Latents, (whole, peak): (&[f32], Bytes)) {
    let tiny = DecodeOptions { memory_budget: Some(Bytes(1)), ..DecodeOptions::default() };
    let smallest = smallest_budget(vae, &tiny.request(latents.size(), LatentSpace::Model, PixelFormat::Raw));
    let budget = Bytes(peak.0 / 2).max(smallest);
    let within = decode(vae, latents, Some(budget));
    assert!(vae.predicted_peak().unwrap() <= budget);
    assert!(same_bits(&within, whole), "{name}: a decode within {budget} has other bits");
}
