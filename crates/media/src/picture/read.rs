//! Picture files: PNG, JPEG and WebP, told apart by their content. The header is read first, so
//! that sizes are checked before anything large is allocated.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{Cursor, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use image::codecs::png::PngDecoder;
use image::codecs::webp::WebPDecoder;
use image::metadata::Orientation;
use image::{ColorType, DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader};
use wgvae::internals::MAX_PIXELS;
use wgvae::{Bytes, Error, Result, Size};

use super::jpeg::{JpegMarkers, is_too_short};
use super::orientation::orientation;
use super::{Levels, Picture};

/// A remark about a picture whose pixels are not used exactly as stored, or not as in other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remark {
    /// The picture has transparency, which [`PictureFile::read`] drops.
    Alpha,
    /// The picture has 16 bits a channel.
    SixteenBits,
    /// The picture is grey.
    Grey,
    /// The picture is CMYK, for print.
    Cmyk,
    /// The picture is an animation, of which the first frame is used.
    Animated,
    /// The picture is turned or mirrored by this EXIF orientation.
    Orientation(u8),
    /// Pixels are shown with this width and height, so not as squares.
    PixelAspect(u32, u32),
    /// The video does not say which matrix its chroma has: this one is assumed.
    NoMatrix(&'static str),
    /// The video has this transfer function, for HDR.
    Hdr(&'static str),
    /// `ffmpeg` printed messages about the video, but none about missing frames.
    Messages,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Alpha => f.write_str("transparency is dropped, not blended: the colours below it are encoded"),
            Self::SixteenBits => f.write_str("all 16 bits of each level are used, where PIL keeps 8"),
            Self::Grey => f.write_str("a grey picture: red, green and blue are made equal"),
            Self::Cmyk => f.write_str("a CMYK picture, made RGB without its colour profile"),
            Self::Animated => f.write_str("an animation: its first frame is encoded"),
            Self::Orientation(number) => write!(f, "turned or mirrored as its EXIF orientation {number} says"),
            Self::PixelAspect(width, height) => {
                write!(f, "its pixels are {width}:{height}, not square: frames are encoded as stored, not stretched")
            }
            Self::NoMatrix(assumed) => write!(
                f,
                "it does not name its colour matrix: read as {assumed}, as players do for its size; a tag decides: \
                ffmpeg -i in.mp4 -c copy -bsf:v h264_metadata=matrix_coefficients=1 out.mp4"
            ),
            Self::Hdr(name) => {
                write!(f, "an HDR video ({name}): its levels are encoded as if they were SDR, so colours look flat")
            }
            Self::Messages => {
                f.write_str("ffmpeg printed errors, but none about missing frames: `ffmpeg -v error -i FILE -f null -`")
            }
        }
    }
}

/// A picture file whose header is known.
#[derive(Debug, Clone)]
pub struct PictureFile {
    path: PathBuf,
    /// Content of the file, if it was given in memory.
    kept: Option<Vec<u8>>,
    format: ImageFormat,
    size: Size,
    orientation: Orientation,
    /// Position of a JPEG marker that the decoder would follow, but other tools ignore.
    ignored: Option<usize>,
    remarks: Vec<Remark>,
}

/// Number of first bytes that tell the formats apart.
const MAGIC_BYTES: u64 = 12;

impl PictureFile {
    /// Returns true if the file at `path` begins like a PNG, JPEG or WebP file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn is_picture(path: &Path) -> Result<bool> {
        format_of(path).map(|format| format.is_some())
    }

    /// Returns true if `content` begins like a PNG, JPEG or WebP file.
    pub fn begins(content: &[u8]) -> bool {
        format_by(content).is_some()
    }

    /// Reads the header of the file at `path`.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Format`], or [`Error::Input`] if it has no pixels or more than 2^30.
    pub fn open(path: &Path) -> Result<Self> {
        let format = format_of(path)?.ok_or_else(|| no_picture(path))?;
        Self::with_header(path, format, &read_file(path)?)
    }

    /// Reads the header of a picture in memory, called `name` in errors.
    ///
    /// # Errors
    /// See [`Self::open`].
    pub fn from_bytes(name: &Path, content: Vec<u8>) -> Result<Self> {
        let format = format_by(&content).ok_or_else(|| no_picture(name))?;
        let file = Self::with_header(name, format, &content)?;
        Ok(Self { kept: Some(content), ..file })
    }

    fn with_header(path: &Path, format: ImageFormat, bytes: &[u8]) -> Result<Self> {
        let name = || path.display().to_string();
        let mut decoder = decoder(path, format, bytes)?;
        let orientation = orientation(format, bytes, &mut decoder);
        let (width, height) = decoder.dimensions();
        let size =
            if swaps_sides(orientation) { Size { width: height, height: width } } else { Size { width, height } };
        if size.pixels() == 0 || size.pixels() > MAX_PIXELS {
            return Err(Error::input(
                format!("size of {}", name()),
                format!("1 to {MAX_PIXELS} pixels"),
                size.to_string(),
            ));
        }
        let (mut remarks, mut ignored) = (Vec::new(), None);
        if format == ImageFormat::Jpeg {
            let markers = JpegMarkers::of(bytes);
            let JpegMarkers { components, complete, .. } = markers;
            ignored = markers.ignored();
            if !complete || is_too_short(bytes.len(), size) {
                return Err(cut_short(path));
            }
            remarks.extend((components == 4).then_some(Remark::Cmyk));
        }
        remarks.extend(color_remarks(decoder.color_type()));
        remarks.extend(is_animated(path, format, bytes)?.then_some(Remark::Animated));
        if orientation != Orientation::NoTransforms {
            remarks.push(Remark::Orientation(orientation.to_exif()));
        }
        Ok(Self { path: path.to_owned(), kept: None, format, size, orientation, ignored, remarks })
    }

    /// Returns the extent in pixels, after turning the picture the right way up.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Returns the remarks about this picture.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// Reads the picture: RGB, the right way up. Colour profiles and gamma are ignored, as in PIL.
    /// An animation yields its first frame.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Format`], [`Error::HostMemory`].
    pub fn read(&self) -> Result<Picture> {
        let (size, image) = self.decoded()?;
        let levels = if self.remarks.contains(&Remark::SixteenBits) {
            Levels::Sixteen(image.into_rgb16().into_raw())
        } else {
            Levels::Eight(image.into_rgb8().into_raw())
        };
        Ok(Picture { size, levels })
    }

    /// Reads the picture like [`Self::read`], but keeps transparency: a picture that has it becomes
    /// RGBA with straight alpha.
    ///
    /// # Errors
    /// The errors of [`Self::read`].
    pub fn read_with_alpha(&self) -> Result<Picture> {
        if !self.remarks.contains(&Remark::Alpha) {
            return self.read();
        }
        let (size, image) = self.decoded()?;
        let levels = if self.remarks.contains(&Remark::SixteenBits) {
            Levels::Sixteen(image.into_rgba16().into_raw())
        } else {
            Levels::Eight(image.into_rgba8().into_raw())
        };
        Ok(Picture { size, levels })
    }

    /// Decodes the file, turned the right way up.
    fn decoded(&self) -> Result<(Size, DynamicImage)> {
        let mut bytes =
            self.kept.as_ref().map_or_else(|| read_file(&self.path).map(Cow::Owned), |kept| Ok(Cow::Borrowed(kept)))?;
        if let Some(ignored) = self.ignored
            && let Some(name) = bytes.to_mut().get_mut(ignored)
        {
            *name = b'-';
        }
        let decoder = decoder(&self.path, self.format, &bytes)?;
        check_memory(format!("the picture {}", self.path.display()), decoder.total_bytes())?;
        let mut image = DynamicImage::from_decoder(decoder).map_err(|error| unreadable(&self.path, error))?;
        image.apply_orientation(self.orientation);
        let size = Size { width: image.width(), height: image.height() };
        if size != self.size {
            let problem = format!("it changed while it was read: {} at first, then {size} pixels", self.size);
            return Err(Error::format(self.path.display(), problem));
        }
        Ok((size, image))
    }
}

/// Detects the format by the first bytes of a file. Returns `None` for unsupported formats.
fn format_of(path: &Path) -> Result<Option<ImageFormat>> {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAGIC_BYTES).read_to_end(&mut start));
    read.map_err(|source| Error::io(path.display(), source))?;
    Ok(format_by(&start))
}

/// Detects the format by these bytes. Returns `None` for unsupported formats.
fn format_by(start: &[u8]) -> Option<ImageFormat> {
    let known = |format: &ImageFormat| matches!(format, ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::WebP);
    image::guess_format(start).ok().filter(known)
}

fn no_picture(path: &Path) -> Error {
    let problem = "not a picture: expected PNG, JPEG or WebP".to_owned();
    Error::format(path.display(), problem)
}

fn read_file(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|source| Error::io(path.display(), source))
}

fn decoder<'a>(path: &Path, format: ImageFormat, bytes: &'a [u8]) -> Result<impl ImageDecoder + 'a> {
    ImageReader::with_format(Cursor::new(bytes), format).into_decoder().map_err(|error| unreadable(path, error))
}

/// True for a PNG or WebP file with more than one frame.
fn is_animated(path: &Path, format: ImageFormat, bytes: &[u8]) -> Result<bool> {
    let animated = match format {
        ImageFormat::Png => PngDecoder::new(Cursor::new(bytes)).and_then(|decoder| decoder.is_apng()),
        ImageFormat::WebP => WebPDecoder::new(Cursor::new(bytes)).map(|decoder| decoder.has_animation()),
        _ => Ok(false),
    };
    animated.map_err(|error| unreadable(path, error))
}

fn color_remarks(color: ColorType) -> impl Iterator<Item = Remark> {
    let remarks = [
        (!color.has_color(), Remark::Grey),
        (color.has_alpha(), Remark::Alpha),
        (color.bytes_per_pixel() > color.channel_count(), Remark::SixteenBits),
    ];
    remarks.into_iter().filter_map(|(is_so, remark)| is_so.then_some(remark))
}

fn swaps_sides(orientation: Orientation) -> bool {
    matches!(
        orientation,
        Orientation::Rotate90 | Orientation::Rotate270 | Orientation::Rotate90FlipH | Orientation::Rotate270FlipH
    )
}

/// Checks that memory for `what` is available, because decoders abort the process otherwise.
/// Another thread may still take the memory in between.
pub(crate) fn check_memory(what: String, bytes: u64) -> Result<()> {
    let enough = usize::try_from(bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
    if enough { Ok(()) } else { Err(Error::HostMemory { what, needed: Bytes(bytes) }) }
}

fn cut_short(path: &Path) -> Error {
    Error::format(path.display(), "the picture is cut short")
}

fn unreadable(path: &Path, error: ImageError) -> Error {
    let failed = |problem| Error::format(path.display(), problem);
    match error {
        ImageError::Limits(_) => failed("its rows or its metadata exceed the decoder's limits".to_owned()),
        ImageError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => cut_short(path),
        ImageError::IoError(source) => Error::io(path.display(), source),
        other => failed(format!("unreadable: {other}")),
    }
}
