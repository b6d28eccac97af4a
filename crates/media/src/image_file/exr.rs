//! `OpenEXR` files of 32-bit floats, row by row. Without compression the place of each row is known
//! before the first, so a file is written from its start to its end.
//!
//! The format: <https://openexr.com/en/latest/OpenEXRFileLayout.html>.

use std::ops::Range;

use wgvae::Size;

/// File's first bytes: the format's mark, and version 2 with rows of one picture.
const START: [u8; 8] = [0x76, 0x2f, 0x31, 0x01, 2, 0, 0, 0];

/// Number of bytes of a value.
const VALUE_BYTES: u32 = 4;

/// Number that stands for f32 in the list of channels.
const FLOAT: u32 = 2;

/// Note for people: most programs expect linear light and premultiplied colours in this format.
const COMMENTS: &str = "values as displayed (sRGB-encoded), not linear light; straight alpha";

/// Image to be written as `OpenEXR`: red, green, blue, and perhaps straight opacity.
#[derive(Debug, Clone, Copy)]
pub struct ExrImage {
    /// Extent in pixels.
    pub size: Size,
    /// Number of channels, 3 or 4.
    pub channels: u32,
}

impl ExrImage {
    /// Names of the channels in the order of the planes.
    fn names(self) -> &'static [u8] {
        if self.channels == 4 { b"RGBA" } else { b"RGB" }
    }

    /// Returns channels in the order of the file, which is that of their names: each with its
    /// plane.
    fn sorted(self) -> Vec<(u8, usize)> {
        let mut names: Vec<(u8, usize)> = self.names().iter().copied().zip(0..).collect();
        names.sort_unstable();
        names
    }

    /// Number of bytes of one row's values.
    fn row_bytes(self) -> u32 {
        self.size.width * self.channels * VALUE_BYTES
    }

    /// Returns all bytes before the first row: the attributes and the place of every row.
    pub fn header(self) -> Vec<u8> {
        let Size { width, height } = self.size;
        let channel = |(name, _): (u8, usize)| [&[name, 0][..], &words(&[FLOAT, 0, 1, 1])].concat();
        let channels = [self.sorted().into_iter().flat_map(channel).collect(), vec![0]].concat();
        let window = words(&[0, 0, width.saturating_sub(1), height.saturating_sub(1)]);
        let one = 1.0_f32.to_bits();
        let attributes = [
            attribute("channels", "chlist", &channels),
            attribute("comments", "string", COMMENTS.as_bytes()),
            attribute("compression", "compression", &[0]),
            attribute("dataWindow", "box2i", &window),
            attribute("displayWindow", "box2i", &window),
            attribute("lineOrder", "lineOrder", &[0]),
            attribute("pixelAspectRatio", "float", &words(&[one])),
            attribute("screenWindowCenter", "v2f", &words(&[0, 0])),
            attribute("screenWindowWidth", "float", &words(&[one])),
        ];
        let mut header = [&START[..], &attributes.concat(), &[0]].concat();
        let first = header.len() as u64 + u64::from(height) * size_of::<u64>() as u64;
        // A row has its number and its length before its values.
        let step = 2 * size_of::<u32>() as u64 + u64::from(self.row_bytes());
        header.extend((0..u64::from(height)).flat_map(|row| (first + row * step).to_le_bytes()));
        header
    }

    /// Returns the bytes of `rows`, whose values are `[c, rows, w]`, -1 to 1. They are mapped to 0
    /// to 1, and neither clamped nor rounded.
    pub fn rows(self, rows: Range<u32>, values: &[f32]) -> Vec<u8> {
        let (width, plane) = (self.size.width as usize, rows.len() * self.size.width as usize);
        let channels = self.sorted();
        let row = |(index, row): (usize, u32)| {
            let line = |&(_, channel): &(u8, usize)| &values[channel * plane + index * width..][..width];
            let values = channels.iter().flat_map(line).flat_map(|value| value.mul_add(0.5, 0.5).to_le_bytes());
            words(&[row, self.row_bytes()]).into_iter().chain(values).collect::<Vec<u8>>()
        };
        rows.enumerate().flat_map(row).collect()
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn attribute(name: &str, kind: &str, value: &[u8]) -> Vec<u8> {
    #[expect(clippy::cast_possible_truncation, reason = "some dozens of bytes")]
    let length = words(&[value.len() as u32]);
    [name.as_bytes(), &[0], kind.as_bytes(), &[0], &length, value].concat()
}
