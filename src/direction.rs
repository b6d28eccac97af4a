//! The two directions of a VAE.

use serde::{Deserialize, Serialize};

/// One direction of a VAE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Latents to images.
    #[default]
    Decode,
    /// Images to latents.
    Encode,
}

impl Direction {
    /// Both directions.
    pub const ALL: [Self; 2] = [Self::Decode, Self::Encode];

    /// Returns the name of one run in this direction.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Encode => "encode",
        }
    }
}

/// The directions in which a VAE is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Directions {
    /// Latents to images.
    #[default]
    Decode,
    /// Images to latents.
    Encode,
    /// Both.
    Both,
}

impl Directions {
    /// True if latents are decoded to images.
    pub fn decodes(self) -> bool {
        self != Self::Encode
    }

    /// True if images are encoded to latents.
    pub fn encodes(self) -> bool {
        self != Self::Decode
    }
}

impl From<Direction> for Directions {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Decode => Self::Decode,
            Direction::Encode => Self::Encode,
        }
    }
}
