//! The orientation of a picture, from every place where Pillow's `ImageOps.exif_transpose` looks:
//! EXIF data, else XMP data. PNG files may have both after their pixels, and EXIF data as text.

use std::io::Cursor;

use image::metadata::Orientation;
use image::{ImageDecoder, ImageFormat};

/// Keyword of the text that `ImageMagick` writes EXIF data to, in hexadecimal digits.
const EXIF_TEXT: &str = "Raw profile type exif";
const XMP_TEXT: &str = "XML:com.adobe.xmp";

/// Chunks of a PNG file that belong to its pixels.
const PIXELS: [&[u8]; 4] = [b"IDAT", b"fdAT", b"fcTL", b"acTL"];

/// Most bytes of metadata in a PNG file: the limit of `image`, which reads the picture.
const MOST_BYTES: usize = 512 << 20;

/// A chunk of no pixels, with its checksum.
const NO_PIXELS: &[u8] = b"\0\0\0\0IDAT\x35\xaf\x06\x1e";

/// Returns the orientation of a whole file. `decoder` has read its header.
pub(super) fn orientation(format: ImageFormat, file: &[u8], decoder: &mut impl ImageDecoder) -> Orientation {
    let whole = (format == ImageFormat::Png).then(|| Metadata::of_png(file)).flatten();
    let Metadata { exif, xmp } = whole.unwrap_or_else(|| Metadata {
        exif: decoder.exif_metadata().ok().flatten(),
        xmp: decoder.xmp_metadata().ok().flatten(),
    });
    let exif = exif.as_deref().map(|exif| exif.strip_prefix(b"Exif\0\0").unwrap_or(exif));
    let found = match exif.filter(|exif| has_orientation(exif) == Some(true)) {
        Some(exif) => Orientation::from_exif_chunk(exif),
        None => xmp.as_deref().and_then(by_xmp),
    };
    found.unwrap_or(Orientation::NoTransforms)
}

/// Tag of an orientation in EXIF data.
const ORIENTATION: usize = 0x112;

/// Returns true if EXIF data has an orientation, even an undefined one: then XMP data does not
/// count. Returns `None` if the data are damaged.
fn has_orientation(exif: &[u8]) -> Option<bool> {
    let (magic, rest) = exif.split_first_chunk::<4>()?;
    let is_little = magic == b"II*\0";
    if !is_little && magic != b"MM\0*" {
        return None;
    }
    let shifted = |sum: usize, byte: &u8| (sum << 8) | usize::from(*byte);
    let number = |bytes: &[u8]| {
        if is_little { bytes.iter().rev().fold(0, shifted) } else { bytes.iter().fold(0, shifted) }
    };
    let (count, entries) = exif.get(number(rest.get(..4)?)..)?.split_at_checked(2)?;
    let mut entries = entries.as_chunks::<12>().0.iter().take(number(count));
    Some(entries.any(|entry| number(&entry[..2]) == ORIENTATION))
}

/// Metadata that may have an orientation.
#[derive(Debug, Clone)]
struct Metadata {
    exif: Option<Vec<u8>>,
    xmp: Option<Vec<u8>>,
}

impl Metadata {
    /// Returns the metadata anywhere in a PNG file, or `None` if it is damaged.
    fn of_png(file: &[u8]) -> Option<Self> {
        let limits = png::Limits { bytes: MOST_BYTES };
        let reader = png::Decoder::new_with_limits(Cursor::new(without_pixels(file)?), limits).read_info().ok()?;
        let info = reader.info();
        let exif = info.exif_metadata.as_ref().map(|exif| exif.to_vec());
        let plain = info.uncompressed_latin1_text.iter().find(|text| text.keyword == EXIF_TEXT);
        let packed = info.compressed_latin1_text.iter().find(|text| text.keyword == EXIF_TEXT);
        let text = plain.map(|text| text.text.clone()).or_else(|| {
            let mut text = packed?.clone();
            text.decompress_text().ok().and_then(|()| text.get_text().ok())
        });
        let xmp = info.utf8_text.iter().find(|text| text.keyword == XMP_TEXT).and_then(|text| {
            let mut text = text.clone();
            text.decompress_text().ok().and_then(|()| text.get_text().ok())
        });
        Some(Self { exif: exif.or_else(|| from_hex(&text?)), xmp: xmp.map(String::into_bytes) })
    }
}

/// Copies a PNG file without its pixels, so that the chunks after them come before the end of the
/// header.
fn without_pixels(file: &[u8]) -> Option<Vec<u8>> {
    let (signature, mut rest) = file.split_at_checked(8)?;
    let mut header = signature.to_vec();
    while let Some((length, _)) = rest.split_first_chunk() {
        // A chunk also has its kind, the length itself and a checksum.
        let bytes = usize::try_from(u32::from_be_bytes(*length)).ok()?.checked_add(12)?;
        let Some((chunk, after)) = rest.split_at_checked(bytes) else { break };
        // Bytes may follow the end, such as a whole other file.
        if &chunk[4..8] == b"IEND" {
            break;
        }
        if !PIXELS.contains(&&chunk[4..8]) {
            header.extend_from_slice(chunk);
        }
        rest = after;
    }
    header.extend_from_slice(NO_PIXELS);
    Some(header)
}

/// Parses the text of a raw profile: an empty line, its name, its length, and digits in lines.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text.lines().skip(3).flat_map(str::chars).map_while(|digit| digit.to_digit(16)).collect();
    digits.as_chunks().0.iter().map(|[high, low]| u8::try_from(16 * high + low).ok()).collect()
}

/// Finds the orientation in XMP data, as an attribute or an element.
fn by_xmp(xmp: &[u8]) -> Option<Orientation> {
    let text = String::from_utf8_lossy(xmp);
    let number = text.split("tiff:Orientation").skip(1).find_map(|rest| {
        let value = rest.strip_prefix("=\"").or_else(|| rest.strip_prefix('>'))?;
        value.chars().next()?.to_digit(10)
    });
    Orientation::from_exif(u8::try_from(number?).ok()?)
}
