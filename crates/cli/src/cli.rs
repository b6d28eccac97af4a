//! The command line: its commands and arguments. The file of each command translates arguments for
//! the library, and the library's answer into text.

mod adapters;
mod clips;
mod compare_tiling;
mod comparison;
mod completions;
mod decode;
mod demo;
mod difference;
mod doctor;
mod encode;
mod folder;
mod hub;
mod images;
mod inspect;
mod interrupt;
mod latents;
mod latents_output;
mod man;
mod memory;
mod output;
mod output_names;
mod paths;
mod plan;
mod prepare;
mod preview;
mod report;
mod request;
mod roundtrip;
mod selftest;
mod session;
mod signals;
mod stderr;
mod stdio;
mod tally;
mod tiling;
mod tune;
mod tuned;
mod view;

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use wgvae::config::PaddingMode;
use wgvae::images::PixelFormat;
use wgvae::{Bytes, Error, Named, Parking, Precision, Result, Size};

use self::compare_tiling::CompareTilingArgs;
use self::prepare::DeviceArgs;
use self::stderr::timed;

pub(crate) use self::signals::exit_code;
pub(crate) use self::stderr::{Verbosity, complain, say};

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The text for stdout.
    pub(crate) text: String,
    /// True if the exit code reports a problem although the command itself succeeded.
    pub(crate) failed: bool,
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self { text, failed: false }
    }
}

/// Turns the latents of diffusion models into pictures, and pictures into latents, on any GPU or on
/// the CPU.
#[derive(Debug, Parser)]
#[command(
    name = "wgvae",
    version,
    propagate_version = true,
    max_term_width = 120,
    after_help = "\
Example:
  wgvae demo -o demo.png

Exit codes:
  0    done
  1    an error: its message is on stderr, and no file was written, except whole frames of a clip,
       the files of a folder that were done before, and pictures whose --report could not be
       written;
       for doctor: something is missing that every decode needs
  2    invalid arguments
  130  stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP; no file is half-written"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print only errors on stderr: no notes, no warnings, no progress
    #[arg(short, long, global = true, display_order = 1000, conflicts_with = "verbose")]
    quiet: bool,
    /// Print the time of each phase on stderr
    #[arg(short, long, global = true, display_order = 1001)]
    verbose: bool,
}

impl Cli {
    /// Returns how much the command prints on stderr beside the result.
    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        }
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Decode the embedded latents with the embedded model and write the picture
    #[command(after_help = "Example:\n  wgvae demo -o demo.png")]
    Demo(DemoArgs),
    /// Decode latents from a file
    #[command(after_help = "\
Examples:
  wgvae decode --model sd-vae-ft-mse --latents latents.safetensors -o picture.png
  wgvae decode --model pipeline/ --latents latents.npy -o raw.npy --limits webgpu-default --report report.json
  wgvae decode --model vae/ --latents folder/ -o pictures/
  wgvae decode --model vae/ --latents clip.safetensors -o frames/%05d.png
  wgvae decode --model vae/ --latents clip.npy -o - --fps 16 | ffplay -
  wgvae decode --model vae/ --latents - -o - --format webp < latents.safetensors > picture.webp

A folder's files are decoded one by one, in the order of their names, and written as they are done.
Clips are decoded part by part, in the memory of one part. With -o - a picture goes to stdout as PNG, or as --format says,
and frames of a clip as y4m. Reports then go to stderr. A terminal as stdout is an error.")]
    Decode(decode::DecodeArgs),
    /// Show roughly what latents hold: a pixel for each, by a published linear map; needs no
    /// weights and no GPU
    #[command(after_help = "\
Examples:
  wgvae preview --family sdxl --latents latents.safetensors -o preview.png
  wgvae decode --model taesdxl/ --latents latents.safetensors --preview 512 -o preview.png

The second one decodes means of latents with a tiny autoencoder: the colours are right, and the smaller the picture, the less detail is left.")]
    Preview(preview::PreviewArgs),
    /// Show latents as a small picture in the terminal
    #[command(after_help = "\
Examples:
  wgvae view latents.safetensors --family sdxl
  wgvae view clip.safetensors --family wan21 --index 3
  wgvae view latents.npy --model taesdxl/ --width 60

Without --model the picture is a published linear map of the latents: this needs no weights and no GPU. A line on stderr says what is shown.
Where stdout is no terminal, `wgvae preview` and `wgvae decode --preview` write the same pictures to files.")]
    View(view::ViewArgs),
    /// Encode pictures to latents
    #[command(after_help = "\
Examples:
  wgvae encode --model sd-vae-ft-mse --image photo.jpg -o latents.safetensors
  wgvae encode --model vae/ --image a.png b.png --resize 512x512 -o latents.npy --sample --seed 7
  wgvae encode --model vae/ --image photos/ -o latents/
  wgvae encode --model vae/ --image frames/%05d.png --pad repeat -o clip.safetensors
  wgvae encode --model vae/ --image - -o - < photo.png | wgvae decode --model vae/ --latents - -o - > again.png

A note on stderr says which properties of a file are not encoded as they are: transparency, grey, 16 bits, EXIF orientation,
a size that the model cannot have.
Clips are encoded part by part, in the memory of one part. Edges that do not fill a latent are dropped.")]
    Encode(encode::EncodeArgs),
    /// Encode a picture, decode it again, and print how much is lost
    #[command(after_help = "Example:\n  wgvae roundtrip photo.png --model sd-vae-ft-mse -o again.png")]
    Roundtrip(roundtrip::RoundtripArgs),
    /// Decode in tiles as other tools do, and print how far that is from the exact picture, and its
    /// cost
    #[command(after_help = "\
Examples:
  wgvae compare-tiling --model vae/ --latents latents.safetensors -o difference.png
  wgvae compare-tiling --model vae/ --latents latents.safetensors -o difference.png --tilings blend --tile-size 512 --amplify 64

With several tilings the pictures are named after them: difference-blend.png, difference-cosine.png.")]
    CompareTiling(CompareTilingArgs),
    /// Print what a model is and whether it can be used to decode, or which of its files would be
    /// downloaded; needs no GPU
    #[command(after_help = "\
Examples:
  wgvae inspect --model vae/diffusion_pytorch_model.safetensors
  wgvae inspect --model hf:stabilityai/sdxl-vae

For a model on the hub that is not in the cache yet, this lists the files that a decode would download. The cache, the token and the variables
HF_HOME, HF_HUB_CACHE, HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE are those of Hugging Face's own tools.")]
    Inspect(InspectArgs),
    /// Print what a decode or an encode would do and how much GPU memory it would take; needs no
    /// GPU
    #[command(after_help = "\
Examples:
  wgvae plan --family sd15 --size 1024x1024
  wgvae plan --model vae/ --size 512x768 --precision f32 --json
  wgvae plan --family sd15 --size 1024x1024 --budgets 256MiB,512MiB,768MiB --svg budgets.svg
  wgvae plan --family sd15 --size 1024x1024 --encode --memory-budget 256MiB
  wgvae plan --family wan21 --size 832x480 --frames 81

An encode is planned for the size as given. `wgvae encode` first brings pictures to a size that the model takes; it takes floats as they are.
A limits file is the \"limits\" object of one adapter in `wgvae adapters --json`, in a file of its own.")]
    Plan(PlanArgs),
    /// Measure memory and time of decodes or encodes on each adapter, or merge the results of
    /// several machines
    #[command(after_help = "\
Examples:
  wgvae memory -o report.json
  wgvae memory --models sd15,flux1 --sizes 512x512,1024x1024 --precisions f16 -o report.json --html report.html
  wgvae memory --encode --models sd15 --sizes 512x512 -o encodes.json
  wgvae memory --models wan21 --sizes 320x192 --frames 5,17,81 -o clips.json
  wgvae memory --merge results/*.json --html report.html

Each measurement runs in a process of its own. A measurement that fails becomes a row with its error. Models and sizes that take minutes
on a CPU driver take a second or two on a GPU.")]
    Memory(memory::MemoryArgs),
    /// Run one measurement of `memory` in a process of its own
    #[command(name = memory::JOB_COMMAND, hide = true)]
    MemoryJob(memory::JobArgs),
    /// List the adapters, best first, with their limits and the kernels they would use
    #[command(after_help = "Example:\n  wgvae adapters --json")]
    Adapters(AdaptersArgs),
    /// Check which parts of this machine can decode, what is missing, and how to get it: one line
    /// each
    #[command(after_help = "\
Example:
  wgvae doctor

Each line begins with ok, hint (optional, or an improvement), or missing (nothing can be decoded without it).
The exit code is 1 if anything is missing, and 0 otherwise. The command changes nothing and does not use the network.")]
    Doctor(doctor::DoctorArgs),
    /// Measure which kernels are fastest on an adapter, and remember them
    #[command(after_help = "\
Examples:
  wgvae tune
  wgvae tune --adapter llvmpipe --json

Every decode and encode on that adapter uses the kernels found, until its driver or wgvae changes; --no-tune ignores them.
All kernels give the same results to the bit.")]
    Tune(tune::TuneArgs),
    /// Decode embedded latents with every set of kernels, on any adapter, and compare with the
    /// result of diffusers
    #[command(after_help = "\
Example:
  wgvae selftest

The exit code is 1 if any result is wrong, and 0 otherwise.")]
    Selftest(selftest::SelftestArgs),
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  wgvae completions bash > ~/.local/share/bash-completion/completions/wgvae
  wgvae completions zsh > ~/.zfunc/_wgvae
  wgvae completions fish > ~/.config/fish/completions/wgvae.fish")]
    Completions(completions::CompletionsArgs),
    /// Print the manual page of this command, or write the pages of all its commands
    #[command(after_help = "\
Examples:
  wgvae man | man -l -
  wgvae man --out ~/.local/share/man/man1")]
    Man(man::ManArgs),
}

/// Runs the command.
pub(crate) async fn run(cli: Cli) -> Result<Answer> {
    let text = match cli.command {
        Command::Demo(args) => demo::run(&args).await,
        Command::Decode(args) => decode::run(&args).await,
        Command::Preview(args) => preview::run(&args).await,
        Command::View(args) => view::run(&args).await,
        Command::Encode(args) => encode::run(args).await,
        Command::Roundtrip(args) => roundtrip::run(&args).await,
        Command::CompareTiling(args) => compare_tiling::run(&args).await,
        Command::Inspect(args) => inspect::run(&args).await,
        Command::Plan(args) => plan::run(&args).await,
        Command::Memory(args) => memory::run(&args).await,
        Command::MemoryJob(args) => memory::run_job(&args).await,
        Command::Adapters(args) => adapters::run(&args).await,
        Command::Doctor(args) => return doctor::run(&args).await,
        Command::Tune(args) => tune::run(&args).await,
        Command::Selftest(args) => return selftest::run(&args).await,
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
    };
    text.map(Answer::from)
}

#[derive(Debug, Args)]
struct DemoArgs {
    /// Picture to write: .png, .jpg or .webp
    #[arg(short, long, value_name = "FILE", default_value = "demo.png")]
    output: PathBuf,
    #[command(flatten)]
    device: DeviceArgs,
    /// First decode on this machine's cores and on the best adapter, print time and memory of both,
    /// and fail if their pictures differ by more than one level
    #[arg(long, conflicts_with_all = ["json", "device", "threads", "adapter"])]
    both: bool,
    /// Print the facts as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct InspectArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Print the facts as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("network").args(["model", "family"]).required(true).multiple(true)))]
struct PlanArgs {
    /// Model: .safetensors file, diffusers VAE folder, pipeline folder, or hf:owner/name of the
    /// Hugging Face Hub
    #[arg(long, value_name = "PATH")]
    model: Option<PathBuf>,
    /// Published model instead of a file: sd15, sdxl, sd3, flux1 and others
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    #[command(flatten)]
    border: BorderOption,
    /// Weight files to take, such as fp16
    #[arg(long, value_enum, requires = "model")]
    variant: Option<VariantArg>,
    /// Size of the picture in pixels
    #[arg(long, value_name = "WxH", value_parser = parse_size)]
    size: Size,
    /// Plan the encode of a picture of this size, not its decode
    #[arg(long, conflicts_with = "output")]
    encode: bool,
    /// Plan a clip of this many pictures, part by part: 1, 5, 9 and so on for most video models
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "budgets")]
    frames: Option<u64>,
    /// Plan for one frame for each frame of a clip's latents: a cheaper preview, by models of
    /// TAEHV's family
    #[arg(long, conflicts_with = "encode", requires = "frames")]
    preview_rate: bool,
    /// Plan a preview of at most N pixels a side: the linear map of a family that has one, or else
    /// a decode of fewer latents
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["encode", "frames"])]
    preview: Option<u32>,
    /// Most GPU memory to use, such as 512MiB
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    memory_budget: Option<Bytes>,
    /// Take less memory and more time, for TAESD, Qwen-Image, Wan and their like; no effect on
    /// other models
    #[arg(long)]
    least_memory: bool,
    /// Move data that exceeds the budget to host memory; auto: yes, but not on an adapter that
    /// shares the host's memory
    #[arg(long, value_parser = by_name::<Parking>(), default_value = "auto")]
    parking: Parking,
    /// Plan for each of these memory budgets and compare them with the plan without a budget,
    /// instead of showing one plan
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_bytes, conflicts_with = "memory_budget")]
    budgets: Vec<Bytes>,
    /// Chart of the cost of each budget to write: .svg
    #[arg(long, value_name = "FILE", requires = "budgets")]
    svg: Option<PathBuf>,
    /// Element type of weights and activations; auto is f16, or f32 for the CPU; fast is f16 with
    /// less memory traffic and a few times its error
    #[arg(long, value_parser = by_name::<Precision>(), default_value = "auto")]
    precision: Precision,
    /// Output: a picture, or floats before clamping
    #[arg(long, value_parser = by_name::<PixelFormat>(), default_value = "rgba8")]
    output: PixelFormat,
    /// Limits to use: webgpu-default, assumed to have `shader-f16` (see --packed); cpu, for the
    /// cores of a machine (--device cpu); or a JSON file
    #[arg(long, value_name = "webgpu-default|cpu|FILE", default_value = "webgpu-default")]
    limits: String,
    /// Plan for a device without `shader-f16`, where halves are packed in pairs
    #[arg(long)]
    packed: bool,
    /// Plan for the limits of an adapter of this machine: part of its name, or its index in `wgvae
    /// adapters`
    #[arg(long, value_name = "NAME|INDEX", conflicts_with = "limits")]
    adapter: Option<String>,
    /// Print the facts as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct AdaptersArgs {
    /// List only adapters with this in their name, driver or backend
    #[arg(long, value_name = "NAME")]
    adapter: Option<String>,
    /// Print the facts as JSON
    #[arg(long)]
    json: bool,
}

/// The model, for commands that need its files.
#[derive(Debug, Args)]
struct ModelArgs {
    /// Model: .safetensors file, diffusers VAE folder, pipeline folder, or hf:owner/name[/folder or
    /// file][@revision] of the Hugging Face Hub
    #[arg(long, value_name = "PATH")]
    model: PathBuf,
    /// Published model that the weights belong to, if the files do not say: sd15, sdxl, sd3, flux1
    /// and others
    #[arg(long, value_name = "NAME")]
    family: Option<String>,
    #[command(flatten)]
    border: BorderOption,
    /// Weight files to take, such as fp16
    #[arg(long, value_enum)]
    variant: Option<VariantArg>,
}

impl ModelArgs {
    async fn open(&self) -> Result<wgvae::Checkpoint> {
        self.border.set(open(&self.model, self.family.as_deref(), self.variant).await?)
    }
}

/// Pixels that convolutions see beyond the borders of their input.
#[derive(Debug, Clone, Copy, Args)]
struct BorderOption {
    /// Pixels beyond a picture's borders, as torch's `padding_mode`, for `AutoencoderKL` and its
    /// kind: reflect for EQ-SDXL-VAE, circular for seamless textures [default: as the files say, or
    /// else zeros]
    #[arg(long, value_parser = by_name::<PaddingMode>(), value_name = "MODE")]
    border: Option<PaddingMode>,
}

impl BorderOption {
    /// Sets the borders of a model, if they are given.
    fn set(self, checkpoint: wgvae::Checkpoint) -> Result<wgvae::Checkpoint> {
        match self.border {
            None => Ok(checkpoint),
            Some(mode) => checkpoint.with_border(mode).map_err(|error| of_flag(error, "--border")),
        }
    }
}

async fn open(model: &Path, family: Option<&str>, variant: Option<VariantArg>) -> Result<wgvae::Checkpoint> {
    let local = hub::local(model, VariantArg::variant(variant))?;
    open_local(local, family, variant).await
}

/// Opens a model whose files are on this machine.
async fn open_local(model: PathBuf, family: Option<&str>, variant: Option<VariantArg>) -> Result<wgvae::Checkpoint> {
    let checkpoint = timed("open model", wgvae::Checkpoint::open_variant(model, VariantArg::variant(variant))).await?;
    match family {
        None => Ok(checkpoint),
        Some(family) => checkpoint.with_family(family),
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum VariantArg {
    Fp16,
}

impl VariantArg {
    /// Returns the weight files that an optional argument asks for.
    fn variant(arg: Option<Self>) -> wgvae::files::Variant {
        match arg {
            None => wgvae::files::Variant::Default,
            Some(Self::Fp16) => wgvae::files::Variant::Fp16,
        }
    }
}

/// Returns the parser of the names of values.
fn by_name<T: Named + Send + Sync>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::NAMES.iter().map(|(name, _)| *name)).try_map(|name| T::named(&name))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DecodeLimits {
    Device,
    WebgpuDefault,
}

fn parse_bytes(text: &str) -> std::result::Result<Bytes, String> {
    match parse_size::parse_size(text) {
        Ok(0) => Err("expected at least 1 byte".to_owned()),
        Ok(bytes) => Ok(Bytes(bytes)),
        Err(error) => Err(format!("expected bytes, such as 512MiB or 1.5GB: {error}")),
    }
}

fn parse_size(text: &str) -> std::result::Result<Size, String> {
    let parse = || {
        let (width, height) = text.split_once(['x', 'X'])?;
        Some(Size { width: width.parse().ok()?, height: height.parse().ok()? })
    };
    parse().ok_or_else(|| "expected WIDTHxHEIGHT in pixels, such as 512x768".to_owned())
}

/// Adds the name of a file to an error about its content.
fn in_file(error: Error, file: impl std::fmt::Display) -> Error {
    error.renamed(|what| format!("{what} in {file}"))
}

/// Names the flag in an error about its value.
fn of_flag(error: Error, flag: &str) -> Error {
    error.renamed(|_| flag.to_owned())
}

/// Formats JSON as the commands print it.
fn to_json(value: &serde_json::Value) -> String {
    format!("{value:#}")
}
