//! Conversion between numbers of frames and of latents. The first latent stands for one frame, each
//! later one for `factor` frames: with factor 4, that is 4n + 1 frames. Few models have other
//! [`Starts`].

use std::num::NonZeroU32;

use crate::model::config::{AutoencoderConfig, Starts};

/// Number of frames of each latent except the starts of a clip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeFactor {
    factor: NonZeroU32,
    /// True if an encode takes as many frames for the first latent as for any other, and fills up
    /// the last. It then takes any number of frames.
    fills: bool,
    starts: Starts,
}

impl TimeFactor {
    /// The factor of `SeedVR2`, Wan and Qwen-Image: 4.
    pub const FOUR: Self = Self { factor: NonZeroU32::MIN.saturating_add(3), fills: false, starts: Starts::First };

    /// Returns another factor, or `None` for 0.
    pub fn new(factor: u32) -> Option<Self> {
        NonZeroU32::new(factor).map(|factor| Self { factor, fills: false, starts: Starts::First })
    }

    /// Returns the factor of a model, or `None` if it is not for video.
    pub fn of(config: &AutoencoderConfig) -> Option<Self> {
        let factor = Self::new(config.temporal_factor()).filter(|_| config.has_time())?;
        Some(Self { fills: config.fills_parts(), starts: config.starts(), ..factor })
    }

    /// Returns this factor for the frames that a decode makes, where a last part is never short.
    #[must_use]
    pub fn of_decodes(self) -> Self {
        Self { fills: false, ..self }
    }

    fn get(self) -> u64 {
        u64::from(self.factor.get())
    }

    /// Returns the number of frames that `latents` latents decode to. `None` for a number of
    /// latents that the model never has, and on overflow of 64 bits.
    pub fn frames(self, latents: u64) -> Option<u64> {
        let dropped = match self.starts {
            _ if latents == 0 => return None,
            // A chunk of which three latents were dropped comes last.
            Starts::EveryFifth if latents % Starts::CHUNK != 2 => return None,
            Starts::EveryFifth => (latents / Starts::CHUNK + 1).checked_mul(self.get() - 1)?,
            Starts::First | Starts::FirstIfOdd if self.starts.contain(0, latents) => self.get() - 1,
            Starts::First | Starts::FirstIfOdd => 0,
        };
        latents.checked_mul(self.get())?.checked_sub(dropped)
    }

    /// Returns the numbers of latents that have a number of frames, for errors.
    pub fn expected_latents(self) -> &'static str {
        match self.starts {
            Starts::First | Starts::FirstIfOdd => "1 or more frames of latents, as 64 bits hold",
            Starts::EveryFifth => "5n + 2 frames of latents, such as 2, 7 and 12",
        }
    }

    /// Returns the number of latents for this number of frames. `None` if no number of latents
    /// fits.
    pub fn latents(self, frames: u64) -> Option<u64> {
        let latents = match self.starts {
            Starts::EveryFifth => frames / self.period() * Starts::CHUNK + 2,
            Starts::First | Starts::FirstIfOdd => frames.div_ceil(self.get()),
        };
        (latents > 0 && (self.fills || self.frames(latents) == Some(frames))).then_some(latents)
    }

    /// Returns the number of frames that the latents of this number of frames decode to.
    pub fn decoded(self, frames: u64) -> Option<u64> {
        self.frames(self.latents(frames)?)
    }

    /// Returns how many frames must be added for the next number that fits. A later decode must
    /// drop this many at its end.
    pub fn missing(self, frames: u64) -> u64 {
        if self.fills && frames > 0 {
            return 0;
        }
        let period = self.period();
        let until = |rest: u64| (rest + period - frames % period) % period;
        match self.starts {
            Starts::First => until(1 % period),
            Starts::FirstIfOdd if frames > 0 => until(0).min(until(1)),
            Starts::FirstIfOdd => 1,
            Starts::EveryFifth => until(self.get() + 1),
        }
    }

    /// Returns the number of frames after which the numbers that fit repeat.
    pub fn period(self) -> u64 {
        match self.starts {
            Starts::First => self.get(),
            Starts::FirstIfOdd => 2 * self.get(),
            Starts::EveryFifth => (Starts::CHUNK - 1) * self.get() + 1,
        }
    }
}
