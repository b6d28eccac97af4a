//! Choice of the codec for a video file.
//!
//! | ending | bits asked for | codec | why |
//! |---|---|---|---|
//! | .mp4 | none, 8 | H.264 (libx264), yuv420p, CRF 16 | plays everywhere |
//! | .mp4 | 10, 12 | H.265 (libx265), yuv420p10le or 12le, CRF 16, hvc1 | for Apple's players |
//! | .webm | none, 8 | VP9 (libvpx-vp9), yuv420p, CRF 20 | plays in every browser |
//! | .webm | 10, 12 | VP9, yuv420p10le or 12le | profile 2 |
//! | .mov | none, 10 | `ProRes` 422 HQ (`prores_ks`), yuv422p10le | what editors take |
//! | .gif | none, 8 | one palette for each frame, so that no frame waits for the last | |
//!
//! All except .gif use BT.709 in limited range, and say so in their tags.

use std::path::Path;

use wgvae::{Error, Result, Size};

use super::super::options::Bits;

/// Settings for encoding a video.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codec {
    /// Name of the container in `ffmpeg`.
    container: &'static str,
    filter: &'static str,
    arguments: &'static [&'static str],
    pixels: Option<&'static str>,
    /// True if chroma has half the width, and true if it has half the height.
    halves: (bool, bool),
}

/// Filter for frames in BT.709, limited range. Without it `ffmpeg` would assume BT.601. New
/// versions tag the file by the frames' properties, old versions by [`TAGS`].
const BT709: &str = "setparams=range=tv:color_primaries=bt709:color_trc=bt709:colorspace=bt709,\
    scale=in_color_matrix=bt709:in_range=tv:out_color_matrix=bt709:out_range=tv:flags=bicubic+accurate_rnd+full_chroma_int";

const PALETTE: &str = "scale=in_color_matrix=bt709:in_range=tv:flags=bicubic+accurate_rnd+full_chroma_int,format=rgb24,\
    split[a][b];[a]palettegen=stats_mode=single[p];[b][p]paletteuse=new=1";

const TAGS: &[&str] =
    &["-color_primaries", "bt709", "-color_trc", "bt709", "-colorspace", "bt709", "-color_range", "tv"];

const H264: &[&str] = &["-c:v", "libx264", "-crf", "16", "-preset", "medium", "-movflags", "+faststart"];
const H265: &[&str] =
    &["-c:v", "libx265", "-crf", "16", "-tag:v", "hvc1", "-x265-params", "log-level=error", "-movflags", "+faststart"];
const VP9: &[&str] = &["-c:v", "libvpx-vp9", "-crf", "20", "-b:v", "0", "-row-mt", "1"];
const PRORES: &[&str] = &["-c:v", "prores_ks", "-profile:v", "3", "-vendor", "apl0"];

/// Rows of ending, bits and codec. The first row of an ending is its default.
const CODECS: &[(&str, Bits, Codec)] = &[
    ("mp4", Bits::Eight, video("mp4", H264, "yuv420p", (true, true))),
    ("mp4", Bits::Ten, video("mp4", H265, "yuv420p10le", (true, true))),
    ("mp4", Bits::Twelve, video("mp4", H265, "yuv420p12le", (true, true))),
    ("webm", Bits::Eight, video("webm", VP9, "yuv420p", (true, true))),
    ("webm", Bits::Ten, video("webm", VP9, "yuv420p10le", (true, true))),
    ("webm", Bits::Twelve, video("webm", VP9, "yuv420p12le", (true, true))),
    ("mov", Bits::Ten, video("mov", PRORES, "yuv422p10le", (true, false))),
    (
        "gif",
        Bits::Eight,
        Codec { container: "gif", filter: PALETTE, arguments: &[], pixels: None, halves: (false, false) },
    ),
];

const fn video(
    container: &'static str,
    arguments: &'static [&'static str],
    pixels: &'static str,
    halves: (bool, bool),
) -> Codec {
    Codec { container, filter: BT709, arguments, pixels: Some(pixels), halves }
}

impl Codec {
    /// Chooses the codec by the ending of `path`, and by the bits of a level if given.
    ///
    /// # Errors
    /// [`Error::Input`](wgvae::Error::Input) for an unknown ending, or for bits that its codec does
    /// not have.
    pub fn of(path: &Path, bits: Option<Bits>) -> Result<Self> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let mut same = CODECS.iter().filter(|(known, ..)| *known == ending);
        if let Some((.., codec)) = same.clone().find(|(_, has, _)| bits.is_none_or(|bits| bits == *has)) {
            return Ok(*codec);
        }
        let known: Vec<String> = same.by_ref().map(|(_, bits, _)| bits.get().to_string()).collect();
        match (known.as_slice(), bits) {
            ([_, ..], Some(bits)) => {
                let expected = format!("{} for {}", known.join(", "), path.display());
                Err(Error::input("--bits", expected, bits.get().to_string()))
            }
            _ => {
                let what = format!("ending of video file {}", path.display());
                Err(Error::input(what, "one of mp4, webm, mov, gif", format!("\"{ending}\"")))
            }
        }
    }

    /// Returns an error if halved chroma would have half a sample at the border.
    pub(super) fn check_size(&self, path: &Path, size: Size) -> Result<()> {
        let fits = |halved: bool, side: u32| !halved || side.is_multiple_of(2);
        if fits(self.halves.0, size.width) && fits(self.halves.1, size.height) {
            return Ok(());
        }
        let expected =
            if self.halves.1 { "even sides, which its codec needs" } else { "an even width, which its codec needs" };
        Err(Error::input(format!("frames for {}", path.display()), expected, size.to_string()))
    }

    /// Returns the output arguments of `ffmpeg`, without the file name.
    pub(super) fn arguments(&self) -> Vec<&'static str> {
        let mut arguments = vec!["-vf", self.filter];
        arguments.extend(self.arguments);
        if let Some(pixels) = self.pixels {
            arguments.extend(["-pix_fmt", pixels]);
            arguments.extend(TAGS);
        }
        arguments.extend(["-f", self.container]);
        arguments
    }
}
