//! `wgvae decode`.

mod clip;
mod folder;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use wgvae::config::AutoencoderConfig;
use wgvae::files::ByteSource;
use wgvae::tiling::TilingKind;
use wgvae::{Checkpoint, DecodeOptions, Error, Latents, LoadOptions, Named as _, Result, Tiling};
use wgvae_media::clip_files::{Bits, ClipName, Fps};

use super::interrupt::Interrupt;
use super::output::{BitDepthArg, FormatArg, OutputFiles};
use super::paths::{check_replaced, model_files};
use super::prepare::{BudgetArgs, DeviceArgs, ElementArgs, load, open_device};
use super::report::Report;
use super::session::Session;
use super::stderr::{note, timed};
use super::tiling::{TileArgs, kinds};
use super::{ModelArgs, by_name, in_file, latents, of_flag, stdio};

#[derive(Debug, Args)]
pub(super) struct DecodeArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Latents `[n, c, h, w]` or `[c, h, w]`, for a clip `[1, c, t, h, w]`; - reads them from stdin
    ///
    /// A model that is not for video makes one picture of each layer of `[n, c, layers, h, w]`.
    ///
    /// Files: f32, f16 or bf16 in .safetensors or .latent (ComfyUI's), f32 or f16 in .npy.
    ///
    /// A folder: all such files in it, with one load of the model. Their sizes may differ.
    #[arg(long, value_name = "FILE|FOLDER")]
    latents: PathBuf,
    /// Picture to write (.png, .jpg, .webp or .exr), or all floats before clamping (.npy or
    /// .safetensors); - writes to stdout
    ///
    /// .exr holds 32-bit floats, where the picture's 0 to 1 are not clamped. They are values as
    /// displayed (sRGB-encoded, not linear light), with straight alpha.
    ///
    /// The floats are `[n, 3, h, w]`, or `[n, 4, h, w]` for a model with opacity, in .safetensors
    /// the tensor `image`.
    ///
    /// .png and .webp keep opacity, as straight alpha; .jpg cannot.
    ///
    /// Several pictures get numbers: out.png becomes out-1.png and so on. See --format for stdout.
    ///
    /// For a folder of latents: a folder, where the pictures get the names of the latents; or a
    /// pattern, pictures/%s.webp for these names or pictures/%05d.webp for numbers.
    ///
    /// A clip is written as numbered pictures (frames/%05d.png), .y4m, - for y4m on stdout, .npy or
    /// .safetensors `[1, 3, t, h, w]`, or .mp4, .webm, .mov or .gif if ffmpeg is on the path.
    #[arg(short, long, value_name = "FILE|FOLDER")]
    output: PathBuf,
    /// Format on stdout, with -o -, or of the files in a folder [default: png; for a clip y4m]
    #[arg(long, value_parser = by_name::<FormatArg>())]
    format: Option<FormatArg>,
    /// Bits per channel of a .png picture [default: 8]
    ///
    /// 16 bits are rounded from the floats, half to even.
    #[arg(long, value_enum)]
    bit_depth: Option<BitDepthArg>,
    /// Name of the tensor in a .safetensors file of latents [default: latents, or else ComfyUI's
    /// `latent_tensor`]
    #[arg(long, value_name = "NAME")]
    tensor: Option<String>,
    /// Take the latents as the VAE's own, already divided by the scaling factor; ComfyUI's .latent
    /// files need no option
    #[arg(long)]
    unscaled: bool,
    #[command(flatten)]
    elements: ElementArgs,
    #[command(flatten)]
    budget: BudgetArgs,
    /// Decode whole, or in tiles to reproduce another tool's result
    #[arg(long, value_parser = kinds(), default_value = "exact")]
    tiling: TilingKind,
    #[command(flatten)]
    tiles: TileArgs,
    /// Decode a smaller picture, of at most N pixels a side, from means of latents: a preview
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    preview: Option<u32>,
    /// Decode one frame for each frame of a clip's latents: a cheaper preview, by models of TAEHV's
    /// family
    #[arg(long)]
    preview_rate: bool,
    /// Frames per second of a clip, such as 24, 29.97 or 30000/1001 [default: those of the encoded
    /// clip, if its .safetensors file names them, else 24]
    #[arg(long, value_name = "N")]
    fps: Option<Fps>,
    /// Bits per channel of a clip in .y4m or a video [default: 8; .mov: 10]
    #[arg(long, value_name = "8|10|12")]
    bits: Option<Bits>,
    #[command(flatten)]
    device: DeviceArgs,
    /// JSON report to write: the adapter, the plan, memory and the GPU time of each stage
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Times to decode every image; the reported `seconds` are the median of all
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Print the facts as JSON
    #[arg(long)]
    json: bool,
}

/// Checks everything that needs no GPU first, then loads the model, decodes, and writes.
pub(super) async fn run(args: &DecodeArgs) -> Result<String> {
    let interrupt = Interrupt::install();
    stdio::check_report(args.report.as_deref(), &args.output)?;
    if args.latents.is_dir() {
        return folder::run(args, &interrupt).await;
    }
    args.check_format()?;
    let source = latents::open(&args.latents, args.tensor.as_deref())?;
    let (name, opened) = args.clip(&*source).await?;
    if let Some(name) = name {
        return clip::run(args, &name, (source, opened), &interrupt).await;
    }
    args.check_image()?;
    let latents = timed("read latents", latents::from_source(&*source, args.tensor.as_deref())).await?;
    let mut files = OutputFiles::new(&args.output, args.format, args.bit_depth, latents.count())?;
    let checkpoint = args.checkpoint(opened).await?;
    args.check_paths(&checkpoint, std::slice::from_ref(&args.latents), &files.names)?;
    let latents = args.fitted(latents, &args.latents, checkpoint.config())?;
    if checkpoint.config().has_time() && latents.count() == latents.channels() {
        let text = "taken as images [n, c, h, w]; latents of a clip have the shape [1, c, t, h, w]";
        note(&args.latents, text);
    }
    checkpoint.check_decoder()?;
    files.say_lost_alpha(checkpoint.config().out_channels);
    let tiling = args.tiles.tiling(args.tiling, checkpoint.config())?;
    let space = latents.space(checkpoint.config());
    checkpoint.check_space(space)?;

    let device = open_device(&args.device, &args.elements).await?;
    let options = args.options(tiling);
    let request = options.request(latents.size(), space, files.format());
    let mut vae = load(&device, &checkpoint, LoadOptions::for_request(&request, args.elements.precision)).await?;
    let total = u64::from(latents.count()) * u64::from(args.repeat);
    let mut session = Session::new("decode", &device, &interrupt, Some(total));
    session.decode_all(&mut vae, &latents, &options, args.repeat, &mut files).await?;
    let report = Report::of_decode(&device, &mut vae, &request, &session.finish(), &files.names).await?;
    let mut written = files.finish();
    if let Some(path) = &args.report {
        let mut file = interrupt.begin(path)?;
        file.write_all(&report.to_bytes()).map_err(|error| file.error(error))?;
        written.push(file);
    }
    interrupt.write(written)?;
    Ok(report.show(args.json, stdio::is_meant(&args.output)))
}

impl DecodeArgs {
    /// Returns the output clip, if this is a decode of one: by the shape of the latents and the
    /// model, or by the name of the output. Also returns the model, if it had to be opened.
    async fn clip(&self, latents: &dyn ByteSource) -> Result<(Option<ClipName>, Option<Checkpoint>)> {
        if !latents::are_of_clip(latents, self.tensor.as_deref()).await {
            return Ok((self.clip_name(false)?, None));
        }
        // To a model that is not for video, frames are layers or images of their own.
        let checkpoint = self.model.open().await?;
        Ok((self.clip_name(checkpoint.config().has_time())?, Some(checkpoint)))
    }

    /// Returns the output clip, if the latents are of a clip or only a clip can have the output's
    /// name.
    fn clip_name(&self, is_clip: bool) -> Result<Option<ClipName>> {
        if stdio::is_meant(&self.output) {
            return match (is_clip, self.format) {
                (true, Some(other)) if other != FormatArg::Y4m => {
                    Err(Error::input("--format", "y4m for a clip on stdout", other.name()))
                }
                (true, _) | (false, Some(FormatArg::Y4m)) => Ok(Some(ClipName::Standard)),
                (false, _) => Ok(None),
            };
        }
        if is_clip {
            return ClipName::expect(&self.output, "--output, of latents of a clip").map(Some);
        }
        Ok(ClipName::of(&self.output)?.filter(ClipName::is_only_clip))
    }

    /// Returns the model: `opened`, or else opened now.
    async fn checkpoint(&self, opened: Option<Checkpoint>) -> Result<Checkpoint> {
        let checkpoint = match opened {
            Some(checkpoint) => checkpoint,
            None => self.model.open().await?,
        };
        if !self.preview_rate {
            return Ok(checkpoint);
        }
        checkpoint.at_preview_rate().map_err(|error| of_flag(error, "--preview-rate"))
    }

    /// Fails for stdout that is a terminal, and for a format if the output's name has an ending.
    fn check_format(&self) -> Result<()> {
        match self.format {
            _ if stdio::is_meant(&self.output) => stdio::check_no_terminal(),
            None => Ok(()),
            Some(format) => {
                let found = format!("{} with --output {}", format.name(), self.output.display());
                Err(Error::input("--format", "use with --output - (a file's ending decides its format)", found))
            }
        }
    }

    /// Fails for options that only clips have.
    fn check_image(&self) -> Result<()> {
        let given = [
            self.fps.map(|fps| ("--fps", format!("{fps} with "))),
            self.bits.map(|bits| ("--bits", format!("{} with ", bits.get()))),
            self.preview_rate.then(|| ("--preview-rate", String::new())),
        ];
        let Some((flag, found)) = given.into_iter().flatten().next() else { return Ok(()) };
        let expected = "latents of a clip [1, c, t, h, w]";
        Err(Error::input(flag, expected, format!("{found}images in {}", self.latents.display())))
    }

    /// Returns `latents` of the file at `path` as the flags say: in the VAE's own space, and made
    /// smaller for a preview.
    ///
    /// # Errors
    /// For latents that do not fit a model of this `config`.
    fn fitted(&self, latents: Latents, path: &Path, config: &AutoencoderConfig) -> Result<Latents> {
        let latents = if self.unscaled { latents::as_unscaled(latents, path) } else { latents };
        latents.check_channels(config).map_err(|error| in_file(error, path.display()))?;
        let Some(side) = self.preview else { return Ok(latents) };
        latents.reduced(config, side).map_err(|error| of_flag(error, "--preview"))
    }

    fn options(&self, tiling: Tiling) -> DecodeOptions {
        self.budget.decode(tiling, self.report.is_some())
    }

    /// Fails if an output file would replace one of the files of `latents`, another input, or
    /// another output. `outputs` are pictures or frames.
    fn check_paths(&self, checkpoint: &Checkpoint, latents: &[PathBuf], outputs: &[PathBuf]) -> Result<()> {
        let latents = latents.iter().map(|path| ("--latents", path.as_path()));
        let inputs: Vec<_> = model_files(checkpoint).chain(latents).collect();
        let mut outputs: Vec<_> = outputs.iter().map(|name| ("--output", name.as_path())).collect();
        outputs.extend(self.report.iter().map(|path| ("--report", path.as_path())));
        check_replaced(&inputs, &outputs)
    }
}
