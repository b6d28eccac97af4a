//! Encodes an image to the moments of its latents.

use super::job::Job;
use super::options::EncodeOptions;
use super::{Fallback, Images, RowPixels, Rows, Vae};
use crate::error::Result;
use crate::gpu::{Control, RunReport};
use crate::plan::Plan;
use crate::tensor::{HostTensor, Size};

/// An encoded image and the times of its encode.
#[derive(Debug, Clone)]
pub struct Encoded {
    /// The encoder's output `[c, h, w]`, in the VAE's own scale and not in patches. Most networks
    /// give the mean of the latents and then the logarithm of their variance, with twice the
    /// latents' channels. The tiny networks give the latents.
    pub moments: HostTensor,
    /// The times of the run.
    pub run: RunReport,
    /// The smaller plan that was used, if the device had too little memory for the first.
    pub fallback: Option<Fallback>,
}

impl Vae {
    /// Plans an encode of an image of `image_size` pixels on this device. Takes no GPU memory.
    ///
    /// # Errors
    /// See [`super::plan_encode`].
    pub fn plan_encode(&self, image_size: Size, options: &EncodeOptions) -> Result<Plan> {
        self.planner.plan_encode(image_size, options)
    }

    /// Allocates buffers and compiles kernels for images of `image_size` pixels, unless that plan
    /// is ready. Encoding does this itself.
    ///
    /// # Errors
    /// See [`Vae::prepare`].
    pub async fn prepare_encode(&mut self, image_size: Size, options: &EncodeOptions) -> Result<&Plan> {
        self.prepare_job(Job::Encode { image_size, options: *options }).await
    }

    /// Frees the prepared plan, unless it was for images of `image_size` pixels and these options.
    /// Preparing does this itself.
    pub fn free_unless_encoding(&mut self, image_size: Size, options: &EncodeOptions) {
        let kept = Job::Encode { image_size, options: *options };
        self.ready.take_if(|ready| ready.job != kept);
    }

    /// Encodes image `index` of `images`, `[n, c, h, w]` in -1..1. Rows and columns that do not
    /// fill a latent are dropped, or padded with zeros, as the network does.
    ///
    /// # Errors
    /// [`crate::Error::Input`] if there is no image `index`, the image is too small, or the encoder
    /// was not loaded; [`crate::Error::Cancelled`], [`crate::Error::TooLarge`],
    /// [`crate::Error::NotFinite`], [`crate::Error::Device`], [`crate::Error::HostMemory`].
    pub async fn encode(
        &mut self,
        images: &Images,
        index: u32,
        options: &EncodeOptions,
        control: &mut Control<'_>,
    ) -> Result<Encoded> {
        let input = images.input(index, self.config().in_channels)?;
        let result = self.prepare_encode(images.size(), options).await?.result;
        let (width, height, channels) =
            (result.size.width as usize, result.size.height as usize, result.channels as usize);
        let mut data = vec![0.0; channels * height * width];
        let mut place = |rows: Rows<'_>| {
            let RowPixels::Raw(part) = rows.pixels else { unreachable!("an encode is planned for floats") };
            let count = rows.rows.len() * width;
            for (channel, plane) in part.chunks_exact(count).enumerate() {
                let start = (channel * height + rows.rows.start as usize) * width;
                data[start..start + count].copy_from_slice(plane);
            }
            Ok(())
        };
        let (run, fallback) = self.run_ready(&input, control, &mut place).await?;
        Ok(Encoded { moments: HostTensor { shape: vec![channels, height, width], data }, run, fallback })
    }
}
