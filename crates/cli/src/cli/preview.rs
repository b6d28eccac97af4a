//! `wgvae preview`.

use std::path::PathBuf;

use clap::Args;
use wgvae::Result;
use wgvae::images::{RowPixels, Rows};
use wgvae::preview::{Preview, preview};
use wgvae_media::image_file::ImageFormat;

use super::interrupt::Interrupt;
use super::output::OutputFiles;
use super::paths::check_replaced;
use super::{latents, stdio};

#[derive(Debug, Args)]
pub(super) struct PreviewArgs {
    /// Latents `[n, c, h, w]` or `[c, h, w]`; - reads them from stdin
    ///
    /// They are as the diffusion model leaves them, or the VAE's own if the file says so.
    ///
    /// Files: f32, f16 or bf16 in .safetensors or .latent (ComfyUI's), f32 or f16 in .npy.
    #[arg(long, value_name = "FILE")]
    latents: PathBuf,
    /// Published model that the latents belong to: sd15, sdxl, sd3, flux1, flux2, wan21 and others
    #[arg(long, value_name = "NAME")]
    family: String,
    /// Most pixels of the longer side; more latents than that are averaged
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    max_side: u32,
    /// Name of the tensor in a .safetensors file of latents [default: latents, or else ComfyUI's
    /// `latent_tensor`]
    #[arg(long, value_name = "NAME")]
    tensor: Option<String>,
    /// Picture to write: .png, .jpg or .webp; - writes PNG to stdout
    ///
    /// Several pictures get numbers: out.png becomes out-1.png and so on.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Reads the latents, makes a preview of each image, and writes the pictures.
pub(super) async fn run(args: &PreviewArgs) -> Result<String> {
    let (interrupt, to_stdout) = (Interrupt::install(), stdio::is_meant(&args.output));
    if to_stdout {
        stdio::check_no_terminal()?;
    } else {
        ImageFormat::from_path(&args.output)?;
    }
    let latents = latents::read(&args.latents, args.tensor.as_deref()).await?;
    let mut files = OutputFiles::new(&args.output, None, None, latents.count())?;
    let names = files.names.clone();
    let outputs: Vec<_> = names.iter().map(|name| ("--output", name.as_path())).collect();
    check_replaced(&[("--latents", args.latents.as_path())], &outputs)?;
    let mut lines = Vec::new();
    for (index, name) in (0..).zip(&names) {
        let Preview { size, pixels } = preview(latents.at(index), &args.family, args.max_side)?;
        let mut file = files.image(size, 3, &interrupt)?;
        file.add(&Rows { image: size, rows: 0..size.height, pixels: RowPixels::Rgba8(&pixels) })?;
        file.finish()?;
        lines.push(format!("{}: {size}, a linear map of the latents", name.display()));
    }
    interrupt.write(files.finish())?;
    Ok(if to_stdout { String::new() } else { lines.join("\n") })
}
