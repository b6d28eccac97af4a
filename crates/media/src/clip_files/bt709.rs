//! Conversion of `R'G'B'` to `Y'CbCr` and back, by Recommendation ITU-R BT.709-6, part 1, items 3.2
//! to 3.5. It has 8 and 10 bits; 12 bits use the same formula, as in BT.2020:
//!
//! ```text
//! E'Y  = 0.2126 E'R + 0.7152 E'G + 0.0722 E'B      D'Y  = INT[(219 E'Y  +  16) 2^(n-8)]
//! E'CB = (E'B - E'Y) / 1.8556                      D'CB = INT[(224 E'CB + 128) 2^(n-8)]
//! E'CR = (E'R - E'Y) / 1.5748                      D'CR = INT[(224 E'CR + 128) 2^(n-8)]
//! ```
//!
//! This is the limited range. Some y4m files say that they use the full range: levels from 0 to 2^n
//! - 1 (JFIF 1.02).

use super::options::Bits;

const RED: f32 = 0.2126;
const GREEN: f32 = 0.7152;
const BLUE: f32 = 0.0722;
const CB: f32 = 1.8556;
const CR: f32 = 1.5748;

/// Scale and offset of luma and chroma levels in a file with n bits: (levels from black to white,
/// level of black), and (levels of colour differences, level of grey).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantiser {
    luma: (f32, f32),
    chroma: (f32, f32),
}

impl Quantiser {
    /// Returns the quantiser of the limited range.
    pub fn limited(bits: Bits) -> Self {
        let unit: f32 = (1_u16 << (bits.get() - 8)).into();
        let scaled = |(range, offset): (f32, f32)| (range * unit, offset * unit);
        Self { luma: scaled((219.0, 16.0)), chroma: scaled((224.0, 128.0)) }
    }

    /// Returns the quantiser of the full range.
    pub fn full(bits: Bits) -> Self {
        let most = f32::from((1_u16 << bits.get()) - 1);
        Self { luma: (most, 0.0), chroma: (most, (1_u16 << (bits.get() - 1)).into()) }
    }

    /// Converts R', G', B' in 0 to 1 to levels Y', Cb, Cr.
    pub fn levels(&self, [red, green, blue]: [f32; 3]) -> [u16; 3] {
        let luma = RED * red + GREEN * green + BLUE * blue;
        let level = |value: f32, (range, offset): (f32, f32)| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "12 bits, and cut off at 0")]
            let level = (value * range + offset + 0.5).floor() as u16;
            level
        };
        [level(luma, self.luma), level((blue - luma) / CB, self.chroma), level((red - luma) / CR, self.chroma)]
    }

    /// Converts levels Y', Cb, Cr to R', G', B', clamped to 0 to 1. Levels may be fractions,
    /// because chroma is interpolated.
    pub fn rgb(&self, [luma, cb, cr]: [f32; 3]) -> [f32; 3] {
        let value = |level: f32, (range, offset): (f32, f32)| (level - offset) / range;
        let luma = value(luma, self.luma);
        let red = luma + CR * value(cr, self.chroma);
        let blue = luma + CB * value(cb, self.chroma);
        let green = (luma - RED * red - BLUE * blue) / GREEN;
        [red, green, blue].map(|value| value.clamp(0.0, 1.0))
    }

    /// Converts a level of a grey picture to 0 to 1.
    pub fn grey(&self, luma: f32) -> f32 {
        ((luma - self.luma.1) / self.luma.0).clamp(0.0, 1.0)
    }
}
