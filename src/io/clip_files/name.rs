//! What a clip is in, by the name of its file.

use std::path::{Path, PathBuf};

use super::error::input;
use super::pattern::Pattern;
use crate::error::Result;

/// Video files that `ffmpeg` is asked to read, by their ending. What else it reads is to be had as
/// y4m in a pipe.
const VIDEOS: &[&str] = &["mp4", "webm", "mov", "gif", "mkv", "avi", "m4v", "flv", "wmv", "mpg", "mpeg", "ts"];

/// Where frames come from or go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClipName {
    /// `-`: y4m on stdin or stdout.
    Standard,
    /// `frames/%05d.png`.
    Pictures(Pattern),
    /// `.y4m`.
    Y4m(PathBuf),
    /// `.npy` or `.safetensors`: floats, of a clip or of images.
    Array(PathBuf),
    /// Any other video file.
    Video(PathBuf),
}

impl ClipName {
    /// Reads a name; none for one of something that is no clip, a picture above all.
    ///
    /// # Errors
    /// [`Error::Input`](crate::Error::Input) for a pattern that is none.
    pub fn of(path: &Path) -> Result<Option<Self>> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        Ok(match ending.as_str() {
            _ if path.as_os_str() == "-" => Some(Self::Standard),
            _ if Pattern::is_meant(path) => Some(Self::Pictures(Pattern::new(path)?)),
            "y4m" => Some(Self::Y4m(path.to_owned())),
            "npy" | "safetensors" => Some(Self::Array(path.to_owned())),
            video if VIDEOS.contains(&video) => Some(Self::Video(path.to_owned())),
            _ => None,
        })
    }

    /// As [`Self::of`], for what has to be a clip.
    ///
    /// # Errors
    /// [`Error::Input`](crate::Error::Input) for a name of something else, with `what` it was to
    /// be: `--output`.
    pub fn expect(path: &Path, what: &str) -> Result<Self> {
        let expected = "a clip: numbered pictures (frames/%05d.png), .y4m, - for a pipe of y4m, .npy, .safetensors, or a video such as .mp4 or .webm";
        Self::of(path)?.ok_or_else(|| input(what, expected, path.display().to_string()))
    }

    /// Whether only a clip has this name. Arrays may be of images too: then their shape decides, by
    /// [`is_clip`](super::super::clips::is_clip).
    pub fn is_only_clip(&self) -> bool {
        !matches!(self, Self::Array(_))
    }
}
