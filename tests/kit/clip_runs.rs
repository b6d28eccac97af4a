//! Clips on a device, part by part, against the f64 result of diffusers' or the original class for
//! the whole clip.

use pollster::block_on;
use wgvae::images::{PixelFormat, Pixels};
use wgvae::{
    Bytes, Control, DecodeOptions, EncodeOptions, HostTensor, Images, LatentSpace, Latents, Plans, Precision, Result,
    Vae,
};

use crate::clip::{frames_of, size_of_frame};
use crate::family::relative_error;
use crate::golden::Golden;

/// Decodes all frames of a clip.
pub fn decode(vae: &mut Vae, latents: &Latents, budget: Option<Bytes>) -> (Vec<f32>, Plans) {
    let options =
        DecodeOptions { memory_budget: budget, clip_latents: Some(latents.count()), ..DecodeOptions::default() };
    let mut clip = block_on(vae.decode_clip(latents.size(), LatentSpace::Model, PixelFormat::Raw, &options)).unwrap();
    let mut frames = Vec::new();
    let mut sink = floats_into(&mut frames);
    for index in 0..latents.count() {
        block_on(clip.decode(latents.at(index), &mut Control::default(), &mut sink)).unwrap();
    }
    while block_on(clip.finish(&mut Control::default(), &mut sink)).unwrap().is_some() {}
    drop(sink);
    (frames, clip.plans().clone())
}

/// Returns a sink that adds the values of decoded frames to `frames`.
pub fn floats_into(frames: &mut Vec<f32>) -> impl FnMut(Pixels) -> Result<()> {
    |pixels| {
        let Pixels::Raw(values) = pixels else { panic!("asked for floats") };
        frames.extend(values);
        Ok(())
    }
}

/// Encodes a clip to all its moments.
pub fn encode(vae: &mut Vae, pixels: &HostTensor, budget: Option<Bytes>) -> (Vec<f32>, Plans) {
    let options = EncodeOptions { memory_budget: budget, ..EncodeOptions::default() };
    let size = size_of_frame(pixels);
    let mut clip = block_on(vae.encode_clip(size, &options)).unwrap();
    let mut moments = Vec::new();
    let mut next = 0;
    while next < pixels.shape[2] {
        // The last part may be short.
        let range = next..pixels.shape[2].min(next + clip.wants() as usize);
        next = range.end;
        let shape = vec![range.len(), 3, size.height as usize, size.width as usize];
        let frames = Images::new(HostTensor { shape, data: frames_of(pixels, range) }).unwrap();
        moments.extend(block_on(clip.encode(&frames, &mut Control::default())).unwrap().moments.data);
    }
    (moments, clip.plans().clone())
}

/// Compares frames or moments with output `output` of the fixture.
pub fn check(golden: &Golden, what: &str, output: &str, found: &[f32], precision: Precision) {
    let wanted = golden.output(output).unwrap();
    let (error, f16_error) = (relative_error(found, &frames_of(wanted, 0..wanted.shape[2])), golden.f16_error(output));
    println!("{what}: {error:.1e}, torch in f16 {f16_error:.1e}");
    // torch's own error in f32 is 5e-6 where values are clamped.
    let f32_error: f32 = golden.metadata[&format!("{output}_f32_error")].parse().unwrap();
    let most = if precision == Precision::F32 { (4.0 * f32_error).max(1e-5) } else { 2.0 * f16_error };
    assert!(error <= most, "{what}: {error:.1e}, at most {most:.1e}");
}

pub fn assert_same_bits(found: &[f32], wanted: &[f32], what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    let other = found.iter().zip(wanted).position(|(one, other)| one.to_bits() != other.to_bits());
    assert_eq!(other, None, "{what}: first value with other bits");
}
