//! `wgvae demo`.

use wgvae::demo;
use wgvae::{DecodeOptions, LoadOptions, Result};

use super::interrupt::Interrupt;
use super::output::OutputFiles;
use super::prepare::{ElementArgs, load, open_device};
use super::report::Report;
use super::session::decode_all;
use super::{DemoArgs, latents, stdio};

/// Decodes the embedded latents as `wgvae decode` would decode a file's.
pub(super) async fn run(args: &DemoArgs) -> Result<String> {
    let interrupt = Interrupt::install();
    let latents = latents::from_source(&demo::latents(), None).await?;
    if stdio::is_meant(&args.output) {
        stdio::check_no_terminal()?;
    }
    let mut files = OutputFiles::new(&args.output, None, latents.count())?;
    let checkpoint = demo::checkpoint().await?;

    let device = open_device(&args.device, &ElementArgs::AUTO).await?;
    let mut vae = load(&device, &checkpoint, LoadOptions::default()).await?;
    let options = DecodeOptions::default();
    let runs = decode_all(&device, &mut vae, &latents, &options, 1, &interrupt, &mut files).await?;
    let request = options.request(latents.size(), latents.space(), files.format());
    let report = Report::of_decode(&device, &mut vae, &request, &runs, &files.names()).await?;
    interrupt.write(files.finish())?;
    Ok(report.show(args.json, stdio::is_meant(&args.output)))
}
