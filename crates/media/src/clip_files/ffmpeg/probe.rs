//! A look at the first frame of a video, before its frames are read: its size, its pixel format and
//! its colour tags, as ffmpeg's filter `showinfo` prints them.

use std::ffi::OsString;
use std::path::Path;

use wgvae::{Error, Result};

use super::process::{Ffmpeg, Process};
use crate::picture::Remark;

/// Arguments after the input.
const FIRST_FRAME: [&str; 9] = ["-map", "0:v:0", "-vf", "showinfo", "-frames:v", "1", "-f", "null", "-"];

/// Facts about the first frame, and about the `ffmpeg` that decodes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Probe {
    width: u32,
    height: u32,
    /// Pixel format.
    pixels: String,
    /// Matrix between RGB and luma with chroma.
    matrix: String,
    /// Transfer function from levels to light.
    transfer: String,
    has_alpha: bool,
    /// True if `ffmpeg` is older than 5.1, which has `-vsync` instead of `-fps_mode`.
    is_old: bool,
}

/// Matrices that ffmpeg's filter `scale` can convert. It takes any other for BT.601.
const MATRICES: [&str; 7] = ["bt709", "fcc", "bt470bg", "smpte170m", "smpte240m", "bt2020nc", "bt2020c"];

/// Beginnings of pixel formats without chroma: the matrix does not matter.
const RGB_OR_GREY: [&str; 16] = [
    "rgb", "bgr", "gbr", "argb", "abgr", "0rgb", "0bgr", "x2rgb", "x2bgr", "pal8", "gray", "grey", "ya8", "ya16",
    "mono", "bayer",
];

/// Beginnings of pixel formats with opacity. Palettes have it, too, but hardly any video uses it.
const WITH_ALPHA: [&str; 12] =
    ["yuva", "rgba", "bgra", "argb", "abgr", "gbrap", "ya8", "ya16", "ayuv", "vuya", "rgbaf", "uyva"];

/// First words about a GIF file. Its frames are decoded with opacity even if all are opaque.
const GIF: &str = "[info] Input #0, gif,";

/// Advice for a matrix that cannot be converted.
const RETAG: &str = "convert the video, or correct its tag: \
                     ffmpeg -i in.mp4 -c copy -bsf:v h264_metadata=matrix_coefficients=1 out.mp4";

impl Probe {
    /// Decodes the first frame of `file`. `input` are the arguments that open it.
    ///
    /// # Errors
    /// [`Error::Format`] with the messages of `ffmpeg`, or [`Error::Input`] if there is no frame,
    /// no `ffmpeg`, or a matrix that ffmpeg would take for another.
    pub(super) fn of(ffmpeg: &Ffmpeg, input: &[OsString], file: &Path) -> Result<Self> {
        let arguments: Vec<OsString> = input.iter().cloned().chain(FIRST_FRAME.map(Into::into)).collect();
        let probe = Self::parse(&Process::messages(ffmpeg, &arguments, file)?).ok_or_else(|| {
            Error::input(format!("frames of {}", file.display()), "at least one, as ffmpeg's filter showinfo", "none")
        })?;
        let is_known = probe.is_untagged() || MATRICES.contains(&probe.matrix.as_str());
        if probe.has_chroma() && !is_known {
            let what = format!("colour matrix of {}", file.display());
            let found = format!("\"{}\": {RETAG}", probe.matrix);
            return Err(Error::input(what, format!("one of {}", MATRICES.join(", ")), found));
        }
        Ok(probe)
    }

    /// Parses the messages of `ffmpeg`. Returns `None` if they describe no frame.
    fn parse(text: &str) -> Option<Self> {
        let shown = |name: &str| {
            let mut lines = text.lines().filter(|line| line.starts_with("[Parsed_showinfo"));
            lines.find_map(|line| line.split(' ').find_map(|word| word.strip_prefix(name)))
        };
        let (width, height) = shown("s:")?.split_once('x')?;
        let pixels = shown("fmt:")?;
        let is_gif = text.lines().any(|line| line.starts_with(GIF));
        let has_alpha = !is_gif && WITH_ALPHA.iter().any(|start| pixels.starts_with(start));
        Some(Self {
            width: width.parse().ok()?,
            height: height.parse().ok()?,
            pixels: pixels.to_owned(),
            matrix: shown("color_space:")?.to_owned(),
            transfer: shown("color_trc:")?.to_owned(),
            has_alpha: has_alpha || text.lines().any(is_alpha_mode),
            is_old: version(text).is_some_and(|version| version < (5, 1)),
        })
    }

    fn has_chroma(&self) -> bool {
        !RGB_OR_GREY.iter().any(|start| self.pixels.starts_with(start))
    }

    /// True if no matrix is named. RGB has none, so that its tag says nothing about chroma.
    fn is_untagged(&self) -> bool {
        matches!(self.matrix.as_str(), "unknown" | "unspecified" | "reserved" | "gbr")
    }

    /// Returns the matrix to assume if the file does not name it, as ffmpeg and people call it.
    /// Players follow this rule (mpv's): small videos are rarely BT.709 unless they say so.
    fn assumed_matrix(&self) -> Option<(&'static str, &'static str)> {
        let is_large = self.width >= 1280 || self.height > 576;
        let assumed = if is_large { ("bt709", "BT.709") } else { ("bt601", "BT.601") };
        (self.has_chroma() && self.is_untagged()).then_some(assumed)
    }

    /// Returns the filters that convert frames to 12 bits, 4:4:4, BT.709.
    ///
    /// The first one fails at a frame of another size, which ffmpeg would otherwise stretch.
    /// ffmpeg would assume BT.601 for chroma without a matrix, at any size.
    pub(super) fn filters(&self) -> String {
        let Self { width, height, .. } = self;
        let matrix = self.assumed_matrix().map(|(name, _)| format!("in_color_matrix={name}:")).unwrap_or_default();
        format!(
            "crop=w='if(eq(iw,{width})*eq(ih,{height}),iw,0)':h=ih:x=0:y=0:exact=1,\
            scale={matrix}out_color_matrix=bt709:out_range=tv:flags=bicubic+accurate_rnd+full_chroma_int,\
            format=yuv444p12le"
        )
    }

    /// Returns the option that keeps every frame exactly once.
    pub(super) fn every_frame(&self) -> &'static str {
        if self.is_old { "-vsync" } else { "-fps_mode" }
    }

    /// Returns remarks about what the conversion ignores or assumes.
    pub(super) fn remarks(&self) -> impl Iterator<Item = Remark> {
        let assumed = self.assumed_matrix().map(|(_, name)| Remark::NoMatrix(name));
        let remarks = [
            (self.transfer == "smpte2084", Remark::Hdr("PQ")),
            (self.transfer == "arib-std-b67", Remark::Hdr("HLG")),
            (self.has_alpha, Remark::Alpha),
        ];
        assumed.into_iter().chain(remarks.into_iter().filter_map(|(is_so, remark)| is_so.then_some(remark)))
    }
}

/// True for the metadata of VP8 and VP9 that says that another stream has their opacity.
fn is_alpha_mode(line: &str) -> bool {
    let field = line.rsplit_once(']').map_or(line, |(_, field)| field).split_once(':');
    field.is_some_and(|(name, value)| name.trim().eq_ignore_ascii_case("alpha_mode") && value.trim() == "1")
}

/// Parses the version in the first line, such as `ffmpeg version n4.4.2-0ubuntu`. Returns `None`
/// for builds that are named by their date.
fn version(text: &str) -> Option<(u32, u32)> {
    let (_, version) = text.split_once("ffmpeg version ")?;
    let version = version.strip_prefix('n').unwrap_or(version);
    let mut numbers = version.split(|letter: char| !letter.is_ascii_digit());
    let (major, minor) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().unwrap_or(0));
    (major < 1000).then_some((major, minor))
}
