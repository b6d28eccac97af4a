//! Facts from a JPEG file's markers that its decoder does not report: the number of components,
//! whether the file is complete, and an Adobe marker that libjpeg ignores. The decoder paints
//! missing parts grey without an error.

use wgvae::Size;

/// Facts from the markers of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct JpegMarkers {
    /// Number of components: 1 for grey, 3 for colours, 4 for CMYK.
    pub(super) components: u8,
    /// True if the file reaches its end marker.
    pub(super) complete: bool,
    /// True if there is a JFIF marker, which means luma and chroma.
    is_jfif: bool,
    /// Position of the name in an Adobe marker that means RGB.
    adobe_rgb: Option<usize>,
}

/// Most pixels that one byte can hold. Every block of 8 by 8 pixels takes at least one bit.
const PIXELS_PER_BYTE: u64 = 8 * 64;

/// True if a file of `bytes` bytes is too short for `size`, for any content.
pub(super) fn is_too_short(bytes: usize, size: Size) -> bool {
    size.pixels() / PIXELS_PER_BYTE > bytes as u64
}

const APP0: u8 = 0xE0;
const APP14: u8 = 0xEE;
/// Position of the colour transform in an Adobe marker: 0 is none.
const TRANSFORM: usize = 11;
const START_OF_SCAN: u8 = 0xDA;
const END_OF_IMAGE: u8 = 0xD9;

impl JpegMarkers {
    /// Reads the markers of a whole file.
    pub(super) fn of(file: &[u8]) -> Self {
        let mut markers = Self::default();
        let mut rest = file.get(2..).unwrap_or_default();
        while let Some((marker, after)) = next_marker(rest) {
            if marker == END_OF_IMAGE {
                markers.complete = true;
                break;
            }
            let Some((segment, after)) = segment(after) else { break };
            if is_frame(marker) {
                // The component count comes after precision, height and width.
                markers.components = segment.get(5).copied().unwrap_or_default();
            }
            markers.is_jfif |= marker == APP0 && segment.starts_with(b"JFIF\0");
            if marker == APP14 && segment.starts_with(b"Adobe") && segment.get(TRANSFORM) == Some(&0) {
                markers.adobe_rgb = Some(file.len() - after.len() - segment.len());
            }
            rest = if marker == START_OF_SCAN { after_scan(after) } else { after };
        }
        markers
    }

    /// Returns the position of the Adobe marker's name if libjpeg would ignore it: of two markers
    /// that disagree about three components, that of JFIF counts.
    pub(super) fn ignored(&self) -> Option<usize> {
        self.adobe_rgb.filter(|_| self.is_jfif && self.components == 3)
    }
}

/// Finds the next marker and the bytes after it. Any number of 0xFF may precede a marker.
fn next_marker(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let start = bytes.windows(2).position(|pair| pair[0] == 0xFF && !matches!(pair[1], 0 | 0xFF))?;
    Some((bytes[start + 1], &bytes[start + 2..]))
}

/// Splits off the content of the segment that begins with its length.
fn segment(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::from(u16::from_be_bytes([*bytes.first()?, *bytes.get(1)?]));
    let content = bytes.get(2..length)?;
    Some((content, &bytes[length..]))
}

/// Returns the bytes from the first marker that ends the scan. Restart markers are part of it.
fn after_scan(bytes: &[u8]) -> &[u8] {
    let end = bytes.windows(2).position(|pair| pair[0] == 0xFF && !matches!(pair[1], 0 | 0xD0..=0xD7 | 0xFF));
    end.map_or(&[], |end| &bytes[end..])
}

/// True if a segment describes a frame.
fn is_frame(marker: u8) -> bool {
    // This range also holds Huffman tables, arithmetic coding tables and an extension.
    matches!(marker, 0xC0..=0xCF) && !matches!(marker, 0xC4 | 0xC8 | 0xCC)
}
