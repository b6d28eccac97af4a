//! Session of decodes or encodes with progress; records the time of each.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use wgvae::clips::{ClipDecoder, ClipEncoder};
use wgvae::images::{At, FrameSink, PixelFormat, Pixels, RowSink, Rows};
use wgvae::report::{Fallback, OnProgress, Preparing, RunReport};
use wgvae::{
    Bytes, Control, DecodeOptions, Device, EncodeOptions, Encoded, HostTensor, Images, Latents, Progress, Result, Vae,
};

use super::interrupt::Interrupt;
use super::output::{ImageSink, OutputFiles};
use super::stderr::{Bar, Phase, took};

/// Record of one decode or encode of one image, or of one part of a clip.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    /// Index of the image, or of the part of a clip, from 0.
    pub(super) image: u32,
    /// Frames of the clip in this part, whose index is `image`. `None` for an image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) frames: Option<u32>,
    /// Number of times that this image was decoded, or encoded, before.
    pub(super) repeat: u32,
    /// Number of kernels compiled for this run.
    pub(super) kernels_compiled: usize,
    /// Number of buffers created for this run.
    pub(super) buffers_created: u64,
    /// Smaller plan that was used instead, if any.
    #[serde(skip)]
    pub(super) fallback: Option<Fallback>,
    /// Times of the run.
    #[serde(flatten)]
    pub(super) times: RunReport,
}

/// Series of decodes or encodes on a device, with progress, Ctrl-C and a record of each run.
pub(super) struct Session<'a> {
    device: &'a Device,
    interrupt: &'a Interrupt,
    phase: Phase,
    /// Number of runs, if known.
    total: Option<u64>,
    /// Records of the runs so far.
    pub(super) runs: Vec<Run>,
    /// Largest peak that the plan of any run predicted.
    pub(super) predicted: Bytes,
    /// Time spent on compiling kernels.
    compiling: Duration,
}

/// Counters of the device before a run.
#[derive(Debug, Clone, Copy)]
struct Before {
    kernels: usize,
    compiling: Duration,
    buffers: u64,
}

impl<'a> Session<'a> {
    /// Begins a session of `total` runs, if that number is known. `name` labels the progress bar.
    pub(super) fn new(name: &'static str, device: &'a Device, interrupt: &'a Interrupt, total: Option<u64>) -> Self {
        let phase = Phase::begin(name);
        show_compiling(device, phase.bar());
        Self { device, interrupt, phase, total, runs: Vec::new(), predicted: Bytes(0), compiling: Duration::ZERO }
    }

    /// Decodes every image `repeat` times. The rows of the last repeat of each image go to `files`.
    pub(super) async fn decode_all(
        &mut self,
        vae: &mut Vae,
        latents: &Latents,
        options: &DecodeOptions,
        repeat: u32,
        files: &mut OutputFiles,
    ) -> Result<()> {
        let (size, channels) = (vae.image_size(latents), vae.config().out_channels);
        let format = files.format();
        files.check_size(size)?;
        for image in 0..latents.count() {
            let number = self.next_image();
            for repeat_index in 0..repeat {
                let is_last = repeat_index + 1 == repeat;
                let mut sink = if is_last { Some(files.image(size, channels, self.interrupt)?) } else { None };
                let mut add = |rows: Rows<'_>| sink.as_mut().map_or(Ok(()), |sink| sink.add(&rows));
                self.decode(vae, latents.at(image), number, format, options, &mut add).await?;
                sink.map_or(Ok(()), ImageSink::finish)?;
            }
        }
        Ok(())
    }

    /// Decodes one image and hands its rows to `sink`. The report calls it image `number`.
    async fn decode(
        &mut self,
        vae: &mut Vae,
        latents: At<'_, Latents>,
        number: u32,
        format: PixelFormat,
        options: &DecodeOptions,
        sink: &mut RowSink<'_>,
    ) -> Result<()> {
        let before = self.before();
        let mut show = self.progress();
        let mut control = self.control(&mut show);
        let decoded = vae.decode_rows(latents, format, options, &mut control, sink).await?;
        self.add(before, (number, None), decoded.run, decoded.fallback, predicted(vae));
        Ok(())
    }

    /// Decodes `latents` of one image to RGBA bytes `[h, w, 4]`.
    pub(super) async fn decode_whole(
        &mut self,
        vae: &mut Vae,
        latents: &Latents,
        options: &DecodeOptions,
    ) -> Result<Vec<u8>> {
        let before = self.before();
        let mut show = self.progress();
        let decoded = vae.decode_with(latents, options, &mut self.control(&mut show)).await?;
        self.add(before, (0, None), decoded.run, decoded.fallback, predicted(vae));
        Ok(decoded.pixels)
    }

    /// Decodes `latents` of one frame as the next part of `clip`, and hands its frames to `sink`.
    /// `None` are the frames that wait for later latents; returns false if there are no more.
    pub(super) async fn decode_part(
        &mut self,
        clip: &mut ClipDecoder<'_>,
        latents: Option<&Latents>,
        sink: &mut FrameSink<'_, Pixels>,
    ) -> Result<bool> {
        let (before, mut show, mut frames) = (self.before(), self.progress(), 0);
        let mut control = self.control(&mut show);
        let mut counted = |pixels| {
            frames += 1;
            sink(pixels)
        };
        let ran = match latents {
            Some(latents) => Some(clip.decode(latents, &mut control, &mut counted).await?),
            None => clip.finish(&mut control, &mut counted).await?,
        };
        let Some((run, fallback)) = ran else { return Ok(false) };
        self.add_part(before, frames, run, fallback, predicted(clip.vae()).max(clip.plans().peak()));
        Ok(true)
    }

    /// Encodes `frames`, the next part of `clip`. Returns the encoder's output `[c, h, w]`.
    pub(super) async fn encode_part(&mut self, clip: &mut ClipEncoder<'_>, frames: &Images) -> Result<HostTensor> {
        let (before, mut show) = (self.before(), self.progress());
        let mut control = self.control(&mut show);
        let Encoded { moments, run, fallback } = clip.encode(frames, &mut control).await?;
        let peak = predicted(clip.vae()).max(clip.plans().peak());
        self.add_part(before, frames.count(), run, fallback, peak);
        Ok(moments)
    }

    /// Encodes image `image` of `images`, `repeat` times. Returns the encoder's output `[c, h, w]`.
    /// The report counts it as the next image.
    pub(super) async fn encode(
        &mut self,
        vae: &mut Vae,
        images: &Images,
        image: u32,
        options: &EncodeOptions,
        repeat: u32,
    ) -> Result<HostTensor> {
        let number = self.next_image();
        loop {
            let before = self.before();
            let mut show = self.progress();
            let mut control = self.control(&mut show);
            let encoded = vae.encode_with(images.at(image), options, &mut control).await?;
            self.add(before, (number, None), encoded.run, encoded.fallback, predicted(vae));
            if self.runs.last().is_none_or(|run| run.repeat + 1 >= repeat) {
                return Ok(encoded.moments);
            }
        }
    }

    /// Ends the session and returns the records of all runs.
    pub(super) fn finish(self) -> Vec<Run> {
        self.device.watch(None);
        self.phase.end_without(self.compiling);
        self.runs
    }

    /// Returns the number of the next image, or part of a clip.
    fn next_image(&self) -> u32 {
        self.runs.last().map_or(0, |run| run.image + 1)
    }

    fn before(&self) -> Before {
        let (kernels, compiling) = self.device.compiled();
        Before { kernels, compiling, buffers: self.device.ledger().created() }
    }

    /// Returns a callback that shows the progress of the next run.
    fn progress(&self) -> impl FnMut(Progress<'_>) + use<> {
        let (bar, total, done) = (self.phase.bar(), self.total, self.runs.len() as u64);
        move |progress: Progress<'_>| match total {
            Some(total) => bar.show(progress.total * done + progress.done, progress.total * total, progress.stage),
            None => bar.show(progress.done, progress.total, &format!("part {}: {}", done + 1, progress.stage)),
        }
    }

    fn control<'b>(&self, show: &'b mut OnProgress<'b>) -> Control<'b> {
        Control { progress: Some(show), cancel: Some(self.interrupt.cancel()), ..Control::default() }
    }

    fn add_part(
        &mut self,
        before: Before,
        frames: u32,
        times: RunReport,
        fallback: Option<Fallback>,
        predicted: Bytes,
    ) {
        let part = self.next_image();
        self.add(before, (part, Some(frames)), times, fallback, predicted);
    }

    fn add(
        &mut self,
        before: Before,
        (image, frames): (u32, Option<u32>),
        times: RunReport,
        fallback: Option<Fallback>,
        predicted: Bytes,
    ) {
        self.predicted = self.predicted.max(predicted);
        let after = self.before();
        if after.kernels > before.kernels {
            let kernels = after.kernels - before.kernels;
            let compiling = after.compiling - before.compiling;
            took(&format!("compile {kernels} kernels"), compiling);
            self.compiling += compiling;
        }
        let repeat = self.runs.iter().rev().take_while(|run| run.image == image).count();
        self.runs.push(Run {
            image,
            frames,
            repeat: u32::try_from(repeat).unwrap_or(u32::MAX),
            kernels_compiled: after.kernels - before.kernels,
            buffers_created: after.buffers - before.buffers,
            fallback,
            times,
        });
    }
}

/// Returns the predicted peak of the plan that ran last.
fn predicted(vae: &Vae) -> Bytes {
    vae.predicted_peak().unwrap_or_default()
}

/// Makes `bar` show progress whenever kernels are compiled from now on.
pub(super) fn show_compiling(device: &Device, bar: Bar) {
    device.watch(Some(Arc::new(move |now: Preparing<'_>| {
        if let Preparing::Kernels { done, total, kernel } = now {
            bar.show(done as u64, total as u64, &format!("compiling {kernel}"));
        }
    })));
}
