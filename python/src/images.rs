//! Decodes and encodes of images, one after the other.

use pollster::block_on;
use pyo3::prelude::*;
use wgvae::config::AutoencoderConfig;
use wgvae::images::{PixelFormat, Posterior, RowPixels, Rows};
use wgvae::preview::{Preview, preview};
use wgvae::{Directions, Encoded, Error, HostTensor, LatentSpace, Latents, LoadOptions, Size, Vae};

use crate::arrays::{Array, Values, array, reserve};
use crate::device::Device;
use crate::errors::Stop;
use crate::inputs::{Inputs, Uneven};
use crate::options::{Options, Wanted};
use crate::watch::Watch;

/// Images in one array.
#[derive(Debug)]
pub(crate) enum Stack {
    Levels(Vec<u8>, [usize; 4]),
    Floats(Vec<f32>, [usize; 4]),
}

impl Stack {
    /// Makes the array.
    ///
    /// # Errors
    /// See [`array()`].
    pub(crate) fn into_array(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Levels(data, shape) => array(py, data, &shape),
            Self::Floats(data, shape) => array(py, data, &shape),
        }
    }
}

/// Decodes latents `[n, c, h, w]` to levels `[n, h, w, 3]` or floats `[n, 3, h, w]`, or to four
/// channels if the model has opacity.
///
/// # Errors
/// See [`Vae::decode_rows`].
pub(crate) fn decode(
    device: &Device,
    load: LoadOptions,
    latents: &Array,
    options: &Options,
    watch: &mut Watch,
) -> Result<Stack, Stop> {
    let decode = options.decode(device.checkpoint.config())?;
    let [count, channels, height, width] = axes("latents", "[n, c, h, w]", &latents.shape)?;
    let mut turn = device.turn()?;
    let vae = turn.load(LoadOptions { directions: Directions::Decode, clips: false, ..load })?;
    let size = latent_size(vae.config(), options.space(), channels, (height, width))?;
    let size = match options.max_side {
        Some(side) => vae.config().reduced_size(size, options.space(), side)?,
        None => size,
    };
    // Plan before reserving memory for the results, because an error about the size is more useful.
    vae.planner().plan(&decode.request(size, options.space(), options.format()))?;
    let result = vae.config().image_size(size, options.space());
    let (columns, rows) = (result.width as usize, result.height as usize);
    let depth = vae.config().out_channels as usize;
    let whole = count.saturating_mul(columns * rows * depth);
    let (mut levels, mut floats) = (Vec::new(), Vec::new());
    if options.floats {
        reserve(&mut floats, whole, "the images")?;
    } else {
        reserve(&mut levels, whole, "the images")?;
    }
    watch.images = small(count);
    for index in 0..count {
        watch.image = small(index);
        let latents = latents_of(latents.image(index)?, [channels, height, width], index)?.in_space(options.space());
        let latents = match options.max_side {
            Some(side) => latents.reduced(vae.config(), side)?,
            None => latents,
        };
        if options.floats {
            let decoded = watch.control(|control| block_on(vae.decode_raw(&latents, &decode, control)))?;
            floats.extend(decoded.pixels);
        } else {
            let mut add = |rows: Rows<'_>| {
                if let RowPixels::Rgba8(pixels) = rows.pixels {
                    add_levels(&mut levels, pixels, depth);
                }
                Ok(())
            };
            watch.control(|control| {
                block_on(vae.decode_rows(&latents, PixelFormat::Rgba8, &decode, control, &mut add))
            })?;
        }
    }
    Ok(if options.floats {
        Stack::Floats(floats, [count, depth, rows, columns])
    } else {
        Stack::Levels(levels, [count, rows, columns, depth])
    })
}

/// Makes previews of latents `[n, c, h, w]` without weights, as levels `[n, h, w, 3]`.
///
/// # Errors
/// See [`preview`].
pub(crate) fn previews(latents: &Array, family: &str, max_side: u32) -> Result<Stack, Stop> {
    let [count, channels, height, width] = axes("latents", "[n, c, h, w]", &latents.shape)?;
    let (mut levels, mut shape) = (Vec::new(), [count, 0, 0, 3]);
    for index in 0..count {
        let latents = latents_of(latents.image(index)?, [channels, height, width], index)?;
        let Preview { size, pixels } = preview(&latents, family, max_side)?;
        if index == 0 {
            reserve(&mut levels, count.saturating_mul(pixels.len() / 4 * 3), "the previews")?;
        }
        add_levels(&mut levels, &pixels, 3);
        (shape[1], shape[2]) = (size.height as usize, size.width as usize);
    }
    Ok(Stack::Levels(levels, shape))
}

/// Encodes levels `[n, h, w, 3]` or floats `[n, 3, h, w]` to latents `[n, c, h, w]`, or moments
/// `[n, 2c, h, w]`. A model with opacity takes four channels, too.
///
/// # Errors
/// See [`Vae::encode`].
pub(crate) fn encode(
    device: &Device,
    load: LoadOptions,
    images: &Array,
    options: &Options,
    watch: &mut Watch,
) -> Result<Stack, Stop> {
    let (encode, wanted) = (options.encode()?, options.wanted());
    let mut turn = device.turn()?;
    let vae = turn.load(LoadOptions { directions: Directions::Encode, clips: false, ..load })?;
    let step = vae.config().image_step(options.encoded_space());
    let mut images = Inputs::new(images, vae.config().in_channels as usize, step, Uneven::Scale)?;
    let count = images.count;
    vae.planner().plan(&encode.request(images.size()))?;
    watch.images = small(count);
    let (mut data, mut shape) = (Vec::new(), [count, 0, 0, 0]);
    for index in 0..count {
        watch.image = small(index);
        let image = images.read(index..index + 1)?;
        let Encoded { moments, .. } = watch.control(|control| block_on(vae.encode_with(&image, &encode, control)))?;
        let latents = wanted_of(vae, moments, wanted, options.space(), index)?;
        if index == 0 {
            shape = [count, latents.shape[0], latents.shape[1], latents.shape[2]];
            reserve(&mut data, count.saturating_mul(latents.data.len()), "the latents")?;
        }
        data.extend(latents.data);
    }
    Ok(Stack::Floats(data, shape))
}

/// Adds the first `channels` of RGBA `pixels` to `levels`.
pub(crate) fn add_levels(levels: &mut Vec<u8>, pixels: &[u8], channels: usize) {
    levels.extend(pixels.as_chunks::<4>().0.iter().flat_map(|pixel| &pixel[..channels]));
}

/// Converts an encoder's output for image `index` to the wanted form.
///
/// # Errors
/// If a sample is wanted from an encoder that gives no distribution.
pub(crate) fn wanted_of(
    vae: &Vae,
    moments: HostTensor,
    wanted: Wanted,
    space: LatentSpace,
    index: usize,
) -> wgvae::Result<HostTensor> {
    let posterior = |moments| Posterior::new(moments, vae.config().latent_channels);
    let latents = match wanted {
        Wanted::Moments => return Ok(moments),
        Wanted::Mode => posterior(moments)?.into_mode(),
        Wanted::Sample(seed) => posterior(moments)?.sample(seed, small(index))?,
    };
    vae.encoded_latents(latents, space)
}

/// Returns the four axes of `shape`, none of which is empty.
pub(crate) fn axes(what: &str, expected: &str, shape: &[usize]) -> wgvae::Result<[usize; 4]> {
    match *shape {
        [n, a, b, c] if n > 0 && a > 0 && b > 0 && c > 0 => Ok([n, a, b, c]),
        _ => Err(Error::input(what, format!("a shape {expected} without empty axes"), format!("{shape:?}"))),
    }
}

/// Returns the size of latents, after a check that the model has this number of channels.
///
/// # Errors
/// For another number of channels, with the families that have it.
pub(crate) fn latent_size(
    config: &AutoencoderConfig,
    space: LatentSpace,
    channels: usize,
    (height, width): (usize, usize),
) -> wgvae::Result<Size> {
    if small(channels) != config.channels(space) {
        // One latent pixel is enough for the check, because the given array may be arbitrarily
        // large.
        let channels = channels.min(1 << 16);
        let pixel = Latents::new(HostTensor { shape: vec![1, channels, 1, 1], data: vec![0.0; channels] })?;
        pixel.in_space(space).check_channels(config)?;
    }
    Ok(Size { width: small(width), height: small(height) })
}

/// Wraps values as latents `[c, h, w]`.
///
/// # Errors
/// For values that are not finite, and for uint8.
pub(crate) fn latents_of(values: Values, shape: [usize; 3], index: usize) -> wgvae::Result<Latents> {
    let data = match values {
        Values::Floats(data) => data,
        Values::Levels(_) => return Err(Error::input("latents", "floats", "uint8")),
    };
    Latents::new(HostTensor { shape: shape.to_vec(), data })
        .map_err(|error| error.renamed(|what| format!("{what} {index}")))
}

/// Checks that the sides of `size` are multiples of `factor`, so that latents fill the images.
///
/// # Errors
/// [`Error::Input`].
pub(crate) fn check_multiple(size: Size, factor: u32) -> wgvae::Result<()> {
    if is_multiple(size, factor) {
        return Ok(());
    }
    Err(Error::input(
        "size",
        format!("multiples of {factor} pixels each way, as the model has"),
        format!("{size} pixels"),
    ))
}

/// True if the sides of `size` are multiples of `factor`.
pub(crate) fn is_multiple(size: Size, factor: u32) -> bool {
    let fits = |extent: u32| extent > 0 && extent.is_multiple_of(factor);
    fits(size.width) && fits(size.height)
}

/// Converts a number to the crate's u32. Larger numbers become its maximum.
pub(crate) fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
