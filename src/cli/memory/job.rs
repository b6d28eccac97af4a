//! One measurement, in a process of its own: what it took is then that of this decode alone, and a driver that crashes takes nothing else
//! with it. The parent sends a [`Request`] as an argument and reads an [`Answer`] from stdout.

use std::time::Instant;

use clap::Args;
use serde::{Deserialize, Serialize};
use wgvae::report::{Adapter, Measured};
use wgvae::{
    AdapterReport, Bytes, Control, DecodeOptions, DeviceError, Error, Gpu, GpuOptions, HostTensor, Latents,
    LoadOptions, Precision, Result, Size, Vae,
};

use super::made_up::unit;
use super::model::Model;
use crate::cli::PrecisionArg;

/// What a child process is to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// List the adapters that this means, or all.
    Adapters(Option<String>),
    /// Decode once and say what that took.
    Decode(Job),
}

/// One decode.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Job {
    /// Number of the adapter, as listed.
    pub(super) adapter: usize,
    /// Model, as given on the command line.
    pub(super) model: String,
    /// Size in latents.
    pub(super) latents: Size,
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
    /// What the decode took.
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
        Request::Decode(job) => match decode(&job).await {
            Ok(measured) => Answer::Measured(measured),
            Err(error) => Answer::Failed(error.to_string()),
        },
    };
    serde_json::to_string(&answer)
        .map_err(|error| Error::Format { file: "answer".to_owned(), problem: error.to_string() })
}

async fn decode(job: &Job) -> Result<Measured> {
    let checkpoint = Model::find(&job.model)?.open().await?;
    let gpu = Gpu::request(&GpuOptions { adapter: Some(job.adapter.to_string()), ..GpuOptions::default() }).await?;
    let precision: Precision = job.precision.into();
    let load =
        LoadOptions { precision, unscaled: true, weights_on_host: job.budget.is_some(), ..LoadOptions::default() };
    let mut vae = Vae::load(&gpu, &checkpoint, load).await?;
    let latents = latents(vae.config().latent_channels, job.latents)?;
    let options = DecodeOptions { memory_budget: job.budget, ..DecodeOptions::default() };
    let start = Instant::now();
    vae.prepare(job.latents, &options).await?;
    let prepare_seconds = start.elapsed().as_secs_f64();
    let decoded = vae.decode(&latents, 0, &options, &mut Control::default()).await?;
    // While the buffers exist: the allocator is asked now.
    let allocator = gpu.allocator_bytes();
    Ok(Measured {
        ledger_peak: gpu.ledger().peak(),
        allocator_allocated: allocator.map(|(allocated, _)| Bytes(allocated)),
        allocator_reserved: allocator.map(|(_, reserved)| Bytes(reserved)),
        peak_rss: peak_rss(),
        load_seconds: vae.load_seconds(),
        prepare_seconds,
        seconds: decoded.run.seconds,
    })
}

/// Made-up latents of one picture, about as large as a VAE's own.
fn latents(channels: u32, size: Size) -> Result<Latents> {
    let shape = vec![1, channels as usize, size.height as usize, size.width as usize];
    let elements: usize = shape.iter().product();
    Latents::new(HostTensor { shape, data: (0..elements as u64).map(|index| 1.5 * unit(index)).collect() })
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
