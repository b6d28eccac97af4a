//! Images, the input of an encode.

use std::borrow::Cow;

use super::batch::At;
use super::latents::check_image;
use crate::error::{Error, Result};
use crate::gpu::Input;
use crate::tensor::{HostTensor, Size};

/// One or several images of one size, planar f32 `[n, c, h, w]`, -1 to 1: red, green, blue, and
/// perhaps straight opacity.
#[derive(Debug, Clone, PartialEq)]
pub struct Images {
    count: u32,
    channels: u32,
    size: Size,
    data: Vec<f32>,
}

impl Images {
    /// Takes a tensor `[n, c, h, w]` or `[c, h, w]`, -1 to 1.
    ///
    /// # Errors
    /// [`Error::Input`] for another rank, an axis that is empty or too long, or a value that is not
    /// finite, with its index.
    pub fn new(tensor: HostTensor) -> Result<Self> {
        let wrong = |expected: &str, found: String| Error::input("image", expected, found);
        let shape = || format!("{:?}", tensor.shape);
        let axes: Vec<u32> = tensor.shape.iter().map(|extent| u32::try_from(*extent).unwrap_or(u32::MAX)).collect();
        let (count, channels, height, width) = match *axes.as_slice() {
            [n, c, h, w] => (n, c, h, w),
            [c, h, w] => (1, c, h, w),
            _ => return Err(wrong("a shape [n, c, h, w] or [c, h, w]", shape())),
        };
        if axes.contains(&0) {
            return Err(wrong("no axis of extent 0", shape()));
        }
        let size = Size { width, height };
        check_image(size)?;
        let elements = tensor.shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent));
        if elements != Some(tensor.data.len()) {
            return Err(wrong(&format!("a shape of {} elements", tensor.data.len()), shape()));
        }
        if let Some(index) = tensor.data.iter().position(|value| !value.is_finite()) {
            return Err(wrong("finite values", format!("{} at element {index}", tensor.data[index])));
        }
        Ok(Self { count, channels, size, data: tensor.data })
    }

    /// Chooses image `index`, from 0 on.
    pub fn at(&self, index: u32) -> At<'_, Self> {
        At::new(self, index)
    }

    /// Returns the number of images.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the width and height in pixels.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Returns image `index`, `[c, h, w]`; `None` if there are fewer images.
    pub fn image(&self, index: u32) -> Option<&[f32]> {
        let length = self.data.len() / self.count as usize;
        self.data.chunks_exact(length).nth(index as usize)
    }

    /// Returns the smallest and the largest value of all images. Pictures have -1 to 1.
    pub fn range(&self) -> (f32, f32) {
        self.data.iter().fold((f32::MAX, f32::MIN), |(least, most), &value| (least.min(value), most.max(value)))
    }

    /// Returns all images, `[n, c, h, w]`, after a check that they have `channels` channels.
    pub(super) fn all(&self, channels: u32) -> Result<&[f32]> {
        if self.channels == channels { Ok(&self.data) } else { Err(self.unfit(channels)) }
    }

    fn unfit(&self, channels: u32) -> Error {
        let expected = format!("{channels} channels, as the model has");
        Error::input("image", expected, format!("{} channels", self.channels))
    }
}

impl<'a> At<'a, Images> {
    /// Returns the data that a plan for images of `channels` channels reads. An image without
    /// opacity is opaque to a model that has it.
    pub(super) fn input(self, channels: u32) -> Result<Input<'a>> {
        let index = self.index("images", self.batch.count)?;
        let image = self.batch.image(index).unwrap_or_default();
        let data = match (self.batch.channels, channels) {
            (3, 4) => Cow::Owned([image, &vec![1.0; image.len() / 3]].concat()),
            (found, wanted) if found == wanted => Cow::Borrowed(image),
            _ => return Err(self.batch.unfit(channels)),
        };
        Ok(Input::Host(vec![data]))
    }
}
