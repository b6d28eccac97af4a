//! `wgvae encode` of a clip: reads and encodes frames part by part, and writes latents as they
//! arrive.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;
use wgvae::clips::ClipEncoder;
use wgvae::internals::clips::TimeFactor;
use wgvae::model::networks::encoded_channels;
use wgvae::{Checkpoint, Direction, Directions, EncodeOptions, Error, HostTensor, Images, LoadOptions, Result, Size};
use wgvae_media::clip_files::{
    ArrayFormat, ClipName, Cropped, Ffmpeg, FrameSource, LatentsWriter, Pad, Padded, open_source,
};
use wgvae_media::picture::Remark;

use super::EncodeArgs;
use crate::cli::clips::{FPS, check_model, check_once};
use crate::cli::images::{Source, say_range};
use crate::cli::interrupt::Interrupt;
use crate::cli::latents_output::MOMENTS;
use crate::cli::prepare::{load, open_device};
use crate::cli::report::{ClipSubject, Report};
use crate::cli::session::Session;
use crate::cli::stderr::note;
use crate::cli::stdio;

/// Checks everything that needs no GPU first, then loads the model, encodes, and writes latents as
/// they arrive.
pub(super) async fn run(args: &EncodeArgs, name: &ClipName, interrupt: &Interrupt) -> Result<String> {
    check_once(args.repeat)?;
    check_output(args)?;
    if args.each {
        return Err(Error::input("--each", "images as the input", "a clip"));
    }
    let checkpoint = args.model.open().await?;
    args.check_paths(&checkpoint, std::slice::from_ref(&args.output))?;
    let factor = check_model(&checkpoint, Directions::Encode, || no_video(args, checkpoint.config().in_channels))?;
    args.check_distribution(checkpoint.config())?;
    let fills = checkpoint.config().fills_parts();
    if fills && args.pad == Some(Pad::Mirror) {
        return Err(Error::input("--pad", "repeat or none, because this model repeats the last frame", "mirror"));
    }
    if !args.moments {
        checkpoint.check_space(args.space())?;
    }
    let source = open(args, name, factor, checkpoint.config().image_step(args.space()))?;
    let told = source.remarks().len();
    let (size, latents) = (source.size(), source.frames().and_then(|frames| factor.latents(frames)));
    let facts = source.fps().map(|fps| (FPS, fps.to_string()));
    let facts = args.facts(&checkpoint).into_iter().chain(facts).collect();
    let writer = writer(args, &checkpoint, (size, latents), facts, interrupt)?;

    let device = open_device(&args.device, &args.elements).await?;
    let clip_latents = latents.and_then(|latents| u32::try_from(latents).ok()).or(args.clip_latents);
    let options = EncodeOptions { clip_latents, ..args.options() };
    let loaded = LoadOptions::for_request(&options.request(size).of_clip(), args.elements.precision);
    let mut vae = load(&device, &checkpoint, loaded).await?;
    let mut clip = vae.encode_clip(size, &options).await?;
    let start = Instant::now();
    let session = Session::new("encode", &device, interrupt, latents);
    let mut work = Work { args, source, writer, encoded: 0, range: NO_VALUES, session };
    work.encode(&mut clip).await?;
    let Work { source, writer, encoded, range, session, .. } = work;
    writer.finish()?;
    say_range(range, &args.image[0]);
    say_remarks(&source.remarks()[told..]);
    if let Some(decoded) = factor.decoded(encoded).filter(|decoded| fills && *decoded != encoded) {
        note(&args.image[0], &format!("{encoded} frames, but the latents decode to {decoded}"));
    }
    // The length of a pipe is known only at its end.
    if let Some(remark) = source.remark().filter(|_| latents.is_none()) {
        note(&args.image[0], &remark);
    }
    let count = u32::try_from(encoded).unwrap_or(u32::MAX);
    let subject = ClipSubject {
        operation: Direction::Encode,
        frames: encoded,
        latent_frames: session.runs.len() as u64,
        size,
        fps: None,
        seconds: start.elapsed().as_secs_f64(),
        facts: json!({ "images": [Source { file: args.image[0].clone(), count, size }] }),
    };
    let report =
        Report::of_clip((&device, clip.vae()), clip.plans(), subject, session, std::slice::from_ref(&args.output));
    let facts = args.report.iter().map(|path| (path.clone(), report.to_bytes()));
    interrupt.write_all(&facts.collect::<Vec<_>>())?;
    Ok(report.show(args.json, false))
}

/// Fails for stdout: positions in the file depend on the number of frames, so the writer must seek.
fn check_output(args: &EncodeArgs) -> Result<()> {
    let found = match args.format {
        None if !stdio::is_meant(&args.output) => return Ok(()),
        None => "-".to_owned(),
        Some(_) => format!("{} with --format", args.output.display()),
    };
    Err(Error::input("--output", "a .safetensors or .npy file for the latents of a clip", found))
}

/// The range of no values.
const NO_VALUES: (f32, f32) = (f32::MAX, f32::MIN);

/// State of a running encode.
struct Work<'a> {
    args: &'a EncodeArgs,
    source: Padded,
    writer: LatentsWriter<'a>,
    encoded: u64,
    /// Smallest and largest value so far.
    range: (f32, f32),
    session: Session<'a>,
}

impl Work<'_> {
    /// Encodes and writes all parts.
    async fn encode(&mut self, clip: &mut ClipEncoder<'_>) -> Result<()> {
        for latent in 0.. {
            let Some(frames) = next_frames(&mut self.source, clip.wants())? else { break };
            let (least, most) = frames.range();
            self.range = (least.min(self.range.0), most.max(self.range.1));
            let moments = self.session.encode_part(clip, &frames).await?;
            self.writer.write(&self.args.wanted(clip.vae(), moments, latent)?.data)?;
            self.encoded += u64::from(frames.count());
        }
        Ok(())
    }
}

/// Reads the next `count` frames, or the last ones. Returns None after the last.
fn next_frames(source: &mut Padded, count: u32) -> Result<Option<Images>> {
    let (Size { width, height }, mut data, mut found) = (source.size(), Vec::new(), 0);
    while found < count as usize
        && let Some(frame) = source.next()?
    {
        data.extend(frame.data);
        found += 1;
    }
    let shape = vec![found, 3, height as usize, width as usize];
    if found == 0 { Ok(None) } else { Images::new(HostTensor { shape, data }).map(Some) }
}

/// Opens the frames to encode: the middle of each, and as many as the model takes.
fn open(args: &EncodeArgs, name: &ClipName, factor: TimeFactor, side: u32) -> Result<Padded> {
    let path = &args.image[0];
    let source = open_source(name, args.size.tensor(), &Ffmpeg::default())?;
    say_remarks(source.remarks());
    let size = args.size.of_frames(path, source.size(), matches!(name, ClipName::Array(_)), side)?;
    let source = Padded::new(Box::new(Cropped::new(source, size)), factor, args.pad)?;
    if let Some(remark) = source.remark() {
        note(path, &remark);
    }
    Ok(source)
}

fn say_remarks(remarks: &[(PathBuf, Remark)]) {
    for (file, remark) in remarks {
        note(file, &remark.to_string());
    }
}

/// Creates the writer for frames of `size` pixels. `latents` is the number of frames of latents, if
/// known, and `facts` are metadata.
fn writer<'a>(
    args: &EncodeArgs,
    checkpoint: &Checkpoint,
    (size, latents): (Size, Option<u64>),
    facts: Vec<(&'static str, String)>,
    interrupt: &'a Interrupt,
) -> Result<LatentsWriter<'a>> {
    let config = checkpoint.config();
    let (channels, format) = if args.moments {
        (encoded_channels(config), ArrayFormat::of(&args.output, MOMENTS, facts.into_iter().collect())?)
    } else {
        let format = ArrayFormat::of_latents(&args.output, args.space(), &facts)?;
        (config.channels(args.space()), format)
    };
    let extent = config.latent_size(size, args.space());
    LatentsWriter::create(&args.output, format, (channels, extent), latents, interrupt)
}

/// Returns the error for a model that is not for video.
fn no_video(args: &EncodeArgs, channels: u32) -> Error {
    let expected =
        format!("a PNG, JPEG or WebP picture, or floats [n, {channels}, h, w], because the model is not for video");
    Error::input(format!("image {}", args.image[0].display()), expected, "a clip")
}
