//! `wgvae view`: shows latents as a picture in the terminal.

mod blocks;
mod escapes;
mod family;
mod frame;
mod resize;
mod terminal;

use std::path::{Path, PathBuf};

use clap::Args;
use wgvae::files::ByteSource;
use wgvae::images::PixelFormat;
use wgvae::preview::{Preview, preview};
use wgvae::{DecodeOptions, Error, Latents, LoadOptions, Result};

use self::family::family_of;
use self::frame::Frame;
use self::terminal::{ProtocolArg, Terminal};
use super::interrupt::Interrupt;
use super::prepare::{DeviceArgs, ElementArgs, load, open_device};
use super::session::Session;
use super::stderr::say;
use super::{BorderOption, VariantArg, in_file, latents, open};

#[derive(Debug, Args)]
pub(super) struct ViewArgs {
    /// Latents `[n, c, h, w]` or `[c, h, w]`, or of a clip `[1, c, t, h, w]`; - reads them from
    /// stdin
    ///
    /// They are as the diffusion model leaves them, or the VAE's own if the file says so.
    ///
    /// Files: f32, f16 or bf16 in .safetensors or .latent (ComfyUI's), f32 or f16 in .npy.
    #[arg(value_name = "LATENTS")]
    latents: PathBuf,
    /// Published model that the latents belong to: sd15, sdxl, sd3, flux1, flux2, wan21 and others
    /// [default: as the file says, or else the first with this number of channels]
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    /// Decode with this model, such as a tiny autoencoder, instead of a linear map: .safetensors
    /// file, folder, or hf:owner/name of the Hugging Face Hub
    #[arg(long, value_name = "PATH")]
    model: Option<PathBuf>,
    #[command(flatten)]
    border: BorderOption,
    /// Weight files to take, such as fp16
    #[arg(long, value_enum, requires = "model")]
    variant: Option<VariantArg>,
    /// Most pixels of the longer side; more latents than that are averaged
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..))]
    preview: u32,
    /// Image of a batch, or frame of a clip's latents, counted from 1
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    index: u32,
    /// Most columns of the terminal to draw on [default: all]
    #[arg(long, value_name = "COLUMNS", value_parser = clap::value_parser!(u32).range(1..))]
    width: Option<u32>,
    /// How to draw; auto: by the environment variables that terminals set, else half blocks
    #[arg(long, value_enum, default_value_t = ProtocolArg::Auto)]
    protocol: ProtocolArg,
    /// Name of the tensor in a .safetensors file of latents [default: latents, or else ComfyUI's
    /// `latent_tensor`]
    #[arg(long, value_name = "NAME")]
    tensor: Option<String>,
    /// Take the latents as the VAE's own, already divided by the scaling factor; ComfyUI's .latent
    /// files need no option
    #[arg(long)]
    unscaled: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

/// A picture to draw, and what it shows.
struct Shown {
    picture: Preview,
    text: String,
}

/// Makes a small picture of the latents, says what it is, and draws it.
pub(super) async fn run(args: &ViewArgs) -> Result<String> {
    let terminal = Terminal::open(args.protocol, args.width)?;
    let interrupt = Interrupt::install();
    let source = latents::open(&args.latents, args.tensor.as_deref())?;
    let frame = args.frame(&*source).await?;
    let shown = match &args.model {
        None => args.map(&*source, &frame).await?,
        Some(model) => args.decode(model, &frame.latents, &interrupt).await?,
    };
    say(&format!(
        "{}: {}{} latents, {}, {} pixels",
        source.name(),
        frame.place,
        frame.latents.size(),
        shown.text,
        shown.picture.size
    ));
    terminal.draw(&shown.picture)?;
    Ok(String::new())
}

impl ViewArgs {
    /// Reads the image or the frame that `--index` chooses.
    async fn frame(&self, source: &dyn ByteSource) -> Result<Frame> {
        let mut frame = Frame::read(source, self.tensor.as_deref(), self.index).await?;
        if self.unscaled {
            frame.latents = latents::as_unscaled(frame.latents, &self.latents);
        }
        Ok(frame)
    }

    /// Makes a picture by the linear map of a family.
    async fn map(&self, source: &dyn ByteSource, frame: &Frame) -> Result<Shown> {
        if self.border.border.is_some() {
            return Err(Error::input("--border", "--model beside it: a linear map has no borders", "no --model"));
        }
        let family = family_of(source, self.family.as_deref(), frame).await?;
        let picture = preview(&frame.latents, &family.name, self.preview).map_err(|error| self.named(error))?;
        Ok(Shown { picture, text: format!("linear preview of {}{}", family.name, family.why) })
    }

    /// Decodes `latents`, made smaller, with `model`.
    async fn decode(&self, model: &Path, latents: &Latents, interrupt: &Interrupt) -> Result<Shown> {
        let checkpoint = self.border.set(open(model, self.family.as_deref(), self.variant).await?)?;
        let config = checkpoint.config();
        checkpoint.check_decoder()?;
        let small = latents.reduced(config, self.preview).map_err(|error| self.named(error))?;
        let space = small.space(config);
        checkpoint.check_space(space)?;
        let size = config.image_size(small.size(), space);

        let device = open_device(&self.device, &ElementArgs::AUTO).await?;
        let options = DecodeOptions::default();
        let request = options.request(small.size(), space, PixelFormat::Rgba8);
        let mut vae =
            load(&device, &checkpoint, LoadOptions::for_request(&request, ElementArgs::AUTO.precision)).await?;
        let mut session = Session::new("decode", &device, interrupt, Some(1));
        let pixels = session.decode_whole(&mut vae, &small, &options).await?;
        session.finish();
        let picture = Preview { size, pixels };
        Ok(Shown { picture, text: format!("decoded by {}", model.display()) })
    }

    /// Adds the flag or the file that caused it to an error about the latents.
    fn named(&self, error: Error) -> Error {
        match error {
            Error::Input { what, expected, found } if what.starts_with("family") => {
                Error::input("--family", expected, found)
            }
            Error::Input { what, expected, found } if what.starts_with("longest side") => {
                Error::input("--preview", expected, found)
            }
            other => in_file(other, self.latents.display()),
        }
    }
}
