//! The first line of a y4m file. The `y4m` crate also parses it, but multiplies width and height
//! without a check, and does not name an unknown colour space.

use std::io::{BufRead, Read as _};

use wgvae::internals::MAX_PIXELS;
use wgvae::{Error, Result, Size};

use super::super::bt709::Quantiser;
use super::super::chroma::Siting;
use super::super::options::{Bits, Fps};

/// Longest first line that the `y4m` crate accepts, in bytes with the line end.
const MOST_BYTES: u64 = 1024;

const MAGIC: &str = "YUV4MPEG2";

/// Sample format of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) bits: Bits,
    /// Position of chroma samples, across and down. `None` in grey pictures.
    pub(super) chroma: Option<(Siting, Siting)>,
}

/// Layouts by colour space name. A plain 420 is what mjpegtools calls 420jpeg: samples between the
/// pixels both ways.
const LAYOUTS: &[(&str, Layout)] = {
    use Bits::{Eight, Ten, Twelve};
    use Siting::{Between, Every, First};
    const fn row(bits: Bits, across: Siting, down: Siting) -> Layout {
        Layout { bits, chroma: Some((across, down)) }
    }
    &[
        ("420", row(Eight, Between, Between)),
        ("420jpeg", row(Eight, Between, Between)),
        ("420mpeg2", row(Eight, First, Between)),
        ("420paldv", row(Eight, First, First)),
        ("420p10", row(Ten, First, Between)),
        ("420p12", row(Twelve, First, Between)),
        ("422", row(Eight, First, Every)),
        ("422p10", row(Ten, First, Every)),
        ("422p12", row(Twelve, First, Every)),
        ("444", row(Eight, Every, Every)),
        ("444p10", row(Ten, Every, Every)),
        ("444p12", row(Twelve, Every, Every)),
        ("mono", Layout { bits: Eight, chroma: None }),
        ("mono12", Layout { bits: Twelve, chroma: None }),
    ]
};

impl Layout {
    /// Returns the number of bytes of a frame of `size`.
    pub(super) fn bytes(&self, size: Size) -> u64 {
        let chroma = self.chroma.map_or(0, |(across, down)| {
            2 * u64::from(across.samples(size.width)) * u64::from(down.samples(size.height))
        });
        (size.pixels() + chroma) * self.sample_bytes()
    }

    fn sample_bytes(&self) -> u64 {
        if self.bits == Bits::Eight { 1 } else { 2 }
    }
}

/// The content of the first line.
#[derive(Debug, Clone)]
pub(super) struct Header {
    /// The line with its line end.
    pub(super) line: Vec<u8>,
    pub(super) size: Size,
    pub(super) layout: Layout,
    pub(super) quantiser: Quantiser,
    /// Width and height of a pixel as shown, unless it is a square or they are not known.
    pub(super) aspect: Option<(u32, u32)>,
    /// Frames per second, unless they are not known (`0:0`).
    pub(super) fps: Option<Fps>,
}

impl Header {
    /// Reads the first line, and not a byte more.
    pub(super) fn read(reader: &mut dyn BufRead, file: &str) -> Result<Self> {
        let mut line = Vec::new();
        reader.take(MOST_BYTES).read_until(b'\n', &mut line).map_err(|source| Error::io(file, source))?;
        if line.is_empty() {
            return Err(Error::format(file, "it is empty, but a y4m file begins with YUV4MPEG2"));
        }
        let text = String::from_utf8_lossy(&line).into_owned();
        let mut fields = text.split(' ');
        if fields.next() != Some(MAGIC) {
            return Err(Error::format(file, "not a y4m file: it does not begin with YUV4MPEG2"));
        }
        let text = text.strip_suffix('\n').ok_or_else(|| match line.len() as u64 {
            MOST_BYTES => Error::format(file, format!("its header has more than {MOST_BYTES} bytes")),
            _ => Error::format(file, "cut short within its header"),
        })?;
        let last = |name: char| text.split(' ').skip(1).filter_map(|field| field.strip_prefix(name)).last();
        let side = |name: char| last(name).and_then(|side| side.parse().ok()).unwrap_or_default();
        let size = Size { width: side('W'), height: side('H') };
        if size.pixels() == 0 || size.pixels() > MAX_PIXELS {
            let found = format!("W{} H{}", last('W').unwrap_or("-"), last('H').unwrap_or("-"));
            return Err(Error::input(format!("size of {file}"), format!("1 to {MAX_PIXELS} pixels"), found));
        }
        let name = last('C').unwrap_or("420");
        let layout = LAYOUTS.iter().find(|(known, _)| *known == name).map(|(_, layout)| *layout).ok_or_else(|| {
            let known: Vec<&str> = LAYOUTS.iter().map(|(known, _)| *known).collect();
            Error::input(
                format!("colour space of {file}"),
                format!("one of {}", known.join(", ")),
                format!("\"{name}\""),
            )
        })?;
        if let Some(order) = last('I').filter(|order| !matches!(*order, "p" | "?")) {
            let found = format!("I{order}, which is interlaced");
            return Err(Error::input(
                format!("frames of {file}"),
                "whole pictures (Ip): deinterlace them first",
                found,
            ));
        }
        let is_full = text.split(' ').any(|field| field == "XCOLORRANGE=FULL");
        let quantiser = if is_full { Quantiser::full(layout.bits) } else { Quantiser::limited(layout.bits) };
        let aspect = last('A').and_then(stretched);
        let fps = last('F').and_then(|fps| fps.replace(':', "/").parse().ok());
        Ok(Self { size, layout, quantiser, aspect, fps, line })
    }
}

/// Parses a pixel's shape such as `10:11`. Returns `None` for a square and for one that is not
/// known, `0:0`.
fn stretched(shape: &str) -> Option<(u32, u32)> {
    let (width, height) = shape.split_once(':')?;
    let (width, height) = (width.parse().ok()?, height.parse().ok()?);
    (width != height && width > 0 && height > 0).then_some((width, height))
}
