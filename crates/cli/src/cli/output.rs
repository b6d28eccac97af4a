//! Output files of a decode: pictures or raw floats, by the file ending that the user gave.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use wgvae::images::{PixelFormat, RowPixels, Rows};
use wgvae::internals::convert::to_bytes;
use wgvae::internals::npy::npy_header;
use wgvae::internals::safetensors::safetensors_header;
use wgvae::{Error, Named as _, Result, Size};
use wgvae_media::image_file::{self, ExrImage, ImageFormat, PngPixels, PngRows, encode_image, encode_png, numbered};
use wgvae_media::part_file::{PartFile, check_writable};

use super::interrupt::Interrupt;
use super::stderr::note;
use super::stdio;

/// Name of the tensor in a .safetensors file of raw floats.
const TENSOR: &str = "image";

/// Format of the data on stdout, which has no file ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FormatArg {
    Png,
    Jpg,
    Webp,
    Exr,
    Npy,
    Safetensors,
    Y4m,
}

wgvae::named!(
    FormatArg, "format":
    Png = "png", Jpg = "jpg", Webp = "webp", Exr = "exr", Npy = "npy", Safetensors = "safetensors", Y4m = "y4m"
);

/// Bits of a channel in a PNG file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum BitDepthArg {
    #[value(name = "8")]
    Eight,
    #[value(name = "16")]
    Sixteen,
}

impl BitDepthArg {
    /// Returns the error for this depth with `output`, which is no PNG picture.
    pub(super) fn unfit(self, output: &str) -> Error {
        let bits = if self == Self::Eight { 8 } else { 16 };
        Error::input("--bit-depth", "use with .png pictures of images", format!("{bits} with {output}"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// Picture of 8 bits.
    Picture(ImageFormat),
    Png16,
    Exr,
    Npy,
    Safetensors,
}

impl Format {
    /// Returns the format that the ending of `path` names, with the bits that the user gave.
    fn of(path: &Path, depth: Option<BitDepthArg>) -> Result<Self> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let format = match (ending.as_str(), ImageFormat::from_path(path)) {
            ("exr", _) => Self::Exr,
            ("npy", _) => Self::Npy,
            ("safetensors", _) => Self::Safetensors,
            (_, Ok(format)) => Self::Picture(format),
            (_, Err(_)) => {
                let found = if ending.is_empty() { "none".to_owned() } else { format!("\"{ending}\"") };
                let what = format!("ending of output file {}", path.display());
                return Err(Error::input(what, "one of png, jpg, jpeg, webp, exr, npy, safetensors", found));
            }
        };
        format.with_depth(depth, &path.display().to_string())
    }

    /// Returns the format with the bits that the user gave. `output` names it in an error.
    fn with_depth(self, depth: Option<BitDepthArg>, output: &str) -> Result<Self> {
        match (self, depth) {
            (Self::Picture(ImageFormat::Png), Some(BitDepthArg::Sixteen)) => Ok(Self::Png16),
            (Self::Picture(ImageFormat::Png), _) | (_, None) => Ok(self),
            (_, Some(depth)) => Err(depth.unfit(output)),
        }
    }

    /// True if a file holds all images, and not one of them.
    fn is_array(self) -> bool {
        matches!(self, Self::Npy | Self::Safetensors)
    }
}

/// True if a file of this name holds all images of a decode, and not one of them.
///
/// # Errors
/// For an unknown ending, and a depth without PNG.
pub(super) fn holds_all(path: &Path, depth: Option<BitDepthArg>) -> Result<bool> {
    Format::of(path, depth).map(Format::is_array)
}

/// The output file or files of a decode, while they are written.
#[derive(Debug)]
pub(super) struct OutputFiles {
    /// Names of all files.
    pub(super) names: Vec<PathBuf>,
    format: Format,
    count: usize,
    begun: usize,
    parts: Vec<PartFile>,
}

impl OutputFiles {
    /// Prepares files for `count` images at `path`. On stdout they are in `format`, or PNG by
    /// default. `depth` is that of PNG.
    ///
    /// # Errors
    /// For an unknown ending, a path that cannot be written, several pictures on stdout, and a
    /// depth without PNG.
    pub(super) fn new(path: &Path, format: Option<FormatArg>, depth: Option<BitDepthArg>, count: u32) -> Result<Self> {
        if stdio::is_meant(path) {
            return Self::on_stdout(format.unwrap_or(FormatArg::Png), depth, count);
        }
        let count = count as usize;
        let names = if holds_all(path, depth)? {
            vec![path.to_owned()]
        } else {
            (0..count).map(|index| numbered(path, index, count)).collect()
        };
        Self::named(names, depth, count)
    }

    /// Prepares the files `names`, at least one, for `count` images: one file for each, or one that
    /// holds all of them.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub(super) fn named(names: Vec<PathBuf>, depth: Option<BitDepthArg>, count: usize) -> Result<Self> {
        let format = Format::of(&names[0], depth)?;
        names.iter().try_for_each(|name| check_writable(name))?;
        Ok(Self { names, format, count, begun: 0, parts: Vec::new() })
    }

    fn on_stdout(given: FormatArg, depth: Option<BitDepthArg>, count: u32) -> Result<Self> {
        let format = match given {
            FormatArg::Exr => Format::Exr,
            FormatArg::Npy => Format::Npy,
            FormatArg::Safetensors => Format::Safetensors,
            picture => Format::Picture(ImageFormat::from_path(Path::new(&format!("-.{}", picture.name())))?),
        };
        let format = format.with_depth(depth, &format!("--format {}", given.name()))?;
        if !format.is_array() && count > 1 {
            let expected = "latents of one image, for a picture on stdout (npy and safetensors hold several)";
            return Err(Error::input("--output -", expected, format!("{count} images")));
        }
        Ok(Self { names: vec![PathBuf::from("-")], format, count: count as usize, begun: 0, parts: Vec::new() })
    }

    /// Returns the kind of pixels that the library must deliver.
    pub(super) fn format(&self) -> PixelFormat {
        match self.format {
            Format::Picture(_) => PixelFormat::Rgba8,
            Format::Png16 | Format::Exr | Format::Npy | Format::Safetensors => PixelFormat::Raw,
        }
    }

    /// Prints a note if the files lose the opacity of a model whose images have `channels`
    /// channels.
    pub(super) fn say_lost_alpha(&self, channels: u32) {
        if let Format::Picture(format) = self.format {
            say_lost_alpha(self.first(), format, channels);
        }
    }

    /// Fails if the format cannot hold an image of `size`. Call it before the decode.
    pub(super) fn check_size(&self, size: Size) -> Result<()> {
        match self.format {
            Format::Picture(format) => format.check_size(self.first(), size),
            Format::Png16 | Format::Exr | Format::Npy | Format::Safetensors => Ok(()),
        }
    }

    /// Begins the next image, of `size` pixels and `channels`. Its file appears under its name when
    /// [`Interrupt::write`] gets the result of [`Self::finish`].
    pub(super) fn image(&mut self, size: Size, channels: u32, interrupt: &Interrupt) -> Result<ImageSink<'_>> {
        let index = self.begun;
        self.begun += 1;
        if !self.format.is_array() || self.parts.is_empty() {
            self.parts.push(interrupt.begin(&self.names[index])?);
        }
        let (format, count, last) = (self.format, self.count, self.parts.len() - 1);
        let part = &mut self.parts[last];
        let planes = channels as usize;
        let shape = [count, planes, size.height as usize, size.width as usize];
        let raw = |header: Vec<u8>| RawSink { header, first: index * planes, size };
        let content = match format {
            Format::Picture(ImageFormat::Png) => Content::png(part, size, PngPixels::Rgba8)?,
            Format::Png16 => Content::png(part, size, PngPixels::sixteen_bits(channels))?,
            Format::Picture(format) => Content::Whole { format, size, data: Vec::new() },
            Format::Exr => Content::Exr(ExrImage { size, channels }),
            Format::Npy => Content::Raw(raw(npy_header(&shape))),
            Format::Safetensors => Content::Raw(raw(safetensors_header(&[(TENSOR, &shape)])?)),
        };
        Ok(ImageSink { part, content })
    }

    fn first(&self) -> &Path {
        &self.names[0]
    }

    /// Returns all files, complete except for their final names.
    pub(super) fn finish(self) -> Vec<PartFile> {
        self.parts
    }
}

/// Prints a note if a picture in `format` loses the opacity of a model whose images have `channels`
/// channels.
pub(super) fn say_lost_alpha(path: &Path, format: ImageFormat, channels: u32) {
    if (format, channels) == (ImageFormat::Jpeg, 4) {
        note(path, "JPEG has no transparency: it is dropped, not blended; .png and .webp keep it");
    }
}

/// Writer for the rows of one image.
#[derive(Debug)]
pub(super) struct ImageSink<'a> {
    part: &'a mut PartFile,
    content: Content,
}

/// Method by which rows are written to a file.
#[derive(Debug)]
enum Content {
    /// Rows written as they arrive.
    Png(Box<PngRows>),
    /// Rows collected, because the encoder needs the whole image.
    Whole { format: ImageFormat, size: Size, data: Vec<u8> },
    /// Rows collected, because the output is no file.
    WholePng { pixels: PngPixels, size: Size, data: Vec<u8> },
    /// Rows written as they arrive, after the header.
    Exr(ExrImage),
    /// Rows written to their positions in each of the planes.
    Raw(RawSink),
}

impl Content {
    /// Begins a PNG picture in `part`.
    fn png(part: &mut PartFile, size: Size, pixels: PngPixels) -> Result<Self> {
        Ok(match part.file()? {
            Some(file) => Self::Png(Box::new(PngRows::new(file, size, pixels)?)),
            None => Self::WholePng { pixels, size, data: Vec::new() },
        })
    }
}

impl ImageSink<'_> {
    /// Adds the next rows.
    pub(super) fn add(&mut self, rows: &Rows<'_>) -> Result<()> {
        let added = match (&mut self.content, &rows.pixels) {
            (Content::Png(png), RowPixels::Rgba8(data)) => png.write(data),
            (Content::Whole { data: all, .. } | Content::WholePng { data: all, .. }, RowPixels::Rgba8(data)) => {
                all.extend_from_slice(data);
                Ok(())
            }
            (Content::Png(png), RowPixels::Raw(values)) => png.write_floats(values),
            (Content::WholePng { pixels, data: all, .. }, RowPixels::Raw(values)) => {
                all.extend(pixels.sixteen_bit_rows(values));
                Ok(())
            }
            (Content::Exr(image), RowPixels::Raw(values)) => {
                let header = if rows.rows.start == 0 { image.header() } else { Vec::new() };
                self.part.write_all(&[header, image.rows(rows.rows.clone(), values)].concat())
            }
            (Content::Raw(raw), RowPixels::Raw(values)) => raw.write(self.part, &rows.rows, values),
            (Content::Whole { .. }, RowPixels::Raw(_)) | (Content::Exr(_) | Content::Raw(_), RowPixels::Rgba8(_)) => {
                panic!("the decode delivered another kind of pixels than was asked for")
            }
        };
        added.map_err(|error| self.part.error(error))
    }

    /// Completes the image.
    pub(super) fn finish(self) -> Result<()> {
        let Self { part, content } = self;
        let finished = match content {
            Content::Png(png) => png.finish(),
            Content::Whole { format, size, data } => {
                part.write_all(&encode_image(format, &image_file::Pixels { size, data: &data })?)
            }
            Content::WholePng { pixels, size, data } => part.write_all(&encode_png(size, pixels, &data)?),
            Content::Exr(_) | Content::Raw(_) => Ok(()),
        };
        finished.map_err(|error| part.error(error))
    }
}

/// Writer of f32 planes `[n, c, h, w]` after a header.
#[derive(Debug)]
struct RawSink {
    header: Vec<u8>,
    /// Index of the image's first plane.
    first: usize,
    size: Size,
}

impl RawSink {
    fn write(&self, part: &mut PartFile, rows: &Range<u32>, values: &[f32]) -> std::io::Result<()> {
        let (width, height) = (u64::from(self.size.width), u64::from(self.size.height));
        if self.first == 0 && rows.start == 0 {
            part.seek(SeekFrom::Start(0))?;
            part.write_all(&self.header)?;
        }
        for (plane, values) in (self.first as u64..).zip(values.chunks_exact(rows.len() * self.size.width as usize)) {
            let element = (plane * height + u64::from(rows.start)) * width;
            part.seek(SeekFrom::Start(self.header.len() as u64 + element * 4))?;
            part.write_all(&to_bytes(values))?;
        }
        Ok(())
    }
}
