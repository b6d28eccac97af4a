//! One measurement, in a process of its own: what it took is then that of this decode or encode
//! alone, and a driver that crashes takes nothing else with it. The parent sends a [`Request`] as
//! an argument and reads an [`Answer`] from stdout.

use std::time::Instant;

use clap::Args;
use serde::{Deserialize, Serialize};
use wgvae::report::{Adapter, Measured};
use wgvae::{
    AdapterReport, Bytes, Control, DecodeOptions, DeviceError, EncodeOptions, Error, Gpu, GpuOptions, HostTensor,
    Images, Latents, LoadOptions, Result, RunReport, Size, Vae,
};

use super::made_up::unit;
use super::model::Model;
use crate::cli::PrecisionArg;
use crate::cli::clips::parts;
use crate::cli::task::{Task, directions};

/// How large made-up latents are: about as large as a VAE's own.
const LATENTS: f32 = 1.5;

/// How large made-up pixels are: of -1 to 1.
const PIXELS: f32 = 1.0;

/// What a child process is to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// List the adapters that this means, or all.
    Adapters(Option<String>),
    /// Run this once and say what that took.
    Measure(Job),
}

/// One decode or encode.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Job {
    /// Number of the adapter, as listed.
    pub(super) adapter: usize,
    /// Model, as given on the command line.
    pub(super) model: String,
    /// What to do, of which size.
    pub(super) task: Task,
    /// Pictures of the clip; 1: an image.
    pub(super) frames: u64,
    /// Precision, as given on the command line.
    pub(super) precision: PrecisionArg,
    /// Memory budget.
    pub(super) budget: Option<Bytes>,
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// The adapters and their numbers.
    Adapters(Vec<(usize, Adapter)>),
    /// There is none, for this reason.
    NoAdapter(String),
    /// What it took.
    Measured(Measured),
    /// Why it failed.
    Failed(String),
}

/// Arguments of the hidden command that runs in the child process.
#[derive(Debug, Args)]
pub(in crate::cli) struct JobArgs {
    /// A request, as JSON
    request: String,
}

/// Does what was asked for.
pub(in crate::cli) async fn run(args: &JobArgs) -> Result<String> {
    let request: Request = serde_json::from_str(&args.request)
        .map_err(|error| Error::Format { file: "request".to_owned(), problem: error.to_string() })?;
    let answer = match request {
        Request::Adapters(wanted) => match wgvae::adapters(wanted.as_deref()).await {
            Ok(found) => Answer::Adapters(found.iter().map(|(index, report)| (*index, adapter(report))).collect()),
            Err(Error::Device(DeviceError::NoAdapter(reason))) => Answer::NoAdapter(reason),
            Err(error) => Answer::Failed(error.to_string()),
        },
        Request::Measure(job) => match measure(&job).await {
            Ok(measured) => Answer::Measured(measured),
            Err(error) => Answer::Failed(error.to_string()),
        },
    };
    serde_json::to_string(&answer)
        .map_err(|error| Error::Format { file: "answer".to_owned(), problem: error.to_string() })
}

/// Loads the model and runs it once.
async fn measure(job: &Job) -> Result<Measured> {
    let checkpoint = Model::find(&job.model)?.open().await?;
    let gpu = Gpu::request(&GpuOptions { adapter: Some(job.adapter.to_string()), ..GpuOptions::default() }).await?;
    let is_clip = job.frames > 1;
    let load = LoadOptions {
        directions: directions(job.task.operation()),
        precision: job.precision.into(),
        // What latents mean changes nothing of what a decode takes.
        unscaled: checkpoint.config().takes_own_latents(),
        weights_on_host: job.budget.is_some(),
        clips: is_clip,
    };
    let mut vae = Vae::load(&gpu, &checkpoint, load).await?;
    match job.task {
        Task::Decode(latents) if is_clip => decode_clip(&gpu, &mut vae, latents, job).await,
        Task::Encode(image) if is_clip => encode_clip(&gpu, &mut vae, image, job).await,
        Task::Decode(latents) => decode(&gpu, &mut vae, latents, job.budget).await,
        Task::Encode(image) => encode(&gpu, &mut vae, image, job.budget).await,
    }
}

/// Seconds to prepare, and to run.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    prepare: f64,
    run: f64,
}

impl Times {
    /// Adds what was done since `start`, of which a run was one part.
    fn add(&mut self, start: Instant, run: &RunReport) {
        self.run += run.seconds;
        self.prepare += start.elapsed().as_secs_f64() - run.seconds;
    }
}

/// What a run has taken. To be asked while its buffers exist: the allocator is asked now.
fn measured(gpu: &Gpu, vae: &Vae, times: Times) -> Measured {
    let allocator = gpu.allocator_bytes();
    Measured {
        ledger_peak: gpu.ledger().peak(),
        allocator_allocated: allocator.map(|(allocated, _)| Bytes(allocated)),
        allocator_reserved: allocator.map(|(_, reserved)| Bytes(reserved)),
        peak_rss: peak_rss(),
        load_seconds: vae.load_seconds(),
        prepare_seconds: times.prepare,
        seconds: times.run,
    }
}

/// Decodes latents of this size.
async fn decode(gpu: &Gpu, vae: &mut Vae, size: Size, memory_budget: Option<Bytes>) -> Result<Measured> {
    let latents = Latents::new(made_up(1, vae.config().latent_channels, size, LATENTS))?;
    let options = DecodeOptions { memory_budget, ..DecodeOptions::default() };
    let start = Instant::now();
    vae.prepare(size, &options).await?;
    let prepare = start.elapsed().as_secs_f64();
    let decoded = vae.decode(&latents, 0, &options, &mut Control::default()).await?;
    Ok(measured(gpu, vae, Times { prepare, run: decoded.run.seconds }))
}

/// Encodes an image of this size.
async fn encode(gpu: &Gpu, vae: &mut Vae, size: Size, memory_budget: Option<Bytes>) -> Result<Measured> {
    let images = Images::new(made_up(1, vae.config().in_channels, size, PIXELS))?;
    let options = EncodeOptions { memory_budget, ..EncodeOptions::default() };
    let start = Instant::now();
    vae.prepare_encode(size, &options).await?;
    let prepare = start.elapsed().as_secs_f64();
    let encoded = vae.encode(&images, 0, &options, &mut Control::default()).await?;
    Ok(measured(gpu, vae, Times { prepare, run: encoded.run.seconds }))
}

/// Decodes a clip of latents of this size, the same in each frame. Its pictures are thrown away as
/// they come.
async fn decode_clip(gpu: &Gpu, vae: &mut Vae, size: Size, job: &Job) -> Result<Measured> {
    let (parts, channels) = (parts(vae.config(), job.frames)?, vae.config().latent_channels);
    let latents = Latents::new(made_up(1, channels, size, LATENTS))?.unscaled();
    let options = DecodeOptions { memory_budget: job.budget, ..DecodeOptions::default() };
    let start = Instant::now();
    let mut clip = vae.decode_clip(size, true, &options).await?;
    let mut times = Times { prepare: start.elapsed().as_secs_f64(), ..Times::default() };
    for _ in 0..parts {
        let start = Instant::now();
        times.add(start, &clip.decode(&latents, 0, &mut Control::default(), &mut |_| Ok(())).await?);
    }
    Ok(measured(gpu, clip.vae(), times))
}

/// Encodes a clip of pictures of this size.
async fn encode_clip(gpu: &Gpu, vae: &mut Vae, size: Size, job: &Job) -> Result<Measured> {
    let (parts, channels) = (parts(vae.config(), job.frames)?, vae.config().in_channels);
    let options = EncodeOptions { memory_budget: job.budget, ..EncodeOptions::default() };
    let start = Instant::now();
    let mut clip = vae.encode_clip(size, &options).await?;
    let mut times = Times { prepare: start.elapsed().as_secs_f64(), ..Times::default() };
    for _ in 0..parts {
        let images = Images::new(made_up(clip.wants(), channels, size, PIXELS))?;
        let start = Instant::now();
        times.add(start, &clip.encode(&images, &mut Control::default()).await?.1);
    }
    Ok(measured(gpu, clip.vae(), times))
}

/// Made-up values of up to `scale` more or less than 0, for one run.
fn made_up(count: u32, channels: u32, size: Size, scale: f32) -> HostTensor {
    let shape = vec![count as usize, channels as usize, size.height as usize, size.width as usize];
    let elements: usize = shape.iter().product();
    HostTensor { shape, data: (0..elements as u64).map(|index| scale * unit(index)).collect() }
}

/// The most memory that this process ever had resident, where the system tells: Linux.
fn peak_rss() -> Option<Bytes> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024).map(Bytes)
}

fn adapter(report: &AdapterReport) -> Adapter {
    Adapter {
        name: report.name.clone(),
        backend: report.backend.clone(),
        device_type: report.device_type.clone(),
        driver: report.driver.clone(),
        pci_id: report.pci_id.clone(),
        limits: report.limits.clone(),
    }
}
