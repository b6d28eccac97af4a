//! Encoding of images to files: whole images in any 8-bit format, and PNG and `OpenEXR` row by row.

mod exr;
mod png_rows;

use std::io::Cursor;
use std::path::{Path, PathBuf};

use image::codecs::jpeg::JpegEncoder;
use image::codecs::webp::WebPEncoder;
use image::{ExtendedColorType, ImageEncoder as _};
use wgvae::{Error, Result, Size};

pub use self::exr::ExrImage;
pub use self::png_rows::{PngPixels, PngRows, encode_png};
use super::part_file::write_atomically;

/// Quality of JPEG files, out of 100.
const JPEG_QUALITY: u8 = 95;

/// The ICC profile that says that levels are those of sRGB, see `make_srgb.py`. PNG has a chunk for
/// that.
const SRGB: &[u8] = include_bytes!("image_file/srgb.icc");

/// File formats for images, chosen by the file name's ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFormat {
    /// Lossless.
    Png,
    /// Lossy. It has no transparency, so alpha is dropped.
    Jpeg,
    /// Lossless here, although the format also has a lossy mode.
    WebP,
}

/// Pairs of ending in lower case and format.
const ENDINGS: &[(&str, ImageFormat)] =
    &[("png", ImageFormat::Png), ("jpg", ImageFormat::Jpeg), ("jpeg", ImageFormat::Jpeg), ("webp", ImageFormat::WebP)];

impl ImageFormat {
    /// Chooses the format by the ending of `path`.
    ///
    /// # Errors
    /// [`Error::Input`] for another ending, with a list of the supported ones.
    pub fn from_path(path: &Path) -> Result<Self> {
        let found = path.extension().unwrap_or_default();
        let format = ENDINGS.iter().find(|(ending, _)| found.eq_ignore_ascii_case(ending));
        format.map(|(_, format)| *format).ok_or_else(|| {
            Error::input(
                format!("ending of image file {}", path.display()),
                format!("one of {}", ENDINGS.iter().map(|(ending, _)| *ending).collect::<Vec<_>>().join(", ")),
                if found.is_empty() { "none".to_owned() } else { format!("\"{}\"", found.to_string_lossy()) },
            )
        })
    }
}

impl ImageFormat {
    /// Checks that this format can hold an image of `size`, before the image is computed.
    ///
    /// # Errors
    /// [`Error::Input`] for a side above 65535 pixels in JPEG or 16384 in WebP.
    pub fn check_size(self, path: &Path, size: Size) -> Result<()> {
        let most = match self {
            Self::Jpeg => 65_535,
            Self::WebP => 16_384,
            Self::Png => return Ok(()),
        };
        if size.width.max(size.height) <= most {
            return Ok(());
        }
        Err(Error::input(
            format!("image for {}", path.display()),
            format!("at most {most} pixels a side, as this format allows"),
            size.to_string(),
        ))
    }
}

/// 8-bit pixels, row by row.
#[derive(Debug, Clone, Copy)]
pub struct Pixels<'a> {
    /// Extent in pixels.
    pub size: Size,
    /// RGB or RGBA values, `[h, w, 3]` or `[h, w, 4]`. The length tells which.
    pub data: &'a [u8],
}

impl Pixels<'_> {
    fn color(&self) -> Result<ExtendedColorType> {
        let pixels = u64::from(self.size.width) * u64::from(self.size.height);
        let bytes = self.data.len() as u64;
        if pixels > 0 && bytes.is_multiple_of(pixels) {
            match bytes / pixels {
                3 => return Ok(ExtendedColorType::Rgb8),
                4 => return Ok(ExtendedColorType::Rgba8),
                _ => {}
            }
        }
        Err(Error::input(
            format!("pixels of a {} image", self.size),
            "at least one pixel, and 3 or 4 bytes for each",
            format!("{bytes} bytes"),
        ))
    }
}

/// Encodes `pixels` in memory, marked as sRGB.
///
/// # Errors
/// [`Error::Input`] for data without 3 or 4 bytes a pixel, or a size that the format cannot hold:
/// JPEG ends at 65535 pixels a side, WebP at 16384.
pub fn encode_image(format: ImageFormat, pixels: &Pixels<'_>) -> Result<Vec<u8>> {
    let color = pixels.color()?;
    let Size { width, height } = pixels.size;
    let mut file = Cursor::new(Vec::new());
    let encoded = match format {
        ImageFormat::Png if color == ExtendedColorType::Rgba8 => {
            return encode_png(pixels.size, PngPixels::Rgba8, pixels.data);
        }
        ImageFormat::Png => return encode_png(pixels.size, PngPixels::Rgb8, pixels.data),
        ImageFormat::WebP => as_srgb(WebPEncoder::new_lossless(&mut file))
            .and_then(|encoder| encoder.write_image(pixels.data, width, height, color)),
        ImageFormat::Jpeg => as_srgb(JpegEncoder::new_with_quality(&mut file, JPEG_QUALITY)).and_then(|encoder| {
            if color == ExtendedColorType::Rgba8 {
                let rgb: Vec<u8> =
                    pixels.data.as_chunks::<4>().0.iter().flat_map(|[r, g, b, _]| [*r, *g, *b]).collect();
                encoder.write_image(&rgb, width, height, ExtendedColorType::Rgb8)
            } else {
                encoder.write_image(pixels.data, width, height, color)
            }
        }),
    };
    encoded.map_err(|error| unfit(format, pixels.size, &error))?;
    Ok(file.into_inner())
}

/// Returns `encoder` with the profile of sRGB.
fn as_srgb<E: image::ImageEncoder>(mut encoder: E) -> image::ImageResult<E> {
    encoder.set_icc_profile(SRGB.to_vec()).map_err(image::ImageError::Unsupported)?;
    Ok(encoder)
}

fn unfit(format: ImageFormat, size: Size, error: &dyn std::fmt::Display) -> Error {
    Error::input(format!("{size} image as {format:?}"), "an image this format can hold", error.to_string())
}

/// Encodes `pixels` by the ending of `path` and writes the file atomically.
pub fn write_image(path: &Path, pixels: &Pixels<'_>) -> Result<()> {
    write_atomically(path, &encode_image(ImageFormat::from_path(path)?, pixels)?)
}

/// Returns the name of one of several images: `out.png` becomes `out-01.png` and so on, counted
/// from 1. A single image keeps its name.
pub fn numbered(path: &Path, index: usize, count: usize) -> PathBuf {
    if count <= 1 {
        return path.to_owned();
    }
    let width = count.to_string().len();
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{:0width$}", index + 1));
    if let Some(ending) = path.extension() {
        name.push(".");
        name.push(ending);
    }
    path.with_file_name(name)
}
