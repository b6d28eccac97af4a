//! What decodes and encodes of clips have in common on the command line.

use std::path::PathBuf;

use wgvae::internals::clip_files::ClipName;
use wgvae::internals::clips::TimeFactor;
use wgvae::{AutoencoderConfig, Checkpoint, Directions, Error, Result, check_clips};

use super::input;

/// How many frames the model makes of a frame of latents, if it has all that clips need in
/// `directions`. `refused` is the error for one that is not for video.
///
/// # Errors
/// See [`check_clips`].
pub(super) fn check_model(
    checkpoint: &Checkpoint,
    directions: Directions,
    refused: impl FnOnce() -> Error,
) -> Result<TimeFactor> {
    let factor = time_factor(checkpoint.config()).ok_or_else(refused)?;
    check_clips(checkpoint, directions)?;
    Ok(factor)
}

/// How many frames a model for video makes of a frame of latents.
fn time_factor(config: &AutoencoderConfig) -> Option<TimeFactor> {
    config.has_time().then(|| TimeFactor::new(config.temporal_factor())).flatten()
}

/// In how many parts the pictures that `--frames` gave are decoded or encoded: one for each frame
/// of latents.
///
/// # Errors
/// For a model that knows no time, and a number of frames that no latents have.
pub(super) fn parts(config: &AutoencoderConfig, frames: u64) -> Result<u64> {
    let factor = time_factor(config).ok_or_else(|| {
        input("--frames", "a model for video with it", format!("{frames} with {}", config.network.name()))
    })?;
    factor.latents(frames).ok_or_else(|| {
        let above = frames.saturating_add(factor.missing(frames));
        let expected = format!("as many as latents have, such as {}{above}", below(factor, above));
        input("--frames", expected, frames.to_string())
    })
}

/// The number that latents have before `above`, and a word between.
fn below(factor: TimeFactor, above: u64) -> String {
    let latents = factor.latents(above).and_then(|latents| latents.checked_sub(1));
    latents.and_then(|latents| factor.frames(latents)).map_or_else(String::new, |frames| format!("{frames} or "))
}

/// Refuses to decode or encode a clip more than once: frames are written as they come.
pub(super) fn check_once(repeat: u32) -> Result<()> {
    if repeat == 1 { Ok(()) } else { Err(input("--repeat", "1, for a clip", repeat.to_string())) }
}

/// The files of `frames` frames called `name`.
pub(super) fn files(name: &ClipName, frames: u64) -> Vec<PathBuf> {
    match name {
        ClipName::Standard => vec![PathBuf::from("-")],
        ClipName::Pictures(pattern) => (1..=frames).map(|number| pattern.file(number)).collect(),
        ClipName::Y4m(path) | ClipName::Array(path) | ClipName::Video(path) => vec![path.clone()],
    }
}
