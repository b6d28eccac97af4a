//! Encoding for JavaScript.

use js_sys::{Float32Array, Function};
use serde::Deserialize;
use wasm_bindgen::prelude::*;

use super::images::WebImages;
use super::vae::{Cancel, Listener, WebVae, object};
use super::{Result, from_js};
use crate::error::Error;
use crate::tensor::{Bytes, HostTensor};
use crate::vae::{EncodeOptions, Encoded, Parking, Posterior};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WebEncodeOptions {
    output: WebOutput,
    /// Of a sample.
    seed: u64,
    /// Whether the latents are to be the VAE's own. Without it: as the model was loaded.
    unscaled: Option<bool>,
    memory_budget: Option<Bytes>,
    parking: Parking,
    /// Milliseconds.
    submission_target: Option<f64>,
    index: u32,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WebOutput {
    /// The likeliest latents.
    #[default]
    Mode,
    /// Latents drawn at random.
    Sample,
    /// The distribution itself.
    Moments,
}

impl WebEncodeOptions {
    /// Milliseconds.
    pub(super) fn submission_target(&self) -> Option<f64> {
        self.submission_target
    }

    pub(super) fn options(&self) -> EncodeOptions {
        EncodeOptions { memory_budget: self.memory_budget, parking: self.parking, ..EncodeOptions::default() }
    }
}

#[wasm_bindgen(js_class = Vae)]
impl WebVae {
    /// Encodes one image.
    pub async fn encode(
        &mut self,
        images: &WebImages,
        options: JsValue,
        cancel: &Cancel,
        progress: Option<Function>,
    ) -> Result<JsValue> {
        let options: WebEncodeOptions = from_js("encode options", &options)?;
        self.gives_unscaled(&options)?;
        let encode = options.options();
        // What another size, precision or direction left is freed before: the peak shall be this
        // encode's.
        self.vae.free_unless_encoding(images.images.size(), &encode);
        let before = self.begin(cancel);
        let mut listener = Listener::new(progress);
        let mut control = listener.control(cancel, options.submission_target);
        let Encoded { moments, run, fallback } =
            self.vae.encode(&images.images, options.index, &encode, &mut control).await?;
        let (tensor, unscaled) = self.wanted(moments, &options)?;
        Ok(encoded_js(tensor, &[], unscaled, self.report(before, run, fallback)))
    }
}

/// Latents, or moments, of one picture or of a part of a clip: `[1, c, h, w]`, with `time` as their
/// third axis.
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
    /// Whether the caller gets the VAE's own latents. A model that was loaded for these alone may
    /// not know the diffusion model's scale.
    pub(super) fn gives_unscaled(&self, options: &WebEncodeOptions) -> Result<bool> {
        match (options.unscaled, self.vae.planner().unscaled()) {
            (Some(false), true) => {
                let (expected, found) = ("a model that was loaded without \"unscaled\"", "one that was loaded with it");
                Err(Error::Input {
                    what: "latents that are scaled".to_owned(),
                    expected: expected.to_owned(),
                    found: found.to_owned(),
                }
                .into())
            }
            (asked, loaded) => {
                let unscaled = asked.unwrap_or(loaded);
                if unscaled && options.output != WebOutput::Moments {
                    self.vae.config().check_own_latents()?;
                }
                Ok(unscaled)
            }
        }
    }

    /// What the caller asked for, of an encoder's output, and whether it is the VAE's own.
    pub(super) fn wanted(&self, moments: HostTensor, options: &WebEncodeOptions) -> Result<(HostTensor, bool)> {
        let unscaled = self.gives_unscaled(options)?;
        if options.output == WebOutput::Moments {
            return Ok((moments, true));
        }
        let posterior = Posterior::new(moments, self.vae.config().latent_channels)?;
        let latents = match options.output {
            WebOutput::Sample => posterior.sample(options.seed, options.index)?,
            WebOutput::Mode | WebOutput::Moments => posterior.into_mode(),
        };
        Ok((self.vae.encoded_latents(latents, unscaled)?, unscaled))
    }
}
