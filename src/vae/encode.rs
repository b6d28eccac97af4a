//! Encodes an image to the moments of its latents.

use super::options::EncodeOptions;
use super::request::Job;
use super::run::{ClipPart, Ran};
use super::{At, Fallback, Images, Vae};
use crate::error::Result;
use crate::execution::{Control, RunReport};
use crate::model::config::AutoencoderConfig;
use crate::model::networks::encoded_channels;
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
    /// Encodes an image with default options. `images` is one image, or [`Images::at`] of several.
    ///
    /// # Errors
    /// See [`Self::encode_with`].
    pub async fn encode(&mut self, images: impl Into<At<'_, Images>>) -> Result<Encoded> {
        self.encode_with(images, &EncodeOptions::default(), &mut Control::default()).await
    }

    /// Encodes an image. `images` is one image, or [`Images::at`] of several. Rows and columns that
    /// do not fill a latent are dropped, or padded with zeros, as the network does.
    ///
    /// # Errors
    /// [`crate::Error::Input`] if there is no such image, the image is too small, or the encoder
    /// was not loaded; [`crate::Error::Cancelled`], [`crate::Error::TooLarge`],
    /// [`crate::Error::NotFinite`], [`crate::Error::Device`], [`crate::Error::HostMemory`].
    pub async fn encode_with(
        &mut self,
        images: impl Into<At<'_, Images>>,
        options: &EncodeOptions,
        control: &mut Control<'_>,
    ) -> Result<Encoded> {
        let image = images.into();
        let input = image.input(self.config().in_channels)?;
        let request = options.request(image.batch.size());
        self.planner.check(&request)?;
        let inputs = |_: &Plan| Ok(input.clone());
        let ran = self.run_whole(&Job::of_image(request), &inputs, &mut ClipPart::default(), control).await?;
        Ok(ran.into_encoded(self.config()))
    }
}

impl Ran<Vec<f32>> {
    /// Returns the result of an encode by a model of `config`. LTX-2's last channel is repeated: it
    /// has the log variances of all latents.
    pub(super) fn into_encoded(self, config: &AutoencoderConfig) -> Encoded {
        let Size { height, width } = self.result.size;
        let mut data: Vec<f32> = self.frames.into_iter().flatten().collect();
        let plane = data.len() / self.result.channels as usize;
        let channels = encoded_channels(config);
        for _ in self.result.channels..channels {
            data.extend_from_within(data.len() - plane..);
        }
        let shape = [channels, height, width].map(|extent| extent as usize).to_vec();
        Encoded { moments: HostTensor { shape, data }, run: self.report, fallback: self.fallback }
    }
}
