//! `wgvae decode` of a clip: reads, decodes and writes it part by part.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use serde_json::json;
use wgvae::clips::ClipDecoder;
use wgvae::files::ByteSource;
use wgvae::images::{PixelFormat, Pixels};
use wgvae::internals::clips::{ClipAxes, ClipLatents, TimeFactor};
use wgvae::internals::safetensors::read_header;
use wgvae::tiling::TilingKind;
use wgvae::{
    Checkpoint, DecodeOptions, Direction, Directions, Error, HostTensor, LatentSpace, Latents, LoadOptions, Named,
    Result,
};
use wgvae_media::clip_files::{ClipName, Ffmpeg, Fps, Frame, FrameFormat, FrameSink, SinkOptions, create_sink};

use super::DecodeArgs;
use crate::cli::clips::{FPS, check_model, check_once, files};
use crate::cli::interrupt::Interrupt;
use crate::cli::latents::say_unscaled;
use crate::cli::prepare::{load, open_device};
use crate::cli::report::{ClipSubject, Report};
use crate::cli::session::Session;
use crate::cli::stderr::note;
use crate::cli::tiling::tiling_json;

/// Checks everything that needs no GPU first, then loads the model, decodes, and writes frames as
/// they arrive.
pub(super) async fn run(
    args: &DecodeArgs,
    name: &ClipName,
    (source, opened): (Box<dyn ByteSource>, Option<Checkpoint>),
    interrupt: &Interrupt,
) -> Result<String> {
    check_options(args)?;
    let checkpoint = args.checkpoint(opened).await?;
    let config = checkpoint.config();
    let tiling = args.tiles.tiling(args.tiling, config)?;
    let factor = check_model(&checkpoint, Directions::Decode, || no_video(args, name))?;
    let fps = fps(args, name, source.as_ref()).await;
    let latents =
        ClipLatents::open(source, args.tensor.as_deref(), config.channels(LatentSpace::from_unscaled(args.unscaled)))
            .await?;
    let space = if args.unscaled {
        say_unscaled(&args.latents, latents.stored_space());
        LatentSpace::Vae
    } else {
        latents.space(config)
    };
    checkpoint.check_space(space)?;
    let axes = latents.axes();
    let size = config.image_size(axes.size, space);
    let frames = factor.frames(axes.frames).ok_or_else(|| no_such_clip(args, axes, factor))?;
    check_paths(args, &checkpoint, name, frames)?;
    let ffmpeg = Ffmpeg::default();
    let wanted = SinkOptions { size, frames, fps, bits: args.bits, files: interrupt, ffmpeg: &ffmpeg };
    let sink = create_sink(name, wanted)?;
    say_others(name, frames)?;

    let device = open_device(&args.device, &args.elements).await?;
    let format = match sink.wants() {
        FrameFormat::Rgba8 => PixelFormat::Rgba8,
        FrameFormat::Floats => PixelFormat::Raw,
    };
    let clip_latents = u32::try_from(axes.frames).ok();
    let options = DecodeOptions { clip_latents, ..args.options(tiling) };
    let request = options.request(axes.size, space, format).of_clip();
    let mut vae = load(&device, &checkpoint, LoadOptions::for_request(&request, args.elements.precision)).await?;
    let mut clip = vae.decode_clip(axes.size, space, format, &options).await?;
    // Frames of some models come some parts late.
    let parts = axes.frames + u64::from(clip.plans().later().result.parts_after());
    let start = Instant::now();
    let mut work =
        Work { latents, space, sink, written: 0, session: Session::new("decode", &device, interrupt, Some(parts)) };
    let end = work.decode(&mut clip).await.inspect_err(|_| say_written(name, work.written))?;
    if end.is_break() {
        // The reader has closed the pipe, and has no use for facts.
        return Ok(String::new());
    }
    let subject = ClipSubject {
        operation: Direction::Decode,
        frames,
        latent_frames: axes.frames,
        size,
        fps: Some(fps.unwrap_or_default()),
        seconds: start.elapsed().as_secs_f64(),
        facts: json!({ "tiling": tiling_json(tiling, clip.vae().config(), axes.size) }),
    };
    let report = Report::of_clip((&device, clip.vae()), clip.plans(), subject, work.session, &files(name, frames));
    let facts = args.report.iter().map(|path| (path.clone(), report.to_bytes()));
    interrupt.write_all(&facts.collect::<Vec<_>>())?;
    Ok(report.show(args.json, *name == ClipName::Standard))
}

/// Returns `--fps`, else the frames per second in the metadata of the latents, if the output has
/// them. A preview has fewer frames than the clip had. Other programs may write anything there.
async fn fps(args: &DecodeArgs, name: &ClipName, latents: &dyn ByteSource) -> Option<Fps> {
    if args.fps.is_some() || args.preview_rate || matches!(name, ClipName::Pictures(_) | ClipName::Array(_)) {
        return args.fps;
    }
    let text = read_header(latents).await.ok()?.metadata.get(FPS)?.clone();
    let (fps, words) = match text.parse::<Fps>() {
        Ok(fps) => (fps, format!("{fps} frames per second, as its metadata say")),
        Err(expected) => {
            let fps = Fps::default();
            (fps, format!("{fps} frames per second; in its metadata {expected}, found {text:?}"))
        }
    };
    note(&args.latents, &format!("{words}; --fps replaces it"));
    Some(fps)
}

/// State of a running decode.
struct Work<'a> {
    latents: ClipLatents,
    space: LatentSpace,
    sink: Box<dyn FrameSink + 'a>,
    written: u64,
    session: Session<'a>,
}

impl Work<'_> {
    /// Decodes and writes all parts, and what waits for later ones. Returns `Break` once the reader
    /// of the output has gone.
    async fn decode(&mut self, clip: &mut ClipDecoder<'_>) -> Result<ControlFlow<()>> {
        let mut part = 0;
        loop {
            let is_there = part < self.latents.axes().frames;
            let latents = if is_there { Some(self.read(part).await?) } else { None };
            part += 1;
            let mut end = ControlFlow::Continue(());
            let (sink, written) = (&mut self.sink, &mut self.written);
            let mut write = |pixels: Pixels| {
                if end.is_continue() {
                    end = sink.frame(&frame(&pixels))?;
                    *written += 1;
                }
                Ok(())
            };
            let has_run = self.session.decode_part(clip, latents.as_ref(), &mut write).await?;
            if end.is_break() {
                return Ok(end);
            }
            if !has_run {
                self.sink.finish()?;
                return Ok(ControlFlow::Continue(()));
            }
        }
    }

    /// Reads frame `index` of the latents, as one image.
    async fn read(&self, index: u64) -> Result<Latents> {
        let HostTensor { shape, data } = self.latents.read(index..index + 1).await?;
        let shape = [&[1, shape[0]], &shape[2..]].concat();
        Ok(Latents::new(HostTensor { shape, data })?.in_space(self.space))
    }
}

fn frame(pixels: &Pixels) -> Frame<'_> {
    match pixels {
        Pixels::Rgba8(bytes) => Frame::Rgba8(bytes),
        Pixels::Raw(values) => Frame::Floats(values),
    }
}

/// Fails for options that clips do not support.
fn check_options(args: &DecodeArgs) -> Result<()> {
    if args.tiling == TilingKind::Estimate {
        return Err(Error::input("--tiling", "exact, blend or cosine for a clip", args.tiling.name()));
    }
    if let Some(side) = args.preview {
        return Err(Error::input("--preview", "use with latents of images", format!("{side} with a clip")));
    }
    args.bit_depth.map_or(Ok(()), |depth| Err(depth.unfit("a clip (--bits is for clips)")))?;
    check_once(args.repeat)
}

/// Fails if an output file would replace an input or another output.
fn check_paths(args: &DecodeArgs, checkpoint: &Checkpoint, name: &ClipName, frames: u64) -> Result<()> {
    let first_and_last = match name {
        ClipName::Standard => Vec::new(),
        ClipName::Pictures(pattern) if frames > 1 => vec![pattern.file(1), pattern.file(frames)],
        other => files(other, 1),
    };
    args.check_paths(checkpoint, std::slice::from_ref(&args.latents), &first_and_last)
}

/// Returns the error for an output that only a clip can have, with a model that is not for video.
fn no_video(args: &DecodeArgs, name: &ClipName) -> Error {
    let ending = args.output.extension().unwrap_or_default().to_string_lossy();
    if let (ClipName::Standard, Some(format)) = (name, args.format) {
        let expected = "one of png, jpg, webp, exr, npy, safetensors, because the model is not for video";
        return Error::input("--format", expected, format.name());
    }
    let (expected, found) = match name {
        ClipName::Pictures(_) => {
            let expected = "a name without %, because the model is not for video: pictures get numbers anyway";
            (expected, "a pattern".to_owned())
        }
        _ => {
            let expected = "one of png, jpg, jpeg, webp, exr, npy, safetensors, because the model is not for video";
            (expected, format!("\"{ending}\""))
        }
    };
    Error::input(format!("output {}", args.output.display()), expected, found)
}

fn no_such_clip(args: &DecodeArgs, axes: ClipAxes, factor: TimeFactor) -> Error {
    let what = format!("latents in {}", args.latents.display());
    Error::input(what, factor.expected_latents(), axes.frames.to_string())
}

/// Prints a note if more pictures lie beside those that are written, left by a longer clip.
fn say_others(name: &ClipName, frames: u64) -> Result<()> {
    let ClipName::Pictures(pattern) = name else { return Ok(()) };
    if let Some(found) = pattern.find()?.filter(|found| found.last > frames) {
        note(
            pattern.path(),
            &format!("older pictures up to number {} remain, but this clip ends at {frames}", found.last),
        );
    }
    Ok(())
}

/// Prints which frames are written when a decode ends early. Each one is complete.
fn say_written(name: &ClipName, written: u64) {
    if let (ClipName::Pictures(pattern), true) = (name, written > 0) {
        let last = pattern.file(written);
        note(pattern.path(), &format!("all frames up to {} are written", Path::new(&last).display()));
    }
}
