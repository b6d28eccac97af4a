//! Images to files, and any file written so that no half-written one is ever seen: aside first, renamed when complete.

use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::codecs::webp::WebPEncoder;
use image::{ExtendedColorType, ImageEncoder as _};
use tempfile::NamedTempFile;

use crate::error::{Error, Result};
use crate::tensor::Size;

/// Quality of JPEG files, of 100.
const JPEG_QUALITY: u8 = 95;

/// File formats for images, chosen by the file name's ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFormat {
    /// Lossless.
    Png,
    /// Lossy; has no transparency, which is left out.
    Jpeg,
    /// Lossless here.
    WebP,
}

/// Ending in lower case -> format.
const ENDINGS: &[(&str, ImageFormat)] =
    &[("png", ImageFormat::Png), ("jpg", ImageFormat::Jpeg), ("jpeg", ImageFormat::Jpeg), ("webp", ImageFormat::WebP)];

impl ImageFormat {
    /// The format that the ending of `path` asks for. Another ending is an error that lists the supported ones.
    pub fn from_path(path: &Path) -> Result<Self> {
        let found = path.extension().unwrap_or_default();
        let format = ENDINGS.iter().find(|(ending, _)| found.eq_ignore_ascii_case(ending));
        format.map(|(_, format)| *format).ok_or_else(|| Error::Input {
            what: format!("ending of image file {}", path.display()),
            expected: format!("one of {}", ENDINGS.iter().map(|(ending, _)| *ending).collect::<Vec<_>>().join(", ")),
            found: if found.is_empty() { "none".to_owned() } else { format!("\"{}\"", found.to_string_lossy()) },
        })
    }
}

impl ImageFormat {
    /// Fails if an image of `size` for `path` is too large for this format. For use before the image is there.
    pub fn check_size(self, path: &Path, size: Size) -> Result<()> {
        let most = match self {
            Self::Jpeg => 65_535,
            Self::WebP => 16_384,
            Self::Png => return Ok(()),
        };
        if size.width.max(size.height) <= most {
            return Ok(());
        }
        Err(Error::Input {
            what: format!("image for {}", path.display()),
            expected: format!("at most {most} pixels a side, as this format allows"),
            found: size.to_string(),
        })
    }
}

/// 8-bit pixels, row by row.
#[derive(Debug, Clone, Copy)]
pub struct Pixels<'a> {
    /// Extent in pixels.
    pub size: Size,
    /// RGB or RGBA values, by the length of the data: 3 or 4 bytes for each pixel.
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
        Err(Error::Input {
            what: format!("pixels of a {} image", self.size),
            expected: "3 or 4 bytes for each of at least one pixel".to_owned(),
            found: format!("{bytes} bytes"),
        })
    }
}

/// Encodes `pixels`, which a format may refuse as too large: JPEG ends at 65535 pixels a side, WebP at 16384.
pub fn encode_image(format: ImageFormat, pixels: &Pixels<'_>) -> Result<Vec<u8>> {
    let color = pixels.color()?;
    let Size { width, height } = pixels.size;
    let mut file = Cursor::new(Vec::new());
    let encoded = match format {
        ImageFormat::Png => PngEncoder::new_with_quality(&mut file, CompressionType::Fast, FilterType::Adaptive)
            .write_image(pixels.data, width, height, color),
        ImageFormat::WebP => WebPEncoder::new_lossless(&mut file).write_image(pixels.data, width, height, color),
        ImageFormat::Jpeg => {
            let encoder = JpegEncoder::new_with_quality(&mut file, JPEG_QUALITY);
            if color == ExtendedColorType::Rgba8 {
                let rgb: Vec<u8> =
                    pixels.data.as_chunks::<4>().0.iter().flat_map(|[r, g, b, _]| [*r, *g, *b]).collect();
                encoder.write_image(&rgb, width, height, ExtendedColorType::Rgb8)
            } else {
                encoder.write_image(pixels.data, width, height, color)
            }
        }
    };
    encoded.map_err(|error| Error::Input {
        what: format!("{} image as {format:?}", pixels.size),
        expected: "an image this format can hold".to_owned(),
        found: error.to_string(),
    })?;
    Ok(file.into_inner())
}

/// Encodes `pixels` by the ending of `path` and writes the file atomically.
pub fn write_image(path: &Path, pixels: &Pixels<'_>) -> Result<()> {
    write_atomically(path, &encode_image(ImageFormat::from_path(path)?, pixels)?)
}

/// Names for several images: `out.png` becomes `out-01.png` and so on, counted from 1; a single image keeps its name.
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

/// Writes `bytes` to `path`, which holds either its old content or all of the new at any time.
///
/// Something that is not a file (a pipe, `/dev/stdout`) is written to directly; a link stays a link.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || {
        let Some(target) = replaceable(path)? else {
            return std::fs::OpenOptions::new().write(true).open(path)?.write_all(bytes);
        };
        let mut file = create_beside(&target)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(&target).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|source| io_error(path, source))
}

/// Fails if `path` could not be written now, because its folder is missing or closed or it is a folder itself. For use
/// before long work; leaves nothing behind.
pub fn check_writable(path: &Path) -> Result<()> {
    let check = || match replaceable(path)? {
        Some(target) => create_beside(&target)?.close(),
        None => std::fs::OpenOptions::new().write(true).open(path).map(drop),
    };
    check().map_err(|source| io_error(path, source))
}

/// The path to rename to; `None` for something that exists and is not a file.
fn replaceable(path: &Path) -> std::io::Result<Option<PathBuf>> {
    if path.file_name().is_none() {
        return Err(std::io::ErrorKind::IsADirectory.into());
    }
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(std::io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if metadata.is_file() => std::fs::canonicalize(path).map(Some),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Some(path.to_owned())),
        Err(error) => Err(error),
    }
}

/// A temporary file in the folder of `target`, from where it can be renamed. Goes away if it is not.
fn create_beside(target: &Path) -> std::io::Result<NamedTempFile> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A missing folder is reported as such, not by the name of a temporary file in it.
    std::fs::metadata(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".wgvae-").suffix(".part");
    // Temporary files are private by default; what is written here is to be as readable as any other file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

fn io_error(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.display().to_string(), source }
}
