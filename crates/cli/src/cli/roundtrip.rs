//! `wgvae roundtrip`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use wgvae::images::Posterior;
use wgvae::quality::{psnr, squared_differences, ssim};
use wgvae::{
    Bytes, Device, Direction, Directions, Error, Images, LatentSpace, Latents, LoadOptions, Result, Size, Tiling, Vae,
};
use wgvae_media::image_file::{ImageFormat, Pixels, encode_image};
use wgvae_media::part_file::check_writable;

use super::ModelArgs;
use super::images::{SizeArgs, Taken};
use super::interrupt::Interrupt;
use super::output::say_lost_alpha;
use super::paths::{check_replaced, model_files};
use super::prepare::{BudgetArgs, DeviceArgs, ElementArgs, load, open_device};
use super::request::request_for;
use super::session::{Run, Session};

#[derive(Debug, Args)]
pub(super) struct RoundtripArgs {
    /// Picture (PNG, JPEG, WebP), or floats `[3, h, w]` of -1 to 1 (.npy, .safetensors)
    ///
    /// With a model that has opacity, floats may be `[4, h, w]`, and PSNR and SSIM are of all four
    /// channels.
    #[arg(value_name = "IMAGE")]
    image: PathBuf,
    #[command(flatten)]
    model: ModelArgs,
    /// Picture to write: .png, .jpg or .webp
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    size: SizeArgs,
    #[command(flatten)]
    elements: ElementArgs,
    #[command(flatten)]
    budget: BudgetArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print the facts as JSON
    #[arg(long)]
    json: bool,
}

/// Encodes the image, takes the mean of the encoder's distribution, decodes it, writes the picture
/// and compares.
pub(super) async fn run(args: &RoundtripArgs) -> Result<String> {
    let interrupt = Interrupt::install();
    args.size.check_tensor(std::slice::from_ref(&args.image))?;
    let format = ImageFormat::from_path(&args.output)?;
    check_writable(&args.output)?;
    let checkpoint = args.model.open().await?;
    let inputs: Vec<_> = model_files(&checkpoint).chain([("IMAGE", args.image.as_path())]).collect();
    check_replaced(&inputs, &[("--output", &args.output)])?;
    checkpoint.check_encoder()?;
    checkpoint.check_decoder()?;
    let config = checkpoint.config();
    let (encoded, decoded) = (config.latent_factor(LatentSpace::Vae), config.decoded_factor(LatentSpace::Vae));
    if encoded != decoded {
        let expected = format!("a model whose decodes are as large as its images, {encoded} pixels a latent");
        return Err(Error::input(checkpoint.name(), expected, format!("{decoded} pixels a latent in a decode")));
    }
    let file = args.size.open(&args.image, Taken::by(config, config.latent_factor(LatentSpace::Vae))).await?;
    let (count, size) = (file.source().count, file.source().size);
    if count != 1 {
        return Err(Error::input(format!("image in {}", args.image.display()), "one image", format!("{count} images")));
    }
    // Floats are not resized, and a result of another size could not be compared.
    let space = LatentSpace::from_unscaled(config.takes_own_latents());
    request_for(Direction::Decode, "IMAGE", size, config, space)?;
    format.check_size(&args.output, size)?;
    say_lost_alpha(&args.output, format, config.out_channels);
    let images = file.read()?;

    let device = open_device(&args.device, &args.elements).await?;
    let wanted = LoadOptions::for_request(&args.budget.encode(false).request(size), args.elements.precision);
    let mut vae = load(&device, &checkpoint, LoadOptions { directions: Directions::Both, ..wanted }).await?;
    let mut session = Session::new("encode and decode", &device, &interrupt, Some(2));
    let data = args.there_and_back(&images, space, &mut vae, &mut session).await?;
    let encoded = encode_image(format, &Pixels { size, data: &data })?;
    interrupt.write_all(&[(args.output.clone(), encoded)])?;
    let predicted = session.predicted;
    Ok(args.answer(&device, size, &compared(&images, &data, size), &session.finish(), predicted))
}

impl RoundtripArgs {
    /// Encodes and decodes the image. Returns RGB `[h, w, 3]`, or RGBA `[h, w, 4]`. The latents are
    /// in the `space` that the network takes, mostly the VAE's own: their scale for a diffusion
    /// model does not matter here.
    async fn there_and_back(
        &self,
        images: &Images,
        space: LatentSpace,
        vae: &mut Vae,
        session: &mut Session<'_>,
    ) -> Result<Vec<u8>> {
        let moments = session.encode(vae, images, 0, &self.budget.encode(false), 1).await?;
        let mode = Posterior::new(moments, vae.config().latent_channels)?.into_mode();
        let latents = Latents::new(vae.encoded_latents(mode, space)?)?.in_space(space);
        let back = self.budget.decode(Tiling::Exact, false);
        let pixels = session.decode_whole(vae, &latents, &back).await?;
        Ok(if vae.config().out_channels == 4 { pixels } else { colors(&pixels) })
    }

    fn answer(&self, device: &Device, size: Size, quality: &Quality, runs: &[Run], predicted: Bytes) -> String {
        let seconds: Vec<f64> = runs.iter().map(|run| run.times.seconds).collect();
        let measured = device.ledger().peak();
        if self.json {
            return super::to_json(&json!({
                "file": self.output.to_string_lossy(),
                "image": size,
                "psnr_db": Some(quality.psnr).filter(|psnr| psnr.is_finite()),
                "ssim": quality.ssim,
                "encode_seconds": seconds.first(),
                "decode_seconds": seconds.last(),
                "predicted_peak_bytes": predicted,
                "measured_peak_bytes": measured,
                "adapter": device.adapter(),
            }));
        }
        format!(
            "wrote {} ({size})\n\
             {quality}, compared with the picture as encoded\n\
             encoded in {:.2} s, decoded in {:.2} s on {} ({})\n\
             memory at its peak: {predicted} predicted, {measured} measured",
            self.output.display(),
            seconds.first().copied().unwrap_or_default(),
            seconds.last().copied().unwrap_or_default(),
            device.adapter().name,
            device.adapter().backend,
        )
    }
}

/// Similarity of two pictures.
struct Quality {
    /// Peak signal-to-noise ratio in dB; infinite for equal pictures.
    psnr: f64,
    /// Structural similarity; `None` for pictures smaller than its window of 11 pixels.
    ssim: Option<f64>,
}

impl std::fmt::Display for Quality {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.psnr.is_finite() {
            write!(f, "PSNR {:.2} dB, ", self.psnr)?;
        } else {
            f.write_str("PSNR infinite (equal), ")?;
        }
        match self.ssim {
            Some(ssim) => write!(f, "SSIM {ssim:.4}"),
            None => f.write_str("SSIM n/a (below 11 pixels a side)"),
        }
    }
}

/// Compares the encoded image, rounded to 8 bits, with the decoded one, RGB or RGBA. Without
/// opacity, the encoded image is opaque.
fn compared(images: &Images, back: &[u8], size: Size) -> Quality {
    let plane = size.width as usize * size.height as usize;
    let values = images.image(0).unwrap_or_default();
    let level = |channel: usize, pixel: usize| values.get(channel * plane + pixel).map_or(255, |value| level(*value));
    let channels = back.len() / plane;
    let before: Vec<u8> = (0..back.len()).map(|index| level(index % channels, index / channels)).collect();
    let ssim = if channels == 4 { ssim_with_alpha(&before, back, size) } else { ssim(&before, back, size) };
    Quality { psnr: psnr(squared_differences(&before, back), back.len()), ssim }
}

/// Returns the mean SSIM of the four channels of RGBA pictures.
fn ssim_with_alpha(before: &[u8], back: &[u8], size: Size) -> Option<f64> {
    let of = |part: fn(&[u8]) -> Vec<u8>| ssim(&part(before), &part(back), size);
    Some((3.0 * of(colors)? + of(alpha)?) / 4.0)
}

/// Returns the colours of RGBA pixels, `[h, w, 3]`.
fn colors(pixels: &[u8]) -> Vec<u8> {
    pixels.as_chunks::<4>().0.iter().flat_map(|[r, g, b, _]| [*r, *g, *b]).collect()
}

/// Returns the opacity of RGBA pixels as a grey picture, `[h, w, 3]`.
fn alpha(pixels: &[u8]) -> Vec<u8> {
    pixels.as_chunks::<4>().0.iter().flat_map(|pixel| [pixel[3]; 3]).collect()
}

/// Converts a value of -1 to 1 to a level of 0 to 255, rounded as a decode rounds it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
fn level(value: f32) -> u8 {
    ((value * 0.5 + 0.5).clamp(0.0, 1.0) * 255.0).round_ties_even() as u8
}
