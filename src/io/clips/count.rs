//! Conversion between numbers of frames and of latents. The first latent stands for one frame, each
//! later one for `factor` frames. All video VAEs here have factor 4: 4n + 1 frames.

use std::num::NonZeroU32;

/// Number of frames of each latent except the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeFactor(NonZeroU32);

impl TimeFactor {
    /// The factor of `SeedVR2`, Wan and Qwen-Image: 4.
    pub const FOUR: Self = Self(NonZeroU32::MIN.saturating_add(3));

    /// Returns another factor, or `None` for 0.
    pub fn new(factor: u32) -> Option<Self> {
        NonZeroU32::new(factor).map(Self)
    }

    fn get(self) -> u64 {
        u64::from(self.0.get())
    }

    /// Returns the number of frames that `latents` latents decode to. `None` for no latents, and on
    /// overflow of 64 bits.
    pub fn frames(self, latents: u64) -> Option<u64> {
        latents.checked_sub(1)?.checked_mul(self.get())?.checked_add(1)
    }

    /// Returns the number of latents for this number of frames. `None` if no number of latents
    /// fits.
    pub fn latents(self, frames: u64) -> Option<u64> {
        let later = frames.checked_sub(1)?;
        later.is_multiple_of(self.get()).then(|| later / self.get() + 1)
    }

    /// Returns how many frames must be added for the next number that fits. A later decode must
    /// drop this many at its end.
    pub fn missing(self, frames: u64) -> u64 {
        let beyond = frames.saturating_sub(1) % self.get();
        if frames == 0 {
            1
        } else if beyond == 0 {
            0
        } else {
            self.get() - beyond
        }
    }
}
