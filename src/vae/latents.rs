//! What is decoded.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::tensor::{HostTensor, Size};

/// Latents of one or more images, `[n, c, h, w]`, planar f32.
#[derive(Debug, Clone, PartialEq)]
pub struct Latents {
    count: u32,
    channels: u32,
    size: Size,
    data: Vec<f32>,
}

impl Latents {
    /// Takes a tensor `[n, c, h, w]` or `[c, h, w]`.
    ///
    /// # Errors
    /// [`Error::Input`] for another rank, an empty or absurd extent, or a value that is not finite, with its place.
    pub fn new(tensor: HostTensor) -> Result<Self> {
        let found = format!("{:?}", tensor.shape);
        let wrong = |expected: &str| Error::Input {
            what: "latents".to_owned(),
            expected: expected.to_owned(),
            found: found.clone(),
        };
        let shape: Vec<u32> = tensor.shape.iter().map(|&extent| u32::try_from(extent).unwrap_or(u32::MAX)).collect();
        let (count, channels, height, width) = match *shape.as_slice() {
            [n, c, h, w] => (n, c, h, w),
            [c, h, w] => (1, c, h, w),
            _ => return Err(wrong("a shape [n, c, h, w] or [c, h, w]")),
        };
        if shape.contains(&0) {
            return Err(wrong("no axis of extent 0"));
        }
        check_size("latents", Size { width, height })?;
        let elements = tensor.shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent));
        if elements != Some(tensor.data.len()) {
            return Err(wrong(&format!("a shape of {} elements", tensor.data.len())));
        }
        if let Some(index) = tensor.data.iter().position(|value| !value.is_finite()) {
            return Err(Error::Input {
                what: "latents".to_owned(),
                expected: "finite values".to_owned(),
                found: format!("{} at element {index}", tensor.data[index]),
            });
        }
        Ok(Self { count, channels, size: Size { width, height }, data: tensor.data })
    }

    /// An error unless they have `channels` and an image `index`.
    pub(super) fn check(&self, channels: u32, index: u32) -> Result<()> {
        if self.channels != channels {
            return Err(Error::Input {
                what: "latents".to_owned(),
                expected: format!("{channels} channels, as the model has"),
                found: format!("{} channels", self.channels),
            });
        }
        if index >= self.count {
            return Err(Error::Input {
                what: "image index".to_owned(),
                expected: format!("below {}", self.count),
                found: index.to_string(),
            });
        }
        Ok(())
    }

    /// Number of images.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Latent channels.
    pub fn channels(&self) -> u32 {
        self.channels
    }

    /// Width and height in latents.
    pub fn size(&self) -> Size {
        self.size
    }

    /// What a plan reads for image `index`: its latents `[c, h, w]`; with `measured`, first a copy of that size, of every so many latents one.
    /// Averages would not do: they vary less, and a norm would measure that.
    pub(super) fn input(&self, index: u32, measured: Option<Size>) -> Cow<'_, [f32]> {
        let image = self.image(index);
        let Some(small) = measured else { return Cow::Borrowed(image) };
        // The middle of what the copy's latent stands for.
        let from = |at: u32, count: u32, of: u32| (2 * at + 1) as usize * of as usize / (2 * count as usize);
        let mut input = Vec::new();
        for plane in image.chunks_exact(self.size.width as usize * self.size.height as usize) {
            for row in 0..small.height {
                let row = &plane[from(row, small.height, self.size.height) * self.size.width as usize..];
                input.extend((0..small.width).map(|column| row[from(column, small.width, self.size.width)]));
            }
        }
        input.extend_from_slice(image);
        Cow::Owned(input)
    }

    /// The latents of image `index`, `[c, h, w]`.
    pub(super) fn image(&self, index: u32) -> &[f32] {
        let length = self.data.len() / self.count as usize;
        &self.data[index as usize * length..][..length]
    }
}

/// Latents beyond this many rows or columns are taken for a mistake: 16384 latents are 131072 pixels.
const MAX_LATENT_SIDE: u32 = 16_384;
/// And so are more than these altogether, twice those of an image of 8192x8192 pixels.
const MAX_LATENTS: u64 = 1 << 21;

/// Refuses sizes that nobody means.
pub(super) fn check_size(what: &str, size: Size) -> Result<()> {
    let area = u64::from(size.width) * u64::from(size.height);
    if area == 0 || size.width.max(size.height) > MAX_LATENT_SIDE || area > MAX_LATENTS {
        return Err(Error::Input {
            what: what.to_owned(),
            expected: format!("1 to {MAX_LATENT_SIDE} latents each way, {MAX_LATENTS} altogether"),
            found: format!("{size} latents"),
        });
    }
    Ok(())
}

/// An image of more pixels than this is taken for a mistake: 32768 by 32768.
const MAX_PIXELS: u64 = 1 << 30;

/// Refuses images that nobody means. Models differ in how many pixels a latent becomes.
pub(super) fn check_image(size: Size) -> Result<()> {
    if u64::from(size.width) * u64::from(size.height) > MAX_PIXELS {
        return Err(Error::Input {
            what: "size".to_owned(),
            expected: format!("at most {MAX_PIXELS} pixels"),
            found: format!("{size} pixels"),
        });
    }
    Ok(())
}
