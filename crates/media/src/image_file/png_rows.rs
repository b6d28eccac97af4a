//! PNG files of 8 or 16 bits a channel, written row by row or as a whole. An `sRGB` chunk says what
//! the levels mean.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, OnceLock};

use wgvae::{Result, Size};

use super::{ImageFormat, unfit};

/// Kind of the pixels in a PNG file. 16-bit levels are big-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PngPixels {
    /// Red, green and blue of 8 bits.
    Rgb8,
    /// Also opacity: straight alpha.
    Rgba8,
    /// Red, green and blue of 16 bits.
    Rgb16,
    /// Also opacity: straight alpha.
    Rgba16,
}

impl PngPixels {
    /// Returns the 16-bit pixels of an image of `channels` channels, 3 or 4.
    pub fn sixteen_bits(channels: u32) -> Self {
        if channels == 4 { Self::Rgba16 } else { Self::Rgb16 }
    }

    fn channels(self) -> usize {
        match self {
            Self::Rgb8 | Self::Rgb16 => 3,
            Self::Rgba8 | Self::Rgba16 => 4,
        }
    }

    /// Converts floats of -1 to 1, `[c, rows, w]`, to 16-bit pixels: `round(clamp(x / 2 + 1/2) *
    /// 65535)`, half to even.
    pub fn sixteen_bit_rows(self, planes: &[f32]) -> Vec<u8> {
        let channels = self.channels();
        let plane = planes.len() / channels;
        let value = |index: usize| planes[index % channels * plane + index / channels];
        (0..plane * channels).flat_map(|index| level(value(index)).to_be_bytes()).collect()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 65535")]
fn level(value: f32) -> u16 {
    (value.mul_add(0.5, 0.5).clamp(0.0, 1.0) * 65_535.0).round_ties_even() as u16
}

/// Makes an encoder for a picture of `size`.
fn encoder<W: Write>(file: W, size: Size, pixels: PngPixels) -> png::Encoder<'static, W> {
    let mut encoder = png::Encoder::new(file, size.width, size.height);
    encoder.set_color(if pixels.channels() == 4 { png::ColorType::Rgba } else { png::ColorType::Rgb });
    encoder.set_depth(match pixels {
        PngPixels::Rgb8 | PngPixels::Rgba8 => png::BitDepth::Eight,
        PngPixels::Rgb16 | PngPixels::Rgba16 => png::BitDepth::Sixteen,
    });
    encoder.set_compression(png::Compression::Fast);
    encoder.set_filter(png::Filter::Adaptive);
    encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
    encoder
}

/// Encodes a whole picture in memory.
///
/// # Errors
/// [`Error::Input`](wgvae::Error::Input) if the length of `data` does not fit `size`.
pub fn encode_png(size: Size, pixels: PngPixels, data: &[u8]) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    let written = encoder(&mut file, size, pixels).write_header().and_then(|mut writer| {
        writer.write_image_data(data)?;
        writer.finish()
    });
    written.map_err(|error| unfit(ImageFormat::Png, size, &error))?;
    Ok(file)
}

/// A PNG file that receives a picture row by row, with the settings of [`encode_png`].
pub struct PngRows {
    writer: png::StreamWriter<'static, Watched>,
    failed: Arc<OnceLock<Failure>>,
    size: Size,
    pixels: PngPixels,
}

impl std::fmt::Debug for PngRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PngRows").field("size", &self.size).field("pixels", &self.pixels).finish_non_exhaustive()
    }
}

impl PngRows {
    /// Begins a picture of `size` in `file`.
    pub fn new(file: File, size: Size, pixels: PngPixels) -> Result<Self> {
        let failed = Arc::new(OnceLock::new());
        let file = Watched { file, failed: Arc::clone(&failed) };
        let writer = encoder(file, size, pixels).write_header();
        let writer = writer.and_then(|writer| writer.into_stream_writer_with_size(PNG_CHUNK_BYTES));
        let writer = writer.map_err(|error| unfit(ImageFormat::Png, size, &error))?;
        Ok(Self { writer, failed, size, pixels })
    }

    /// Adds rows, `[rows, w, c]`.
    pub fn write(&mut self, rows: &[u8]) -> std::io::Result<()> {
        self.writer.write_all(rows)
    }

    /// Adds rows of floats of -1 to 1, `[c, rows, w]`, to a 16-bit picture. See
    /// [`PngPixels::sixteen_bit_rows`].
    pub fn write_floats(&mut self, rows: &[f32]) -> std::io::Result<()> {
        self.write(&self.pixels.sixteen_bit_rows(rows))
    }

    /// Ends the file. Returns an error if rows are missing.
    pub fn finish(self) -> std::io::Result<()> {
        self.writer.finish().map_err(std::io::Error::from)?;
        self.failed.get().map_or(Ok(()), |(kind, message)| Err(std::io::Error::new(*kind, message.as_str())))
    }
}

/// Number of bytes of compressed data in one write.
const PNG_CHUNK_BYTES: usize = 1 << 16;

/// A failed write: its kind and its message.
type Failure = (std::io::ErrorKind, String);

/// A file that remembers a failed write, because a PNG writer ignores errors while it is dropped.
struct Watched {
    file: File,
    failed: Arc<OnceLock<Failure>>,
}

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let keep = |error: &std::io::Error| {
            // Only the first failure counts.
            let _ = self.failed.set((error.kind(), error.to_string()));
        };
        self.file.write(bytes).inspect_err(keep)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}
