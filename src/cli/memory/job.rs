//! One measurement, in a process of its own: what it took is then that of this decode or encode alone, and a driver that crashes takes nothing else
//! with it. The parent sends a [`Request`] as an argument and reads an [`Answer`] from stdout.

use std::time::Instant;

use clap::Args;
use serde::{Deserialize, Serialize};
use wgvae::report::{Adapter, Measured};
use wgvae::{
    AdapterReport, Bytes, Control, DecodeOptions, DeviceError, Directions, EncodeOptions, Error, Gpu, GpuOptions,
    HostTensor, Images, Latents, LoadOptions, Result, Size, Vae,
};

use super::made_up::unit;
use super::model::Model;
use crate::cli::PrecisionArg;
use crate::cli::task::Task;

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

async fn measure(job: &Job) -> Result<Measured> {
    let checkpoint = Model::find(&job.model)?.open().await?;
    let gpu = Gpu::request(&GpuOptions { adapter: Some(job.adapter.to_string()), ..GpuOptions::default() }).await?;
    let load = LoadOptions {
        directions: match job.task {
            Task::Decode(_) => Directions::Decode,
            Task::Encode(_) => Directions::Encode,
        },
        precision: job.precision.into(),
        unscaled: true,
        weights_on_host: job.budget.is_some(),
        clips: false,
    };
    let mut vae = Vae::load(&gpu, &checkpoint, load).await?;
    let (prepare_seconds, seconds) = match job.task {
        Task::Decode(latents) => decode(&mut vae, latents, job.budget).await?,
        Task::Encode(image) => encode(&mut vae, image, job.budget).await?,
    };
    // While the buffers exist: the allocator is asked now.
    let allocator = gpu.allocator_bytes();
    Ok(Measured {
        ledger_peak: gpu.ledger().peak(),
        allocator_allocated: allocator.map(|(allocated, _)| Bytes(allocated)),
        allocator_reserved: allocator.map(|(_, reserved)| Bytes(reserved)),
        peak_rss: peak_rss(),
        load_seconds: vae.load_seconds(),
        prepare_seconds,
        seconds,
    })
}

/// Decodes latents of this size. Seconds to prepare and to decode.
async fn decode(vae: &mut Vae, size: Size, memory_budget: Option<Bytes>) -> Result<(f64, f64)> {
    // About as large as a VAE's own.
    let latents = Latents::new(made_up(vae.config().latent_channels, size, 1.5))?;
    let options = DecodeOptions { memory_budget, ..DecodeOptions::default() };
    let start = Instant::now();
    vae.prepare(size, &options).await?;
    let prepare_seconds = start.elapsed().as_secs_f64();
    let decoded = vae.decode(&latents, 0, &options, &mut Control::default()).await?;
    Ok((prepare_seconds, decoded.run.seconds))
}

/// Encodes an image of this size. Seconds to prepare and to encode.
async fn encode(vae: &mut Vae, size: Size, memory_budget: Option<Bytes>) -> Result<(f64, f64)> {
    let images = Images::new(made_up(vae.config().in_channels, size, 1.0))?;
    let options = EncodeOptions { memory_budget, ..EncodeOptions::default() };
    let start = Instant::now();
    vae.prepare_encode(size, &options).await?;
    let prepare_seconds = start.elapsed().as_secs_f64();
    let encoded = vae.encode(&images, 0, &options, &mut Control::default()).await?;
    Ok((prepare_seconds, encoded.run.seconds))
}

/// Made-up values of up to `scale` more or less than 0, for one run.
fn made_up(channels: u32, size: Size, scale: f32) -> HostTensor {
    let shape = vec![1, channels as usize, size.height as usize, size.width as usize];
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
