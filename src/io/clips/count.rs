//! How many frames belong to how many latents: the first latent is one frame, each later one
//! `factor` frames (4 in every video VAE here: 4n + 1 frames).

use std::num::NonZeroU32;

/// Frames of each latent but the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeFactor(NonZeroU32);

impl TimeFactor {
    /// That of `SeedVR2`, Wan and Qwen-Image: 4.
    pub const FOUR: Self = Self(NonZeroU32::MIN.saturating_add(3));

    /// Another; none for 0.
    pub fn new(factor: u32) -> Option<Self> {
        NonZeroU32::new(factor).map(Self)
    }

    fn get(self) -> u64 {
        u64::from(self.0.get())
    }

    /// The frames that `latents` latents are decoded to; none for no latents, or more than 64 bits
    /// count.
    pub fn frames(self, latents: u64) -> Option<u64> {
        latents.checked_sub(1)?.checked_mul(self.get())?.checked_add(1)
    }

    /// The latents of so many frames; none where the frames are not as many as any latents have.
    pub fn latents(self, frames: u64) -> Option<u64> {
        let later = frames.checked_sub(1)?;
        later.is_multiple_of(self.get()).then(|| later / self.get() + 1)
    }

    /// How many frames are missing to the next number that latents have. After a decode as many are
    /// to be cut off at the end.
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
