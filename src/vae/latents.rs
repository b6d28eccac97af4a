//! Latents, the input of a decode.

use std::borrow::Cow;

use super::batch::At;
use crate::error::{Error, Result};
#[cfg(target_arch = "wasm32")]
use crate::gpu::ForeignBuffer;
use crate::gpu::Input;
use crate::io::{StoredLatents, StoredSpace};
use crate::model::config::{AutoencoderConfig, FAMILIES, LatentSpace};
use crate::plan::PlaneExtents;
use crate::tensor::{HostTensor, MAX_PIXELS, Size};

/// Latents of one or more images, `[n, c, h, w]`, planar f32.
#[derive(Debug, Clone, PartialEq)]
pub struct Latents {
    count: u32,
    channels: u32,
    size: Size,
    content: Content,
    space: StoredSpace,
    /// Number of layers, or frames, of a tensor `[n, c, layers, h, w]`: each is an image. 1 for
    /// other tensors.
    layers: u32,
}

#[derive(Debug, Clone, PartialEq)]
enum Content {
    Host(Vec<f32>),
    #[cfg(target_arch = "wasm32")]
    Foreign(ForeignBuffer),
}

/// The extents of latents, all checked.
struct Axes {
    count: u32,
    channels: u32,
    size: Size,
    /// Number of layers of each of the images; `None` without such an axis.
    layers: Option<u32>,
}

impl Axes {
    /// Reads a shape `[n, c, h, w]`, `[c, h, w]` or `[n, c, layers, h, w]`.
    fn new(shape: &[usize]) -> Result<Self> {
        let axes: Vec<u32> = shape.iter().map(|&extent| u32::try_from(extent).unwrap_or(u32::MAX)).collect();
        let (count, channels, layers, height, width) = match *axes.as_slice() {
            [n, c, layers, h, w] => (n.saturating_mul(layers), c, Some(layers), h, w),
            [n, c, h, w] => (n, c, None, h, w),
            [c, h, w] => (1, c, None, h, w),
            _ => return Err(wrong("a shape [n, c, h, w], [c, h, w] or [n, c, layers, h, w]", shape)),
        };
        if axes.contains(&0) {
            return Err(wrong("no axis of extent 0", shape));
        }
        let size = Size { width, height };
        check_size("latents", size)?;
        Ok(Self { count, channels, size, layers })
    }
}

/// Reorders `[n, c, layers, h, w]` to `[n, layers, c, h, w]`.
fn layers_first(data: &[f32], channels: u32, layers: u32, size: Size) -> Vec<f32> {
    let plane = size.width as usize * size.height as usize;
    let image = |image: &[f32]| -> Vec<f32> {
        let of_layer = |layer: usize| image.chunks_exact(plane).skip(layer).step_by(layers as usize).flatten().copied();
        (0..layers as usize).flat_map(of_layer).collect()
    };
    data.chunks_exact(plane * (channels * layers) as usize).flat_map(image).collect()
}

fn wrong(expected: &str, shape: &[usize]) -> Error {
    Error::input("latents", expected, format!("{shape:?}"))
}

impl Latents {
    /// Takes a tensor `[n, c, h, w]` or `[c, h, w]`, in the diffusion model's scale. Each layer of
    /// `[n, c, layers, h, w]` becomes an image: the layers of Qwen-Image-Layered, or frames of a
    /// model without time.
    ///
    /// # Errors
    /// [`Error::Input`] for another rank, an axis that is empty or too long, or a value that is not
    /// finite, with its index.
    pub fn new(tensor: HostTensor) -> Result<Self> {
        let Axes { count, channels, size, layers } = Axes::new(&tensor.shape)?;
        let elements = tensor.shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent));
        if elements != Some(tensor.data.len()) {
            return Err(wrong(&format!("a shape of {} elements", tensor.data.len()), &tensor.shape));
        }
        if let Some(index) = tensor.data.iter().position(|value| !value.is_finite()) {
            return Err(Error::input("latents", "finite values", format!("{} at element {index}", tensor.data[index])));
        }
        let data = match layers {
            None | Some(1) => tensor.data,
            Some(layers) => layers_first(&tensor.data, channels, layers, size),
        };
        let (content, layers) = (Content::Host(data), layers.unwrap_or(1));
        Ok(Self { count, channels, size, content, space: LatentSpace::Model.into(), layers })
    }

    /// Takes latents that were read from a file.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub fn stored(StoredLatents { tensor, space }: StoredLatents) -> Result<Self> {
        Ok(Self::new(tensor)?.in_space(space))
    }

    /// Says that the values are in `space`.
    #[must_use]
    pub fn in_space(self, space: impl Into<StoredSpace>) -> Self {
        Self { space: space.into(), ..self }
    }

    /// Says that the values are in `space`, in place.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn set_space(&mut self, space: LatentSpace) {
        self.space = space.into();
    }

    /// Returns the space of the values for a model of this `config`, which decides it for latents
    /// of `ComfyUI`'s files.
    pub fn space(&self, config: &AutoencoderConfig) -> LatentSpace {
        self.space.of(config, self.channels)
    }

    /// Returns the space of the values as far as their file told it.
    pub fn stored_space(&self) -> StoredSpace {
        self.space
    }

    /// Takes the content of a `GPUBuffer` of the caller, f32 `[n, c, h, w]` or `[c, h, w]` from
    /// byte `offset` on. Does not check that the values are finite. A decode still returns an error
    /// if its result is not finite.
    ///
    /// # Errors
    /// [`Error::Input`] for another rank, an axis that is empty or too long, or a buffer that is
    /// too short or cannot be copied from.
    #[cfg(target_arch = "wasm32")]
    pub fn foreign(buffer: wasm_bindgen::JsValue, offset: u64, shape: &[usize]) -> Result<Self> {
        let Axes { count, channels, size, layers } = Axes::new(shape)?;
        if layers.is_some() {
            return Err(wrong("a shape [n, c, h, w] or [c, h, w]", shape));
        }
        let elements = [channels, size.height, size.width]
            .iter()
            .map(|axis| u64::from(*axis))
            .fold(count.into(), u64::saturating_mul);
        let buffer = ForeignBuffer::new(buffer, offset, elements.saturating_mul(4))?;
        let (content, space) = (Content::Foreign(buffer), LatentSpace::Model.into());
        Ok(Self { count, channels, size, content, space, layers: 1 })
    }

    /// Checks that the number of channels fits a model of this `config`, in the latents' space.
    ///
    /// # Errors
    /// [`Error::Input`] for another number of channels. Its message lists the families that have
    /// that number. Also for several frames of a model for video, which depend on each other.
    pub fn check_channels(&self, config: &AutoencoderConfig) -> Result<()> {
        if self.layers > 1 && config.has_time() {
            let found = format!("a shape [n, c, frames, h, w] with {} frames", self.layers);
            let expected = "images, [n, c, h, w] or [c, h, w]; decode a clip as a clip";
            return Err(Error::input("latents", expected, found));
        }
        let space = self.space(config);
        let channels = config.channels(space);
        if self.channels == channels {
            return Ok(());
        }
        let fits = |config: &AutoencoderConfig| config.channels(self.space(config)) == self.channels;
        let fitting = FAMILIES.iter().filter(|family| fits(&family.config()));
        let is_other = self.channels == config.channels(space.other());
        let (kind, names): (_, Vec<&str>) = match (is_other, space) {
            (true, LatentSpace::Vae) => {
                (" for the VAE's own latents; these are the diffusion model's: omit unscaled", Vec::new())
            }
            (true, LatentSpace::Model) => (
                " for the diffusion model's latents; these are the VAE's own: pass --unscaled (unscaled: true), or --family fibo2 for FIBO 2's",
                Vec::new(),
            ),
            (false, _) => (", as the model has", fitting.map(|family| family.name).collect()),
        };
        let found = match names.as_slice() {
            [] => format!("{} channels", self.channels),
            names => format!("{} channels, as {} have", self.channels, names.join(", ")),
        };
        Err(Error::input("latents", format!("{channels} channels{kind}"), found))
    }

    /// Returns the latents of image `index`, from 0 on.
    pub fn at(&self, index: u32) -> At<'_, Self> {
        At::new(self, index)
    }

    /// Returns the number of images.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the number of latent channels.
    pub fn channels(&self) -> u32 {
        self.channels
    }

    /// Returns the width and height in latents.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Returns the data that a plan with these `inputs` reads for image `index`: the image's
    /// latents `[c, h, w]`. A plan with two inputs first reads a smaller copy, made of single
    /// latents at regular distances. Averages would not do: they vary less, which a norm would
    /// measure.
    pub(super) fn input(&self, index: u32, inputs: &[PlaneExtents]) -> Result<Input<'_>> {
        let measured = match inputs {
            [small, _] => Some(small.size),
            _ => None,
        };
        #[cfg(target_arch = "wasm32")]
        if let (Content::Foreign(buffer), None) = (&self.content, measured) {
            let image = u64::from(self.channels) * u64::from(self.size.width) * u64::from(self.size.height);
            return Ok(Input::foreign(buffer, index, image * 4));
        }
        let image = self.image(index)?;
        let Some(small) = measured else { return Ok(Input::Host(vec![Cow::Borrowed(image)])) };
        // The middle of the area that a latent of the copy stands for.
        let from = |at: u32, count: u32, of: u32| (2 * at + 1) as usize * of as usize / (2 * count as usize);
        let mut copy = Vec::new();
        for plane in image.chunks_exact(self.size.width as usize * self.size.height as usize) {
            for row in 0..small.height {
                let row = &plane[from(row, small.height, self.size.height) * self.size.width as usize..];
                copy.extend((0..small.width).map(|column| row[from(column, small.width, self.size.width)]));
            }
        }
        Ok(Input::Host(vec![Cow::Owned(copy), Cow::Borrowed(image)]))
    }

    /// Returns the latents of image `index`, `[c, h, w]`.
    ///
    /// # Errors
    /// [`Error::Input`] if the latents are on a GPU.
    pub(crate) fn image(&self, index: u32) -> Result<&[f32]> {
        match &self.content {
            Content::Host(data) => {
                let length = data.len() / self.count as usize;
                Ok(&data[index as usize * length..][..length])
            }
            #[cfg(target_arch = "wasm32")]
            Content::Foreign(_) => {
                Err(Error::input("latents", "latents in host memory, for tiles, estimates and previews", "a GPUBuffer"))
            }
        }
    }
}

impl<'a> At<'a, Latents> {
    /// Returns the batch and the index of the image, after a check that the channels fit a model of
    /// this `config` and that there is such an image.
    pub(super) fn checked(self, config: &AutoencoderConfig) -> Result<(&'a Latents, u32)> {
        self.batch.check_channels(config)?;
        Ok((self.batch, self.index("latents", self.batch.count)?))
    }
}

/// The most rows or columns of latents: 16384 latents are 131072 pixels. A larger size is taken for
/// a mistake.
const MAX_LATENT_SIDE: u32 = 16_384;
/// The most latents altogether, twice those of an image of 8192x8192 pixels.
const MAX_LATENTS: u64 = 1 << 21;

/// Returns an error for a size in latents that is empty or too large to be meant.
pub(super) fn check_size(what: &str, size: Size) -> Result<()> {
    let area = u64::from(size.width) * u64::from(size.height);
    if area == 0 || size.width.max(size.height) > MAX_LATENT_SIDE || area > MAX_LATENTS {
        return Err(Error::input(
            what.to_owned(),
            format!("1 to {MAX_LATENT_SIDE} latents each way, {MAX_LATENTS} altogether"),
            format!("{size} latents"),
        ));
    }
    Ok(())
}

/// Returns an error for an image that is too large to be meant. This is a check of its own because
/// models differ in the pixels of a latent.
pub(super) fn check_image(size: Size) -> Result<()> {
    if size.pixels() > MAX_PIXELS {
        return Err(Error::input("size", format!("at most {MAX_PIXELS} pixels"), format!("{size} pixels")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::config::Family;

    fn latents(shape: &[usize]) -> Latents {
        let data = (0_u16..).map(f32::from).take(shape.iter().product()).collect();
        Latents::new(HostTensor { shape: shape.to_vec(), data }).unwrap()
    }

    #[test]
    fn each_layer_becomes_an_image() {
        let layered = latents(&[2, 3, 2, 1, 2]);
        assert_eq!((layered.count(), layered.channels()), (4, 3));
        // Layer 1 of image 1: the second half of each channel's four values.
        assert_eq!(layered.image(3).unwrap(), [14.0, 15.0, 18.0, 19.0, 22.0, 23.0]);
    }

    #[test]
    fn frames_of_a_model_for_video_are_no_images() {
        let config = Family::find("wan21").unwrap().config();
        latents(&[2, 16, 1, 4, 4]).check_channels(&config).unwrap();
        let text = latents(&[2, 16, 3, 4, 4]).check_channels(&config).unwrap_err().to_string();
        assert!(text.ends_with("found a shape [n, c, frames, h, w] with 3 frames"), "{text}");
        let tiny = Family::find("taew2_1").unwrap().config();
        latents(&[2, 16, 1, 4, 4]).check_channels(&tiny).unwrap();
        latents(&[2, 16, 3, 4, 4]).check_channels(&tiny).unwrap_err();
        let layered = Family::find("qwen_image_layered").unwrap().config();
        latents(&[2, 16, 3, 4, 4]).check_channels(&layered).unwrap();
    }
}
