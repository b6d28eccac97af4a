//! What a JPEG file's markers say that its decoder does not: how many components it has, and
//! whether all of it is there. The decoder paints what is missing grey and reports no error.

use crate::tensor::Size;

/// What the markers say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct JpegMarkers {
    /// 1 for grey, 3 for colours, 4 for CMYK.
    pub(super) components: u8,
    /// Whether the file goes on to its end marker.
    pub(super) complete: bool,
}

/// Pixels that a byte can hold at most: there is at least one bit for every block of 8 by 8.
const PIXELS_PER_BYTE: u64 = 8 * 64;

/// Whether a file of `bytes` is too short for `size`, whatever is in it.
pub(super) fn is_too_short(bytes: usize, size: Size) -> bool {
    size.pixels() / PIXELS_PER_BYTE > bytes as u64
}

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
                // After the precision, the height and the width.
                markers.components = segment.get(5).copied().unwrap_or_default();
            }
            rest = if marker == START_OF_SCAN { after_scan(after) } else { after };
        }
        markers
    }
}

/// The next marker, and what comes after it. A marker may be preceded by any number of 0xFF.
fn next_marker(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let start = bytes.windows(2).position(|pair| pair[0] == 0xFF && !matches!(pair[1], 0 | 0xFF))?;
    Some((bytes[start + 1], &bytes[start + 2..]))
}

/// The content of the segment that begins with its length, and what comes after it.
fn segment(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = usize::from(u16::from_be_bytes([*bytes.first()?, *bytes.get(1)?]));
    let content = bytes.get(2..length)?;
    Some((content, &bytes[length..]))
}

/// From the first marker on that is not part of a scan's data, as restarts are.
fn after_scan(bytes: &[u8]) -> &[u8] {
    let end = bytes.windows(2).position(|pair| pair[0] == 0xFF && !matches!(pair[1], 0 | 0xD0..=0xD7 | 0xFF));
    end.map_or(&[], |end| &bytes[end..])
}

/// Whether a segment describes a frame.
fn is_frame(marker: u8) -> bool {
    // Among them are tables of Huffman codes, of arithmetic coding, and an extension.
    matches!(marker, 0xC0..=0xCF) && !matches!(marker, 0xC4 | 0xC8 | 0xCC)
}
