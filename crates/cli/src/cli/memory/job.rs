//! One measurement, in a process of its own: its memory then belongs to this decode or encode
//! alone, and a crash of the driver affects nothing else. The parent sends a [`Request`] as an
//! argument and reads an [`Answer`] from stdout.

use std::time::Instant;

use clap::Args;
use serde::{Deserialize, Serialize};
use wgvae::device::{Cpu, CpuOptions, DeviceError};
use wgvae::images::PixelFormat;
use wgvae::report::RunReport;
use wgvae::{
    Bytes, Control, DecodeOptions, Device, Direction, EncodeOptions, Error, Frames, Gpu, GpuOptions, HostTensor,
    Images, Latents, LoadOptions, Precision, Result, Size, Vae,
};
use wgvae_memory_report::{Adapter, Measured};

use super::made_up::unit;
use super::model::Model;
use crate::cli::clips::parts;

/// Largest absolute value of made-up latents, about as large as a VAE's own.
const LATENTS: f32 = 1.5;

/// Largest absolute value of made-up pixels, which range from -1 to 1.
const PIXELS: f32 = 1.0;

/// Request to a child process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// List the adapters that match this text, or all.
    Adapters(Option<String>),
    /// Describe the machine's own cores.
    Cores,
    /// Run this once and report its time and memory.
    Measure(Job),
}

/// One decode or encode to measure.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Job {
    /// Number of the adapter, as `wgvae adapters` lists it. `None` stands for the machine's own
    /// cores.
    pub(super) adapter: Option<usize>,
    /// Model, as given on the command line.
    pub(super) model: String,
    /// The decode or encode to run.
    pub(super) request: wgvae::Request,
    /// Frames of the clip; 1 for an image.
    pub(super) frames: u64,
    /// Precision, as given on the command line.
    pub(super) precision: Precision,
}

/// Answer of a child process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// Adapters with their numbers.
    Adapters(Vec<(usize, Adapter)>),
    /// The machine's own cores.
    Cores(Adapter),
    /// Reason why there is no adapter.
    NoAdapter(String),
    /// Time and memory of the run.
    Measured(Measured),
    /// Reason why the run failed.
    Failed(String),
}

/// Arguments of the hidden command that runs in the child process.
#[derive(Debug, Args)]
pub(in crate::cli) struct JobArgs {
    /// Request, as JSON
    request: String,
}

/// Carries out the request and returns the answer as JSON.
pub(in crate::cli) async fn run(args: &JobArgs) -> Result<String> {
    let request: Request = serde_json::from_str(&args.request).map_err(|error| Error::format("request", error))?;
    let answer = match request {
        Request::Adapters(wanted) => match wgvae::device::adapters(wanted.as_deref()).await {
            Ok(found) => Answer::Adapters(found.iter().map(|(index, report)| (*index, report.into())).collect()),
            Err(Error::Device(DeviceError::NoAdapter(reason))) => Answer::NoAdapter(reason),
            Err(error) => Answer::Failed(error.to_string()),
        },
        Request::Cores => match Cpu::new(&CpuOptions::default()) {
            Ok(cpu) => Answer::Cores(cpu.adapter().into()),
            Err(error) => Answer::Failed(error.to_string()),
        },
        Request::Measure(job) => match measure(&job).await {
            Ok(measured) => Answer::Measured(measured),
            Err(error) => Answer::Failed(error.to_string()),
        },
    };
    serde_json::to_string(&answer).map_err(|error| Error::format("answer", error))
}

/// Loads the model and runs it once.
async fn measure(job: &Job) -> Result<Measured> {
    let checkpoint = Model::find(&job.model)?.open().await?;
    let device = match job.adapter {
        None => Device::Cpu(Cpu::new(&CpuOptions::default())?),
        Some(number) => {
            let options = GpuOptions { adapter: Some(number.to_string()), ..GpuOptions::default() };
            Device::Gpu(Gpu::request(&options).await?)
        }
    };
    let request = &job.request;
    let mut vae = Vae::load(&device, &checkpoint, LoadOptions::for_request(request, job.precision)).await?;
    match (request.direction, request.frames) {
        (Direction::Decode, Frames::Image) => decode(&device, &mut vae, request).await,
        (Direction::Encode, Frames::Image) => encode(&device, &mut vae, request).await,
        (Direction::Decode, Frames::Clip) => decode_clip(&device, &mut vae, job).await,
        (Direction::Encode, Frames::Clip) => encode_clip(&device, &mut vae, job).await,
    }
}

/// Seconds spent on preparing and on running.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    prepare: f64,
    run: f64,
}

impl Times {
    /// Adds the time since `start`, of which `run` was one part and the rest preparation.
    fn add(&mut self, start: Instant, run: &RunReport) {
        self.run += run.seconds;
        self.prepare += start.elapsed().as_secs_f64() - run.seconds;
    }
}

/// Returns time and memory of a run. Call it while the run's buffers exist, because it reads the
/// allocator's counters.
fn measured(device: &Device, vae: &Vae, times: Times) -> Measured {
    let allocator = device.allocator_bytes();
    Measured {
        ledger_peak: device.ledger().peak(),
        allocator_allocated: allocator.map(|(allocated, _)| Bytes(allocated)),
        allocator_reserved: allocator.map(|(_, reserved)| Bytes(reserved)),
        peak_rss: peak_rss(),
        load_seconds: vae.load_seconds(),
        prepare_seconds: times.prepare,
        seconds: times.run,
    }
}

/// Decodes made-up latents.
async fn decode(device: &Device, vae: &mut Vae, request: &wgvae::Request) -> Result<Measured> {
    let latents = made_up_latents(vae, request)?;
    let options = DecodeOptions { memory_budget: request.memory_budget, ..DecodeOptions::default() };
    let start = Instant::now();
    vae.prepare(request).await?;
    let prepare = start.elapsed().as_secs_f64();
    let decoded = vae.decode_with(&latents, &options, &mut Control::default()).await?;
    Ok(measured(device, vae, Times { prepare, run: decoded.run.seconds }))
}

/// Encodes a made-up image.
async fn encode(device: &Device, vae: &mut Vae, request: &wgvae::Request) -> Result<Measured> {
    let images = Images::new(made_up(1, vae.config().in_channels, request.size, PIXELS))?;
    let options = EncodeOptions { memory_budget: request.memory_budget, ..EncodeOptions::default() };
    let start = Instant::now();
    vae.prepare(request).await?;
    let prepare = start.elapsed().as_secs_f64();
    let encoded = vae.encode_with(&images, &options, &mut Control::default()).await?;
    Ok(measured(device, vae, Times { prepare, run: encoded.run.seconds }))
}

/// Decodes a clip of made-up latents, the same in each frame. Drops its pictures as they arrive.
async fn decode_clip(device: &Device, vae: &mut Vae, Job { request, frames, .. }: &Job) -> Result<Measured> {
    let (parts, latents) = (parts(vae.config(), request.direction, *frames)?, made_up_latents(vae, request)?);
    let &wgvae::Request { memory_budget, clip_latents, .. } = request;
    let options = DecodeOptions { memory_budget, clip_latents, ..DecodeOptions::default() };
    let start = Instant::now();
    let mut clip = vae.decode_clip(request.size, request.latents, PixelFormat::Rgba8, &options).await?;
    let mut times = Times { prepare: start.elapsed().as_secs_f64(), ..Times::default() };
    for _ in 0..parts {
        let start = Instant::now();
        times.add(start, &clip.decode(&latents, &mut Control::default(), &mut |_| Ok(())).await?.0);
    }
    let mut start = Instant::now();
    while let Some((run, _)) = clip.finish(&mut Control::default(), &mut |_| Ok(())).await? {
        times.add(start, &run);
        start = Instant::now();
    }
    Ok(measured(device, clip.vae(), times))
}

/// Encodes a clip of made-up pictures.
async fn encode_clip(device: &Device, vae: &mut Vae, Job { request, frames, .. }: &Job) -> Result<Measured> {
    let (parts, channels) = (parts(vae.config(), request.direction, *frames)?, vae.config().in_channels);
    let &wgvae::Request { memory_budget, clip_latents, .. } = request;
    let options = EncodeOptions { memory_budget, clip_latents, ..EncodeOptions::default() };
    let start = Instant::now();
    let mut clip = vae.encode_clip(request.size, &options).await?;
    let mut times = Times { prepare: start.elapsed().as_secs_f64(), ..Times::default() };
    for _ in 0..parts {
        let images = Images::new(made_up(clip.wants(), channels, request.size, PIXELS))?;
        let start = Instant::now();
        times.add(start, &clip.encode(&images, &mut Control::default()).await?.run);
    }
    Ok(measured(device, clip.vae(), times))
}

/// Returns made-up latents of the size and in the space that `request` has.
fn made_up_latents(vae: &Vae, request: &wgvae::Request) -> Result<Latents> {
    let channels = vae.config().channels(request.latents);
    Ok(Latents::new(made_up(1, channels, request.size, LATENTS))?.in_space(request.latents))
}

/// Returns made-up values in [-`scale`, `scale`): `[count, channels, height, width]`.
fn made_up(count: u32, channels: u32, size: Size, scale: f32) -> HostTensor {
    let shape = vec![count as usize, channels as usize, size.height as usize, size.width as usize];
    let elements: usize = shape.iter().product();
    HostTensor { shape, data: (0..elements as u64).map(|index| scale * unit(index)).collect() }
}

/// Returns the peak resident memory of this process, if the system reports it (Linux).
fn peak_rss() -> Option<Bytes> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024).map(Bytes)
}
