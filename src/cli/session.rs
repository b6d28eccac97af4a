//! Decodes all images of a file, with progress, and keeps what each decode took.

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use wgvae::{Control, DecodeOptions, Gpu, Latents, Progress, Result, RunReport, Vae};

use super::interrupt::Interrupt;
use super::output::OutputFiles;

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
    /// Times.
    #[serde(flatten)]
    pub(super) times: RunReport,
}

/// Decodes every image `repeat` times and hands the last of each to `files`.
pub(super) async fn decode_all(
    gpu: &Gpu,
    vae: &mut Vae,
    latents: &Latents,
    options: &DecodeOptions,
    repeat: u32,
    interrupt: &Interrupt,
    files: &mut OutputFiles,
) -> Result<Vec<Run>> {
    files.check_size(vae.config().image_size(latents.size()))?;
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
            let decoded = vae.decode(latents, image, options, &mut control).await?;
            runs.push(Run {
                image,
                repeat: repeat_index,
                kernels_compiled: gpu.compiled().0 - kernels,
                buffers_created: gpu.ledger().created() - buffers,
                times: decoded.run.clone(),
            });
            if repeat_index + 1 == repeat {
                files.add(decoded)?;
            }
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
