//! Functions that decodes and encodes of clips share on the command line.

use std::path::PathBuf;

use wgvae::config::AutoencoderConfig;
use wgvae::internals::clips::TimeFactor;
use wgvae::{Checkpoint, Direction, Directions, Error, Result};
use wgvae_media::clip_files::ClipName;

/// Name of the frames per second in the metadata of a clip's latents.
pub(super) const FPS: &str = "fps";

/// Returns the number of frames for each frame of latents, after checking that the model has all
/// that clips need in `directions`. `refused` makes the error for a model that is not for video.
///
/// # Errors
/// The error of `refused`, or an error of [`check_clips`].
pub(super) fn check_model(
    checkpoint: &Checkpoint,
    directions: Directions,
    refused: impl FnOnce() -> Error,
) -> Result<TimeFactor> {
    let config = checkpoint.config();
    let factor = TimeFactor::of(config).ok_or_else(refused)?;
    checkpoint.check_clips(directions)?;
    Ok(factor)
}

/// Returns the number of parts of a decode to, or an encode of, the `--frames` pictures of a clip:
/// one for each frame of latents.
///
/// # Errors
/// For a model that is not for video, and for a number of frames that no number of latents gives.
pub(super) fn parts(config: &AutoencoderConfig, direction: Direction, frames: u64) -> Result<u64> {
    let factor = TimeFactor::of(config).ok_or_else(|| {
        Error::input("--frames", "a model for video", format!("{frames} frames with network {}", config.network.name()))
    })?;
    let factor = if direction == Direction::Decode { factor.of_decodes() } else { factor };
    factor.latents(frames).ok_or_else(|| {
        let above = frames.saturating_add(factor.missing(frames));
        let expected = format!("a number of frames that the model takes, such as {}{above}", below(factor, above));
        Error::input("--frames", expected, frames.to_string())
    })
}

/// Returns the valid frame count just below `above`, followed by "or". Empty if there is none.
fn below(factor: TimeFactor, above: u64) -> String {
    let latents = factor.latents(above).and_then(|latents| latents.checked_sub(1));
    latents.and_then(|latents| factor.frames(latents)).map_or_else(String::new, |frames| format!("{frames} or "))
}

/// Fails if a clip is to be decoded or encoded more than once: frames are written as they arrive.
pub(super) fn check_once(repeat: u32) -> Result<()> {
    if repeat == 1 { Ok(()) } else { Err(Error::input("--repeat", "1 for a clip", repeat.to_string())) }
}

/// Returns the files that hold the `frames` frames of the clip `name`.
pub(super) fn files(name: &ClipName, frames: u64) -> Vec<PathBuf> {
    match name {
        ClipName::Standard => vec![PathBuf::from("-")],
        ClipName::Pictures(pattern) => (1..=frames).map(|number| pattern.file(number)).collect(),
        ClipName::Y4m(path) | ClipName::Array(path) | ClipName::Video(path) => vec![path.clone()],
    }
}
