//! Clips: video that is decoded or encoded part by part. Each frame depends only on itself and
//! earlier frames, so a clip of any length takes the memory of one part.

use super::clip_parts::ClipState;
use super::clip_plans::ClipPlans;
use super::latents::check_size;
use super::options::{DecodeOptions, EncodeOptions};
use super::tiled_clip::TiledClip;
use super::{Fallback, Images, Latents, Pixels, Ready, Vae};
use crate::error::{Error, Result};
use crate::gpu::{Control, RunReport};
use crate::tensor::{HostTensor, Size};

/// A clip that is being decoded or encoded. An error in the middle ends it: begin another clip
/// then.
#[derive(Debug)]
pub struct Clip<'a> {
    vae: &'a mut Vae,
    work: Work,
}

/// The state of the clip: whole, or in tiles.
#[derive(Debug)]
enum Work {
    Whole(ClipState),
    Tiles(TiledClip),
}

impl Vae {
    /// Begins to decode a clip of latents of `latent_size`. Allocates the states that its first
    /// part leaves for the next. With `unscaled`, the latents are the VAE's own.
    ///
    /// # Errors
    /// See [`super::plan_clip_decode`]; [`Error::Input`] if the VAE was not loaded to decode clips
    /// ([`super::LoadOptions::clips`]); [`Error::Device`], [`Error::HostMemory`].
    pub async fn decode_clip(
        &mut self,
        latent_size: Size,
        unscaled: bool,
        options: &DecodeOptions,
    ) -> Result<Clip<'_>> {
        check_size("size", latent_size)?;
        let work = match options.tiling.grid(latent_size) {
            Some(grid) => Work::Tiles(self.begin_tiles(grid, unscaled, options).await?),
            None => Work::Whole(self.begin_decode(latent_size, unscaled, options).await?),
        };
        Ok(Clip { vae: self, work })
    }

    /// Begins to encode a clip of frames of `image_size` pixels. Allocates the states that its
    /// first part leaves for the next.
    ///
    /// # Errors
    /// See [`super::plan_clip_encode`]; [`Error::Input`] if the VAE was not loaded to encode clips
    /// ([`super::LoadOptions::clips`]); [`Error::Device`], [`Error::HostMemory`].
    pub async fn encode_clip(&mut self, image_size: Size, options: &EncodeOptions) -> Result<Clip<'_>> {
        let work = Work::Whole(self.begin_encode(image_size, options).await?);
        Ok(Clip { vae: self, work })
    }
}

impl Clip<'_> {
    /// Returns the clip's plans.
    pub fn plans(&self) -> &ClipPlans {
        match &self.work {
            Work::Whole(clip) => clip.plans(),
            Work::Tiles(clip) => clip.plans(),
        }
    }

    /// Returns the VAE that decodes or encodes the clip.
    pub fn vae(&self) -> &Vae {
        self.vae
    }

    /// Returns the smaller plan that the last part used, if the device had too little memory for
    /// the first.
    pub fn fallback(&self) -> Option<&Fallback> {
        self.vae.ready.as_ref()?.fallback.as_ref()
    }

    /// Returns the number of input frames that the next part takes. For a decode it is always one
    /// frame of latents. For an encode it is one image at first, and then as many as one frame of
    /// latents stands for.
    pub fn wants(&self) -> u32 {
        match &self.work {
            Work::Whole(clip) => clip.wants(),
            Work::Tiles(_) => 1,
        }
    }

    /// Decodes frame `index` of `latents`, `[n, c, h, w]`, as the clip's next frame of latents.
    /// Hands the resulting frames to `sink`, in order.
    ///
    /// # Errors
    /// [`Error::Input`] if the latents do not fit the clip, or an error has ended it;
    /// [`Error::Cancelled`], [`Error::NotFinite`], [`Error::Device`], [`Error::HostMemory`], or an
    /// error of `sink`.
    pub async fn decode(
        &mut self,
        latents: &Latents,
        index: u32,
        control: &mut Control<'_>,
        sink: &mut dyn FnMut(Pixels) -> Result<()>,
    ) -> Result<RunReport> {
        match &mut self.work {
            Work::Whole(clip) => self.vae.decode_part(clip, latents, index, control, sink).await,
            Work::Tiles(clip) => self.vae.decode_part_of_tiles(clip, latents, index, control, sink).await,
        }
    }

    /// Encodes the clip's next [`Self::wants`] frames, `[frames, 3, h, w]` in -1..1. Returns the
    /// moments of one frame of the VAE's own latents, `[c, h, w]`: see [`super::Encoded::moments`].
    ///
    /// # Errors
    /// [`Error::Input`] if the frames do not fit the clip, or an error has ended it;
    /// [`Error::Cancelled`], [`Error::NotFinite`], [`Error::Device`], [`Error::HostMemory`].
    pub async fn encode(&mut self, frames: &Images, control: &mut Control<'_>) -> Result<(HostTensor, RunReport)> {
        match &mut self.work {
            Work::Whole(clip) => self.vae.encode_part(clip, frames, control).await,
            Work::Tiles(_) => {
                Err(Error::input("frames", "a clip that is being encoded", "a clip that is being decoded in tiles"))
            }
        }
    }
}

impl Drop for Clip<'_> {
    fn drop(&mut self) {
        // A part whose future was dropped has left its states there.
        if let Some(Ready { prepared, .. }) = &mut self.vae.ready {
            drop(prepared.take_states());
        }
    }
}
