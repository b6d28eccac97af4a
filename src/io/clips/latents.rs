//! The latents of a clip, read block by block.

use std::ops::Range;

use super::super::latents::{StoredScale, StoredSpace, find_latents};
use super::super::source::ByteSource;
use super::array::{ClipArray, ClipAxes};
use crate::error::{Error, Result};
use crate::model::config::{AutoencoderConfig, LatentSpace};
use crate::tensor::HostTensor;

/// Latents of one clip, `[1, c, t, h, w]` or `[c, t, h, w]`, that stay in their file until they are
/// read.
///
/// `[t, c, h, w]` is not supported: `[n, c, h, w]` are separate images, and nothing in a file tells
/// the two apart.
#[derive(Debug)]
pub struct ClipLatents {
    array: ClipArray,
    scale: StoredScale,
}

impl ClipLatents {
    /// Finds the latents as [`crate::files::read_latents`] does. `channels` is the number of latent
    /// channels of the model.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format), [`Error::Io`](crate::Error::Io), or
    /// [`Error::Input`](crate::Error::Input) for another shape or a missing tensor.
    pub async fn open(source: Box<dyn ByteSource>, name: Option<&str>, channels: u32) -> Result<Self> {
        let (file, scale) = find_latents(&*source, name).await?;
        let array = ClipArray::new(source, file, "latents")?;
        let axes = array.axes();
        if axes.channels != channels {
            return Err(Error::input(
                format!("latents in {}", array.name()),
                format!(
                    "a clip [1, {channels}, t, h, w] or [{channels}, t, h, w], as the model has {channels} channels"
                ),
                format!("{} channels, {} frames of {}", axes.channels, axes.frames, axes.size),
            ));
        }
        Ok(Self { array, scale })
    }

    /// Returns channels, number of latent frames and extent.
    pub fn axes(&self) -> ClipAxes {
        self.array.axes()
    }

    /// Returns the space of the latents for a model of this `config`: the one that the file states,
    /// or else [`AutoencoderConfig::space_in_comfyui`].
    pub fn space(&self, config: &AutoencoderConfig) -> LatentSpace {
        self.scale.space.of(config, self.axes().channels)
    }

    /// Returns what the file tells of the space.
    pub fn stored_space(&self) -> StoredSpace {
        self.scale.space
    }

    /// Reads only `frames`, as `[c, frames, h, w]`.
    ///
    /// # Errors
    /// [`Error::Input`](crate::Error::Input) for frames beyond the end and for values that are not
    /// finite, [`Error::Io`](crate::Error::Io).
    pub async fn read(&self, frames: Range<u64>) -> Result<HostTensor> {
        let mut data = self.array.read(frames).await?;
        self.scale.apply(&mut data);
        let ClipAxes { channels, size, .. } = self.axes();
        let [channels, height, width] = [channels, size.height, size.width].map(|axis| axis as usize);
        let frames = data.len() / (channels * height * width);
        Ok(HostTensor { shape: vec![channels, frames, height, width], data })
    }
}

/// Reads the shape of the latents in `source`, from its header alone.
///
/// # Errors
/// The errors of [`crate::files::read_latents`].
pub async fn latents_shape(source: &dyn ByteSource, name: Option<&str>) -> Result<Vec<u64>> {
    find_latents(source, name).await.map(|(file, _)| file.info().shape.clone())
}

/// True if an array of this shape is a clip by itself: five axes, and more than 1 along the third
/// (time). `[n, c, h, w]` and `[n, c, 1, h, w]` are images, unless the name of the output asks for
/// a clip.
pub fn is_clip(shape: &[u64]) -> bool {
    matches!(shape, [_, _, 2..=u64::MAX, _, _])
}
