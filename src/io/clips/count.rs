//! Conversion between numbers of frames and of latents. The first latent stands for one frame, each
//! later one for `factor` frames: with factor 4, that is 4n + 1 frames.

use std::num::NonZeroU32;

use crate::model::config::AutoencoderConfig;

/// Number of frames of each latent except the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeFactor {
    factor: NonZeroU32,
    /// True if an encode takes as many frames for the first latent as for any other, and fills up
    /// the last. It then takes any number of frames.
    fills: bool,
}

impl TimeFactor {
    /// The factor of `SeedVR2`, Wan and Qwen-Image: 4.
    pub const FOUR: Self = Self { factor: NonZeroU32::MIN.saturating_add(3), fills: false };

    /// Returns another factor, or `None` for 0.
    pub fn new(factor: u32) -> Option<Self> {
        NonZeroU32::new(factor).map(|factor| Self { factor, fills: false })
    }

    /// Returns the factor of a model, or `None` if it is not for video.
    pub fn of(config: &AutoencoderConfig) -> Option<Self> {
        let factor = Self::new(config.temporal_factor()).filter(|_| config.has_time())?;
        Some(Self { fills: config.fills_parts(), ..factor })
    }

    /// Returns this factor for the frames that a decode makes, where a last part is never short.
    #[must_use]
    pub fn of_decodes(self) -> Self {
        Self { fills: false, ..self }
    }

    fn get(self) -> u64 {
        u64::from(self.factor.get())
    }

    /// Returns the number of frames that `latents` latents decode to. `None` for no latents, and on
    /// overflow of 64 bits.
    pub fn frames(self, latents: u64) -> Option<u64> {
        latents.checked_sub(1)?.checked_mul(self.get())?.checked_add(1)
    }

    /// Returns the number of latents for this number of frames. `None` if no number of latents
    /// fits.
    pub fn latents(self, frames: u64) -> Option<u64> {
        if self.fills {
            return (frames > 0).then(|| frames.div_ceil(self.get()));
        }
        let later = frames.checked_sub(1)?;
        later.is_multiple_of(self.get()).then(|| later / self.get() + 1)
    }

    /// Returns the number of frames that the latents of this number of frames decode to.
    pub fn decoded(self, frames: u64) -> Option<u64> {
        self.frames(self.latents(frames)?)
    }

    /// Returns how many frames must be added for the next number that fits. A later decode must
    /// drop this many at its end.
    pub fn missing(self, frames: u64) -> u64 {
        let beyond = frames.saturating_sub(1) % self.get();
        if frames == 0 {
            1
        } else if beyond == 0 || self.fills {
            0
        } else {
            self.get() - beyond
        }
    }
}
