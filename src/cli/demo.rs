//! `wgvae demo`.

use wgvae::{DecodeOptions, Gpu, GpuOptions, LoadOptions, Result, Vae};

use super::interrupt::Interrupt;
use super::output::OutputFiles;
use super::report::Report;
use super::session::decode_all;
use super::{DemoArgs, latents};
use crate::demo;

/// Decodes the embedded latents as `wgvae decode` would decode a file's.
pub(super) async fn run(args: &DemoArgs) -> Result<String> {
    let interrupt = Interrupt::install();
    let latents = latents::from_source(&demo::latents(), None).await?;
    let mut files = OutputFiles::new(&args.output, latents.count())?;
    let checkpoint = demo::checkpoint().await?;

    let gpu = Gpu::request(&GpuOptions { adapter: args.adapter.clone(), ..GpuOptions::default() }).await?;
    let mut vae = Vae::load(&gpu, &checkpoint, LoadOptions::default()).await?;
    let options = DecodeOptions { output: files.output(), ..DecodeOptions::default() };
    let runs = decode_all(&gpu, &mut vae, &latents, &options, 1, &interrupt, &mut files).await?;
    let report = Report::of_decode(&gpu, &mut vae, &latents, &options, &runs, &files.names()).await?;
    interrupt.write(files.finish())?;
    Ok(report.show(args.json))
}
