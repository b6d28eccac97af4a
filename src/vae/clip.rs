//! Clips: video, decoded or encoded part by part. Each frame sees those before it and no other, so
//! that a clip of any length takes the memory of one part.

use super::clip_parts::ClipState;
use super::clip_plans::ClipPlans;
use super::latents::check_size;
use super::options::{DecodeOptions, EncodeOptions};
use super::tiled_clip::TiledClip;
use super::{Fallback, Images, Latents, Pixels, Ready, Vae};
use crate::error::{Error, Result};
use crate::gpu::{Control, RunReport};
use crate::tensor::{HostTensor, Size};

/// A clip that is being decoded or encoded. An error in the middle ends it: begin another.
#[derive(Debug)]
pub struct Clip<'a> {
    vae: &'a mut Vae,
    work: Work,
}

/// What is under way.
#[derive(Debug)]
enum Work {
    Whole(ClipState),
    Tiles(TiledClip),
}

impl Vae {
    /// Begins to decode a clip of latents of `latent_size`. Allocates what its first part keeps for
    /// the next.
    ///
    /// # Errors
    /// See [`super::plan_clip_decode`]; [`Error::Input`] when the VAE was not loaded for clips
    /// ([`super::LoadOptions::clips`]) to decode; [`Error::Device`], [`Error::HostMemory`].
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

    /// Begins to encode a clip of frames of `image_size` pixels. Allocates what its first part
    /// keeps for the next.
    ///
    /// # Errors
    /// See [`super::plan_clip_encode`]; [`Error::Input`] when the VAE was not loaded for clips
    /// ([`super::LoadOptions::clips`]) to encode; [`Error::Device`], [`Error::HostMemory`].
    pub async fn encode_clip(&mut self, image_size: Size, options: &EncodeOptions) -> Result<Clip<'_>> {
        let work = Work::Whole(self.begin_encode(image_size, options).await?);
        Ok(Clip { vae: self, work })
    }
}

impl Clip<'_> {
    /// Its plans: peaks are known before anything is allocated.
    pub fn plans(&self) -> &ClipPlans {
        match &self.work {
            Work::Whole(clip) => clip.plans(),
            Work::Tiles(clip) => clip.plans(),
        }
    }

    /// The VAE that it is decoded or encoded with.
    pub fn vae(&self) -> &Vae {
        self.vae
    }

    /// The smaller plan that the last part used, where the device had too little memory for its
    /// own.
    pub fn fallback(&self) -> Option<&Fallback> {
        self.vae.ready.as_ref()?.fallback.as_ref()
    }

    /// Frames of the input that the next part takes: of latents always one; of images one at first,
    /// and then as many as one latent stands for.
    pub fn wants(&self) -> u32 {
        match &self.work {
            Work::Whole(clip) => clip.wants(),
            Work::Tiles(_) => 1,
        }
    }

    /// Decodes frame `index` of `latents`, which is the clip's next, and hands the frames that come
    /// of it to `sink`, in order.
    ///
    /// # Errors
    /// [`Error::Input`] when the latents do not fit the clip, or an error has ended it;
    /// [`Error::Cancelled`], [`Error::NotFinite`], [`Error::Device`], [`Error::HostMemory`], or
    /// what `sink` returned.
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

    /// Encodes the clip's next [`Self::wants`] frames, `[frames, 3, h, w]` in -1..1. What comes of
    /// them is a frame of the VAE's own latents: see [`super::Encoded::moments`].
    ///
    /// # Errors
    /// [`Error::Input`] when the frames do not fit the clip, or an error has ended it;
    /// [`Error::Cancelled`], [`Error::NotFinite`], [`Error::Device`], [`Error::HostMemory`].
    pub async fn encode(&mut self, frames: &Images, control: &mut Control<'_>) -> Result<(HostTensor, RunReport)> {
        match &mut self.work {
            Work::Whole(clip) => self.vae.encode_part(clip, frames, control).await,
            Work::Tiles(_) => Err(Error::Input {
                what: "frames".to_owned(),
                expected: "a clip that was begun to be encoded".to_owned(),
                found: "one that is decoded in tiles".to_owned(),
            }),
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
