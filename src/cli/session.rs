//! Decodes all images of a file, with progress, and keeps what each decode took.

use std::io::Write as _;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use wgvae::{Control, DecodeOptions, Fallback, Gpu, Latents, Progress, Result, Rows, RunReport, Vae};

use super::interrupt::Interrupt;
use super::output::{ImageSink, OutputFiles};

/// One decode of one image.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    /// Index of the image, from 0.
    pub(super) image: u32,
    /// Times this image was decoded before.
    pub(super) repeat: u32,
    /// Kernels that had to be compiled for it.
    pub(super) kernels_compiled: usize,
    /// Buffers that had to be created for it.
    pub(super) buffers_created: u64,
    /// The smaller plan that was used, if it was.
    #[serde(skip)]
    pub(super) fallback: Option<Fallback>,
    /// Times.
    #[serde(flatten)]
    pub(super) times: RunReport,
}

/// Decodes every image `repeat` times; the rows of the last of each go to `files`.
pub(super) async fn decode_all(
    gpu: &Gpu,
    vae: &mut Vae,
    latents: &Latents,
    options: &DecodeOptions,
    repeat: u32,
    interrupt: &Interrupt,
    files: &mut OutputFiles,
) -> Result<Vec<Run>> {
    let size = vae.image_size(latents);
    files.check_size(size)?;
    let bar = bar();
    let total = u64::from(latents.count()) * u64::from(repeat);
    let mut runs: Vec<Run> = Vec::new();
    for image in 0..latents.count() {
        for repeat_index in 0..repeat {
            let (kernels, buffers) = (gpu.compiled().0, gpu.ledger().created());
            let before = runs.len() as u64;
            let mut show = |progress: Progress<'_>| {
                bar.set_length(progress.total * total);
                bar.set_position(progress.total * before + progress.done);
                bar.set_message(progress.stage.to_owned());
            };
            let mut control =
                Control { progress: Some(&mut show), cancel: Some(interrupt.cancel()), ..Control::default() };
            let mut sink = if repeat_index + 1 == repeat { Some(files.image(size, interrupt)?) } else { None };
            let mut add = |rows: Rows<'_>| sink.as_mut().map_or(Ok(()), |sink| sink.add(&rows));
            let decoded = vae.decode_rows(latents, image, options, &mut control, &mut add).await?;
            sink.map_or(Ok(()), ImageSink::finish)?;
            if let (Some(fallback), true) = (&decoded.fallback, runs.is_empty()) {
                bar.suspend(|| drop(writeln!(std::io::stderr(), "warning: {fallback}")));
            }
            runs.push(Run {
                image,
                repeat: repeat_index,
                kernels_compiled: gpu.compiled().0 - kernels,
                buffers_created: gpu.ledger().created() - buffers,
                fallback: decoded.fallback,
                times: decoded.run,
            });
        }
    }
    bar.finish_and_clear();
    Ok(runs)
}

/// A bar on stderr, which shows nothing where stderr is not a terminal.
pub(super) fn bar() -> ProgressBar {
    let bar = ProgressBar::new(1);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent:>3} % {elapsed} {msg:40}") {
        bar.set_style(style);
    }
    bar.set_message("preparing");
    bar
}
