//! Encodes for JavaScript.

use js_sys::{Float32Array, Function};
use wasm_bindgen::prelude::*;

use super::Result;
use super::images::WebImages;
use super::options::{WebOptions, WebOutput};
use super::vae::{Cancel, Listener, WebVae, object, unscaled_model};
use crate::model::config::LatentSpace;
use crate::tensor::HostTensor;
use crate::vae::{Encoded, Posterior};

#[wasm_bindgen(js_class = Vae)]
impl WebVae {
    /// Encodes one image. Returns the latents or moments, with a report.
    pub async fn encode(
        &mut self,
        images: &WebImages,
        options: JsValue,
        cancel: &Cancel,
        progress: Option<Function>,
    ) -> Result<JsValue> {
        let options = WebOptions::read(&options)?;
        self.given_space(&options)?;
        let encode = options.encode();
        // Plans of another size, precision or direction are freed first, so that the peak is that
        // of this encode.
        self.vae.free_unless(&encode.request(images.images.size()));
        let before = self.begin(cancel);
        let mut listener = Listener::new(progress);
        let mut control = listener.control(cancel, options.submission_target);
        let Encoded { moments, run, fallback } =
            self.vae.encode_with(images.images.at(options.index), &encode, &mut control).await?;
        let (tensor, unscaled) = self.wanted(moments, &options)?;
        Ok(encoded_js(tensor, &[], unscaled, self.report(before, run, fallback, None)))
    }
}

/// Makes the result object for latents or moments of one picture, `[1, c, h, w]`, or of a part of a
/// clip, which has `time` as its third axis.
pub(super) fn encoded_js(tensor: HostTensor, time: &[usize], unscaled: bool, report: JsValue) -> JsValue {
    let (channels, sides) = tensor.shape.split_at(1);
    let shape: js_sys::Array = [&[1], channels, time, sides].concat().into_iter().map(JsValue::from).collect();
    object(&[
        ("data", Float32Array::from(tensor.data.as_slice()).into()),
        ("shape", shape.into()),
        ("unscaled", unscaled.into()),
        ("report", report),
    ])
}

impl WebVae {
    /// Returns the space of the latents of an encode or of a clip. A model that was loaded only for
    /// the VAE's own may lack the diffusion model's scale.
    pub(super) fn given_space(&self, options: &WebOptions) -> Result<LatentSpace> {
        if options.unscaled == Some(false) && self.space == LatentSpace::Vae {
            return Err(unscaled_model().into());
        }
        let space = options.unscaled.map_or(self.space, LatentSpace::from_unscaled);
        if space == LatentSpace::Vae && options.output != WebOutput::Moments {
            self.vae.config().check_own_latents()?;
        }
        Ok(space)
    }

    /// Converts an encoder's output to the form that the caller asked for. Returns true with it if
    /// it is in the VAE's own scale.
    pub(super) fn wanted(&self, moments: HostTensor, options: &WebOptions) -> Result<(HostTensor, bool)> {
        let space = self.given_space(options)?;
        if options.output == WebOutput::Moments {
            return Ok((moments, true));
        }
        let posterior = Posterior::new(moments, self.vae.config().latent_channels)?;
        let latents = match options.output {
            WebOutput::Sample => posterior.sample(options.seed, options.index)?,
            _ => posterior.into_mode(),
        };
        Ok((self.vae.encoded_latents(latents, space)?, space.is_unscaled()))
    }
}
