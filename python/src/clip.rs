//! Decodes and encodes of clips, part by part. Python receives the result of a part before the next
//! one begins.

use pollster::block_on;
use pyo3::prelude::*;
use wgvae::images::Pixels;
use wgvae::internals::clips::TimeFactor;
use wgvae::{DecodeOptions, Directions, EncodeOptions, Error, LoadOptions};

use crate::arrays::{Array, array};
use crate::device::Device;
use crate::errors::Stop;
use crate::images::{add_levels, latent_size, latents_of, small, wanted_of};
use crate::inputs::{Inputs, Uneven};
use crate::options::Options;
use crate::watch::Watch;

/// Decodes latents `[t, c, h, w]`. Calls `take` with the frames of each part: levels `[f, h, w, 3]`
/// or floats `[f, 3, h, w]`.
///
/// # Errors
/// See [`wgvae::clips::ClipDecoder::decode`]; also exceptions of `take`.
pub(crate) fn decode(
    device: &Device,
    load: LoadOptions,
    latents: &Array,
    take: &Py<PyAny>,
    options: &Options,
    watch: &mut Watch,
) -> Result<(), Stop> {
    let [count, channels, height, width] = *latents.shape else {
        return Err(Error::input("latents", "a shape [t, c, h, w]", format!("{:?}", latents.shape)).into());
    };
    if latents.shape.contains(&0) {
        return Err(Error::input("latents", "no empty axes", format!("{:?}", latents.shape)).into());
    }
    let decode =
        DecodeOptions { clip_latents: u32::try_from(count).ok(), ..options.decode(device.checkpoint.config())? };
    let mut turn = device.turn()?;
    let vae = turn.load(LoadOptions { directions: Directions::Decode, clips: true, ..load })?;
    let size = latent_size(vae.config(), options.space(), channels, (height, width))?;
    let image = vae.config().image_size(size, options.space());
    let (columns, rows) = (image.width as usize, image.height as usize);
    let mut clip = block_on(vae.decode_clip(size, options.space(), options.format(), &decode))?;
    watch.images = small(count);
    let mut index = 0;
    loop {
        watch.image = small(index.min(count - 1));
        let part = if index < count {
            let image = latents_of(latents.image(index)?, [channels, height, width], index)?;
            Some(image.in_space(options.space()))
        } else {
            None
        };
        index += 1;
        let (mut levels, mut floats, mut frames) = (Vec::new(), Vec::new(), 0);
        let mut keep = |pixels: Pixels| {
            frames += 1;
            match pixels {
                Pixels::Rgba8(pixels) => {
                    add_levels(&mut levels, &pixels, 3);
                }
                Pixels::Raw(values) => floats.extend(values),
            }
            Ok(())
        };
        // Without latents: the frames that wait for later ones.
        let ran = watch.control(|control| match &part {
            Some(part) => block_on(clip.decode(part, control, &mut keep)).map(Some),
            None => block_on(clip.finish(control, &mut keep)),
        })?;
        if ran.is_none() {
            return Ok(());
        }
        if frames == 0 {
            continue;
        }
        hand(take, |py| {
            if options.floats {
                array(py, floats, &[frames, 3, rows, columns])
            } else {
                array(py, levels, &[frames, rows, columns, 3])
            }
        })?;
    }
}

/// Encodes frames: levels `[t, h, w, 3]` or floats `[t, 3, h, w]`. Calls `take` with the latents of
/// each part, `[1, c, h, w]`.
///
/// # Errors
/// See [`wgvae::clips::ClipEncoder::encode`]; also exceptions of `take`.
pub(crate) fn encode(
    device: &Device,
    load: LoadOptions,
    frames: &Array,
    take: &Py<PyAny>,
    options: &Options,
    watch: &mut Watch,
) -> Result<(), Stop> {
    let wanted = options.wanted();
    let mut frames =
        Inputs::new(frames, 3, device.checkpoint.config().image_step(options.encoded_space()), Uneven::Crop)?;
    let count = frames.count;
    let mut turn = device.turn()?;
    let vae = turn.load(LoadOptions { directions: Directions::Encode, clips: true, ..load })?;
    let factor = TimeFactor::of(vae.config())
        .ok_or_else(|| Error::input("clip", "a model for video", vae.config().network.name()))?;
    let parts = factor.latents(count as u64).ok_or_else(|| {
        let next = (count as u64).saturating_add(factor.missing(count as u64));
        Error::input("frames", format!("as many as latents have, such as {next}"), count.to_string())
    })?;
    let encode = EncodeOptions { clip_latents: u32::try_from(parts).ok(), ..options.encode()? };
    let mut clip = block_on(vae.encode_clip(frames.size(), &encode))?;
    (watch.image, watch.images) = (0, u32::try_from(parts).unwrap_or(u32::MAX));
    let mut next = 0;
    while next < count {
        let many = (clip.wants() as usize).min(count - next);
        let images = frames.read(next..next + many)?;
        let encoded = watch.control(|control| block_on(clip.encode(&images, control)))?;
        let latents = wanted_of(clip.vae(), encoded.moments, wanted, options.space(), watch.image as usize)?;
        let shape = [&[1], latents.shape.as_slice()].concat();
        hand(take, |py| array(py, latents.data, &shape))?;
        next += many;
        watch.image += 1;
    }
    Ok(())
}

/// Calls `take` with the value that `make` returns.
fn hand(take: &Py<PyAny>, make: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>) -> Result<(), Stop> {
    let taken = Python::try_attach(|py| take.call1(py, (make(py)?,)).map(drop));
    Ok(taken.unwrap_or(Ok(()))?)
}
