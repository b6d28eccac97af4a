//! Encodes for JavaScript.

use js_sys::{Float32Array, Function};
use serde::Deserialize;
use wasm_bindgen::prelude::*;

use super::images::WebImages;
use super::vae::{Cancel, Listener, WebVae, object};
use super::{Result, from_js};
use crate::error::Error;
use crate::model::config::LatentSpace;
use crate::tensor::{Bytes, HostTensor};
use crate::vae::{EncodeOptions, Encoded, Parking, Posterior};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WebEncodeOptions {
    output: WebOutput,
    /// The seed of a random sample.
    seed: u64,
    /// True to get the VAE's own latents. `None`: as the model was loaded.
    unscaled: Option<bool>,
    memory_budget: Option<Bytes>,
    least_memory: bool,
    parking: Parking,
    /// The target time of a submission, milliseconds.
    submission_target: Option<f64>,
    index: u32,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WebOutput {
    /// The most likely latents.
    #[default]
    Mode,
    /// Latents drawn at random.
    Sample,
    /// The distribution itself.
    Moments,
}

impl WebEncodeOptions {
    /// Returns the target time of a submission, milliseconds.
    pub(super) fn submission_target(&self) -> Option<f64> {
        self.submission_target
    }

    pub(super) fn options(&self) -> EncodeOptions {
        let Self { memory_budget, least_memory, parking, .. } = *self;
        EncodeOptions { memory_budget, least_memory, parking, ..EncodeOptions::default() }
    }
}

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
        let options: WebEncodeOptions = from_js("encode options", &options)?;
        self.given_space(&options)?;
        let encode = options.options();
        // Plans of another size, precision or direction are freed first, so that the peak is that
        // of this encode.
        self.vae.free_unless(&encode.request(images.images.size()));
        let before = self.begin(cancel);
        let mut listener = Listener::new(progress);
        let mut control = listener.control(cancel, options.submission_target);
        let Encoded { moments, run, fallback } =
            self.vae.encode_with(images.images.at(options.index), &encode, &mut control).await?;
        let (tensor, unscaled) = self.wanted(moments, &options)?;
        Ok(encoded_js(tensor, &[], unscaled, self.report(before, run, fallback)))
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
    /// Returns the space of the latents that the caller gets. A model that was loaded only for the
    /// VAE's own may lack the diffusion model's scale.
    pub(super) fn given_space(&self, options: &WebEncodeOptions) -> Result<LatentSpace> {
        if options.unscaled == Some(false) && self.space == LatentSpace::Vae {
            let (expected, found) = ("a model that was loaded without \"unscaled\"", "one that was loaded with it");
            return Err(Error::input("latents that are scaled", expected, found).into());
        }
        let space = options.unscaled.map_or(self.space, LatentSpace::from_unscaled);
        if space == LatentSpace::Vae && options.output != WebOutput::Moments {
            self.vae.config().check_own_latents()?;
        }
        Ok(space)
    }

    /// Converts an encoder's output to the form that the caller asked for. Returns true with it if
    /// it is in the VAE's own scale.
    pub(super) fn wanted(&self, moments: HostTensor, options: &WebEncodeOptions) -> Result<(HostTensor, bool)> {
        let space = self.given_space(options)?;
        if options.output == WebOutput::Moments {
            return Ok((moments, true));
        }
        let posterior = Posterior::new(moments, self.vae.config().latent_channels)?;
        let latents = match options.output {
            WebOutput::Sample => posterior.sample(options.seed, options.index)?,
            WebOutput::Mode | WebOutput::Moments => posterior.into_mode(),
        };
        Ok((self.vae.encoded_latents(latents, space)?, space.is_unscaled()))
    }
}
