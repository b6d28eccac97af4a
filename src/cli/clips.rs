//! What decodes and encodes of clips have in common on the command line.

use std::io::Write as _;
use std::path::PathBuf;

use wgvae::internals::clip_files::ClipName;
use wgvae::internals::clips::TimeFactor;
use wgvae::{AutoencoderConfig, Checkpoint, Directions, Error, Result, check_clips};

use super::input;
use super::report::Report;

/// How many frames the model makes of a frame of latents, if it has all that clips need in `directions`. `refused` is the error for one that is not for video.
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
pub(super) fn time_factor(config: &AutoencoderConfig) -> Option<TimeFactor> {
    config.has_time().then(|| TimeFactor::new(config.temporal_factor())).flatten()
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

/// The facts, for stdout; on stderr where that has the frames.
pub(super) fn show(report: &Report, json: bool, to_stderr: bool) -> String {
    let text = report.show(json);
    if !to_stderr {
        return text;
    }
    drop(writeln!(std::io::stderr(), "{}", text.trim_end()));
    String::new()
}
