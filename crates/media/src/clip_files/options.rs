//! Options of a clip besides its file name: frames per second, bits of a level.

use std::fmt;
use std::str::FromStr;

/// Frames per second, as a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fps {
    /// Number of frames in `seconds`.
    pub frames: u32,
    /// Number of seconds that `frames` take.
    pub seconds: u32,
}

impl Default for Fps {
    fn default() -> Self {
        Self { frames: 24, seconds: 1 }
    }
}

impl fmt::Display for Fps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.frames, self.seconds)
    }
}

/// Largest numerator and denominator of frames per second: file formats store them in few bits.
const MOST: u32 = 1_000_000;

impl FromStr for Fps {
    type Err = String;

    /// Parses `24`, `23.976` or `24000/1001`.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        let parse = || match (text.split_once('/'), text.split_once('.')) {
            (Some((frames, seconds)), _) => Some((number(frames)?, number(seconds)?)),
            (None, Some((whole, decimals))) => {
                let seconds = 10_u32.checked_pow(u32::try_from(decimals.len()).ok()?)?;
                Some((number(&format!("{whole}{decimals}"))?, seconds))
            }
            (None, None) => Some((number(text)?, 1)),
        };
        let usable = |fps: &(u32, u32)| (1..=MOST).contains(&fps.0) && (1..=MOST).contains(&fps.1);
        match parse().filter(usable) {
            Some((frames, seconds)) => Ok(Self { frames, seconds }),
            None => Err("expected frames a second, such as 24, 29.97 or 30000/1001".to_owned()),
        }
    }
}

/// Number of bits of a level in a video.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bits {
    /// 8 bits.
    Eight,
    /// 10 bits.
    Ten,
    /// 12 bits.
    Twelve,
}

impl Bits {
    /// Returns the number of bits.
    pub fn get(self) -> u32 {
        match self {
            Self::Eight => 8,
            Self::Ten => 10,
            Self::Twelve => 12,
        }
    }

    /// Returns the greatest level of a sample.
    pub(super) fn greatest(self) -> u16 {
        u16::MAX >> (16 - self.get())
    }
}

impl FromStr for Bits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "8" => Ok(Self::Eight),
            "10" => Ok(Self::Ten),
            "12" => Ok(Self::Twelve),
            _ => Err("expected 8, 10 or 12".to_owned()),
        }
    }
}
