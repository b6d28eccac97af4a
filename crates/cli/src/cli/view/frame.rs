//! One image of a file of latents: of a batch, or a frame of a clip.

use wgvae::files::{ByteSource, StoredLatents, read_latents};
use wgvae::{Error, HostTensor, Latents, Result};

use crate::cli::in_file;

/// An image of a file of latents, or a frame of its clip.
pub(super) struct Frame {
    /// The latents, `[1, c, h, w]`.
    pub(super) latents: Latents,
    /// True for a tensor with an axis for time or layers.
    pub(super) is_of_clip: bool,
    /// Text that says which of several images this is; empty for the only one.
    pub(super) place: String,
}

impl Frame {
    /// Reads image `number`, from 1 on, of tensor `name` in `source`.
    ///
    /// # Errors
    /// For a tensor that holds no latents, and if there is no such image.
    pub(super) async fn read(source: &dyn ByteSource, name: Option<&str>, number: u32) -> Result<Self> {
        let StoredLatents { tensor, space } = read_latents(source, name).await?;
        let is_of_clip = tensor.shape.len() == 5;
        let count = if is_of_clip { tensor.shape[0].saturating_mul(tensor.shape[2]) } else { images(&tensor.shape) };
        let index = number as usize - 1;
        if index >= count && count > 0 {
            let kind = if is_of_clip { "frames of latents" } else { "images" };
            let found = format!("{number}, but {} has {count} {kind}", source.name());
            return Err(Error::input("--index", format!("1 to {count}"), found));
        }
        // An empty tensor is an error, which names its whole shape.
        let one = if count > 1 && !tensor.data.is_empty() { image(&tensor, index) } else { tensor };
        let latents = Latents::new(one).map_err(|error| in_file(error, source.name()))?.in_space(space);
        let kind = if is_of_clip { "frame" } else { "image" };
        let place = if count > 1 { format!("{kind} {number} of {count}, ") } else { String::new() };
        Ok(Self { latents, is_of_clip, place })
    }
}

/// Returns the number of images in a tensor `[n, c, h, w]` or `[c, h, w]`.
fn images(shape: &[usize]) -> usize {
    if shape.len() == 4 { shape[0] } else { 1 }
}

/// Copies one image of `[n, c, h, w]`, or one frame of `[n, c, t, h, w]`, as `[1, c, h, w]`.
fn image(tensor: &HostTensor, index: usize) -> HostTensor {
    let (channels, frames) = (tensor.shape[1], if tensor.shape.len() == 5 { tensor.shape[2] } else { 1 });
    let [.., height, width] = *tensor.shape.as_slice() else { return tensor.clone() };
    let first = index / frames * channels * frames + index % frames;
    let planes = tensor.data.chunks_exact((height * width).max(1)).skip(first).step_by(frames).take(channels);
    HostTensor { shape: vec![1, channels, height, width], data: planes.flatten().copied().collect() }
}
