//! `wgvae compare-tiling`.

use std::path::{Path, PathBuf};

use clap::Args;
use wgvae::images::PixelFormat;
use wgvae::tiling::TilingKind;
use wgvae::{Checkpoint, Control, DecodeOptions, Error, Latents, LoadOptions, Named, Progress, Result, Tiling};
use wgvae_media::image_file::{self, ImageFormat, encode_image};
use wgvae_media::part_file::check_writable;

use super::comparison::{Comparison, Cost, Row};
use super::difference::{measure, picture};
use super::interrupt::Interrupt;
use super::prepare::{DeviceArgs, ElementArgs, load, open_device};
use super::session::show_compiling;
use super::stderr::Phase;
use super::tiling::{TileArgs, kinds, tiling_json};
use super::{ModelArgs, in_file, latents};

#[derive(Debug, Args)]
pub(super) struct CompareTilingArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Latents of one image, `[1, c, h, w]` or `[c, h, w]`: f32, f16 or bf16 in .safetensors or
    /// .latent, f32 or f16 in .npy
    #[arg(long, value_name = "FILE")]
    latents: PathBuf,
    /// Picture of the difference to write (.png, .jpg or .webp); mid grey where there is none
    ///
    /// It shows colours only. The numbers also measure the opacity of a model that has it.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Tilings to compare with `exact`, which is always decoded
    #[arg(long, value_parser = kinds(), value_delimiter = ',', default_values = TilingKind::all().map(TilingKind::name))]
    tilings: Vec<TilingKind>,
    #[command(flatten)]
    tiles: TileArgs,
    /// Factor by which the picture enlarges a difference
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=255))]
    amplify: u32,
    /// Name of the tensor in a .safetensors file of latents [default: latents, or else ComfyUI's
    /// `latent_tensor`]
    #[arg(long, value_name = "NAME")]
    tensor: Option<String>,
    /// Take the latents as the VAE's own, already divided by the scaling factor
    #[arg(long)]
    unscaled: bool,
    #[command(flatten)]
    elements: ElementArgs,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print the facts as JSON
    #[arg(long)]
    json: bool,
}

/// Decodes exactly and with each tiling, each time on a fresh device, so that every peak belongs to
/// one decode.
pub(super) async fn run(args: &CompareTilingArgs) -> Result<String> {
    let interrupt = Interrupt::install();
    let latents = latents::read(&args.latents, args.tensor.as_deref()).await?;
    let latents = if args.unscaled { latents::as_unscaled(latents, &args.latents) } else { latents };
    let format = ImageFormat::from_path(&args.output)?;
    let tilings = args.compared()?;
    let files = files(&args.output, &tilings);
    files.iter().try_for_each(|file| check_writable(file))?;
    let checkpoint = args.model.open().await?;
    args.check(&latents, &checkpoint)?;
    let config = checkpoint.config();
    let image = config.image_size(latents.size(), latents.space(config));
    format.check_size(&args.output, image)?;
    let blends: Result<Vec<Tiling>> =
        tilings.iter().map(|&name| args.tiles.compared(name, checkpoint.config())).collect();
    let blends = blends?;

    let mut rows = Vec::new();
    let mut written = Vec::new();
    let exact = args.decode(&checkpoint, &latents, Tiling::Exact, &interrupt).await?;
    rows.push(Row { cost: exact.cost, difference: None, file: None });
    for (tiling, file) in blends.into_iter().zip(files) {
        let decode = args.decode(&checkpoint, &latents, tiling, &interrupt).await?;
        let shown = picture(&decode.pixels, &exact.pixels, image, args.amplify);
        written.push((file.clone(), encode_image(format, &image_file::Pixels { size: image, data: &shown })?));
        let difference = Some(measure(&decode.pixels, &exact.pixels));
        rows.push(Row { cost: decode.cost, difference, file: Some(file) });
    }
    interrupt.write_all(&written)?;
    let comparison = Comparison { image, amplify: args.amplify, adapter: exact.adapter, rows };
    Ok(if args.json { super::to_json(&comparison.to_json()) } else { comparison.to_text() })
}

/// Result of one decode: floats `[c, h, w]`, the adapter, time and memory.
#[derive(Debug)]
struct Decode {
    pixels: Vec<f32>,
    adapter: String,
    cost: Cost,
}

impl CompareTilingArgs {
    /// Returns the tilings to compare with `exact`, without duplicates.
    fn compared(&self) -> Result<Vec<TilingKind>> {
        let mut tilings: Vec<TilingKind> = Vec::new();
        for &tiling in self.tilings.iter().filter(|tiling| **tiling != TilingKind::Exact) {
            if !tilings.contains(&tiling) {
                tilings.push(tiling);
            }
        }
        if tilings.is_empty() {
            return Err(Error::input("--tilings", "at least one of blend, cosine, estimate", "only exact"));
        }
        Ok(tilings)
    }

    /// Checks that the latents are one image's and that the model can decode them.
    fn check(&self, latents: &Latents, checkpoint: &Checkpoint) -> Result<()> {
        let what = || format!("latents in {}", self.latents.display());
        if latents.count() != 1 {
            return Err(Error::input(what(), "one image", format!("{} images", latents.count())));
        }
        let fits = latents.check_channels(checkpoint.config());
        fits.map_err(|error| in_file(error, self.latents.display()))?;
        checkpoint.check_decoder()?;
        checkpoint.check_space(latents.space(checkpoint.config()))
    }

    async fn decode(
        &self,
        checkpoint: &Checkpoint,
        latents: &Latents,
        tiling: Tiling,
        interrupt: &Interrupt,
    ) -> Result<Decode> {
        let device = open_device(&self.device, &self.elements).await?;
        let options = DecodeOptions { tiling, ..DecodeOptions::default() };
        let request = options.request(latents.size(), latents.space(checkpoint.config()), PixelFormat::Raw);
        let wanted = LoadOptions::for_request(&request, self.elements.precision);
        let mut vae = load(&device, checkpoint, wanted).await?;
        let predicted = vae.planner().plan(&request)?.peak();
        let phase = Phase::begin("decode");
        let bar = phase.bar();
        show_compiling(&device, bar.clone());
        let mut show = |progress: Progress<'_>| bar.show(progress.done, progress.total, progress.stage);
        let mut control = Control { progress: Some(&mut show), cancel: Some(interrupt.cancel()), ..Control::default() };
        let decoded = vae.decode_raw(latents, &options, &mut control).await?;
        phase.end();
        let cost = Cost {
            tiling: tiling_json(tiling, checkpoint.config(), latents.size()),
            seconds: decoded.run.seconds,
            predicted,
            measured: device.ledger().peak(),
        };
        Ok(Decode { pixels: decoded.pixels, adapter: device.adapter().name.clone(), cost })
    }
}

/// Returns the names of the pictures. With several tilings, each name ends in its tiling's.
fn files(output: &Path, tilings: &[TilingKind]) -> Vec<PathBuf> {
    if let [_] = tilings {
        return vec![output.to_owned()];
    }
    let named = |tiling: &TilingKind| {
        let mut name = output.file_stem().unwrap_or_default().to_owned();
        name.push(format!("-{}.", tiling.name()));
        name.push(output.extension().unwrap_or_default());
        output.with_file_name(name)
    };
    tilings.iter().map(named).collect()
}
