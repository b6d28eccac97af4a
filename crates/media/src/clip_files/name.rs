//! Detection of a clip's kind by its file name.

use std::path::{Path, PathBuf};

use wgvae::{Error, Result};

use super::pattern::Pattern;

/// Endings of videos that `ffmpeg` reads for us. Other formats can come as y4m through a pipe.
const VIDEOS: &[&str] = &[
    "mp4", "webm", "mov", "gif", "mkv", "avi", "m4v", "flv", "wmv", "mpg", "mpeg", "ts", "m2ts", "mts", "3gp", "asf",
    "m2v", "ogv", "mxf", "ivf", "dv", "h264", "h265", "hevc", "obu", "apng",
];

/// The source or the target of frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClipName {
    /// `-`: y4m on stdin or stdout.
    Standard,
    /// `frames/%05d.png`.
    Pictures(Pattern),
    /// `.y4m`.
    Y4m(PathBuf),
    /// `.npy` or `.safetensors`: floats of a clip or of images.
    Array(PathBuf),
    /// Any other video file.
    Video(PathBuf),
}

impl ClipName {
    /// Parses a file name. Returns `None` for anything that is not a clip, above all a single
    /// picture.
    ///
    /// # Errors
    /// [`Error::Input`](wgvae::Error::Input) for a wrong pattern.
    pub fn of(path: &Path) -> Result<Option<Self>> {
        if Pattern::is_meant(path) {
            return Pattern::new(path).map(Self::Pictures).map(Some);
        }
        Ok(Self::of_file(path))
    }

    /// Parses the name of an input like [`Self::of`]. A file that is there is no pattern: downloads
    /// have names like `a%20day.png`.
    ///
    /// # Errors
    /// See [`Self::of`].
    pub fn of_input(path: &Path) -> Result<Option<Self>> {
        if path.is_file() { Ok(Self::of_file(path)) } else { Self::of(path) }
    }

    fn of_file(path: &Path) -> Option<Self> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        match ending.as_str() {
            _ if path.as_os_str() == "-" => Some(Self::Standard),
            "y4m" => Some(Self::Y4m(path.to_owned())),
            "npy" | "safetensors" => Some(Self::Array(path.to_owned())),
            video if VIDEOS.contains(&video) => Some(Self::Video(path.to_owned())),
            _ => None,
        }
    }

    /// Parses a file name like [`Self::of`], but requires a clip.
    ///
    /// # Errors
    /// [`Error::Input`](wgvae::Error::Input) for any other name. `what` is the option that expects
    /// a clip, such as `--output`.
    pub fn expect(path: &Path, what: &str) -> Result<Self> {
        let expected = "a clip: numbered pictures (frames/%05d.png), .y4m, - for a pipe of y4m, .npy, .safetensors, or a video such as .mp4 or .webm";
        Self::of(path)?.ok_or_else(|| Error::input(what, expected, path.display().to_string()))
    }

    /// True if only a clip can have this name. Arrays may also be images, and
    /// [`is_clip`](wgvae::internals::clips::is_clip) decides by their shape.
    pub fn is_only_clip(&self) -> bool {
        !matches!(self, Self::Array(_))
    }
}
