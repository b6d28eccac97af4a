//! Loaded models for JavaScript: loading, and code that decodes and encodes share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use js_sys::{Function, Object, Reflect};
use serde::Serialize;
use serde_json::json;
use wasm_bindgen::prelude::*;

use super::checkpoint::WebCheckpoint;
use super::device::WebDevice;
use super::latents::{WebLatents, latent_facts};
use super::supposed::Supposed;
use super::{Result, from_js, to_js};
use crate::device::Device;
use crate::error::Error;
use crate::execution::{Control, Progress, RunReport};
use crate::io::StoredSpace;
use crate::model::config::LatentSpace;
use crate::tensor::Bytes;
use crate::vae::{Fallback, LoadOptions, Plans, Vae};

/// A flag that stops a decode or an encode between two submissions.
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct Cancel {
    pub(super) flag: Arc<AtomicBool>,
}

#[wasm_bindgen]
impl Cancel {
    /// Makes a flag that is not set.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the work that the flag was passed to.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }
}

/// The memory and times of a decode or an encode.
#[derive(Serialize)]
struct Report {
    predicted_peak_bytes: Option<Bytes>,
    /// The peak of all buffers on the device, including those of other models, bytes.
    measured_peak_bytes: Bytes,
    compiled: usize,
    compile_seconds: f64,
    fallback: Option<Fallback>,
    fallback_text: Option<String>,
    #[serde(flatten)]
    run: RunReport,
}

/// A model whose weights are on a device.
#[wasm_bindgen(js_name = Vae)]
#[derive(Debug)]
pub struct WebVae {
    device: Device,
    pub(super) vae: Vae,
    /// The space of latents that do not say theirs.
    pub(super) space: LatentSpace,
}

#[wasm_bindgen(js_class = Vae)]
impl WebVae {
    /// Reads the weights that the checkpoint was opened for, one tensor at a time, and uploads or
    /// keeps each at once.
    pub async fn load(device: &WebDevice, checkpoint: &WebCheckpoint, options: JsValue) -> Result<Self> {
        let Supposed { precision, unscaled, weights_on_host, .. } = from_js("load options", &options)?;
        let WebCheckpoint { directions, clips, .. } = *checkpoint;
        if !unscaled {
            // Before weights are downloaded for latents without a meaning.
            checkpoint.checkpoint.check_space(LatentSpace::Model)?;
        }
        let options = LoadOptions { precision, weights_on_host, directions, clips };
        let vae = Vae::load(&device.device, &checkpoint.checkpoint, options).await;
        let space = LatentSpace::from_unscaled(unscaled);
        Ok(Self { device: device.device.clone(), vae: checkpoint.rejection.pass_on(vae)?, space })
    }

    /// Returns the storage, the loading time and facts about the latents.
    pub fn info(&self) -> JsValue {
        let mut info = latent_facts(self.vae.config(), self.space);
        info["storage"] = json!(self.vae.storage());
        info["submission_target"] = json!(Control::default_target(self.device.limits().kind).as_secs_f64() * 1000.0);
        info["load_seconds"] = json!(self.vae.load_seconds());
        to_js(&info)
    }
}

/// The number of pipelines before a job, and the time that compiling them took.
pub(super) type Compiled = (usize, Duration);

impl WebVae {
    /// Says that `latents` are the VAE's own, if the model was loaded for those.
    ///
    /// # Errors
    /// If the latents say that they are the diffusion model's.
    pub(super) fn in_own_space(&self, latents: &mut WebLatents) -> Result<()> {
        if self.space == LatentSpace::Vae {
            let latents = &mut latents.latents;
            let is_stated = latents.stored_space() != StoredSpace::Unstated;
            if is_stated && latents.space(self.vae.config()) == LatentSpace::Model {
                return Err(unscaled_model().into());
            }
            latents.set_space(LatentSpace::Vae);
        }
        Ok(())
    }

    /// Starts to measure a job that `cancel` stops. Returns the pipelines so far.
    pub(super) fn begin(&self, cancel: &Cancel) -> Compiled {
        if let Some(gpu) = self.device.gpu() {
            gpu.heed(Some(Arc::clone(&cancel.flag)));
        }
        self.device.ledger().restart_peak();
        self.device.compiled()
    }

    /// Returns the report of a job since [`Self::begin`] returned `before`. `plans` are those of a
    /// clip: its parts keep memory for each other.
    pub(super) fn report(
        &self,
        before: Compiled,
        run: RunReport,
        fallback: Option<Fallback>,
        plans: Option<&Plans>,
    ) -> JsValue {
        let (compiled, time) = self.device.compiled();
        let peak_of_clip = plans.filter(|_| fallback.is_none()).map(Plans::peak);
        to_js(&Report {
            predicted_peak_bytes: self.vae.predicted_peak().max(peak_of_clip),
            measured_peak_bytes: self.device.ledger().peak(),
            compiled: compiled - before.0,
            compile_seconds: time.saturating_sub(before.1).as_secs_f64(),
            fallback_text: fallback.as_ref().map(ToString::to_string),
            fallback,
            run,
        })
    }
}

/// Makes the error for scaled latents with a model that may lack their scale.
pub(super) fn unscaled_model() -> Error {
    let (expected, found) = ("a model that was loaded without \"unscaled\"", "one that was loaded with it");
    Error::input("latents that are scaled", expected, found)
}

/// A listener that passes progress to a JavaScript function.
pub(super) struct Listener<'a>(Box<dyn FnMut(Progress<'_>) + 'a>);

impl<'a> Listener<'a> {
    pub(super) fn new(listener: Option<Function>) -> Self {
        Self(Box::new(move |now| {
            if let Some(listener) = &listener {
                // Exceptions of a listener are ignored.
                let _ = listener.call1(&JsValue::NULL, &progress_js(now));
            }
        }))
    }

    /// Makes the control of a job, with `target` milliseconds for a submission.
    pub(super) fn control<'b>(&'b mut self, cancel: &Cancel, target: Option<f64>) -> Control<'b>
    where
        'a: 'b,
    {
        Control {
            progress: Some(&mut *self.0),
            cancel: Some(Arc::clone(&cancel.flag)),
            submission_target: target.and_then(|milliseconds| Duration::try_from_secs_f64(milliseconds / 1000.0).ok()),
        }
    }
}

fn progress_js(progress: Progress<'_>) -> JsValue {
    object(&[
        ("done", count(progress.step as u64)),
        ("total", count(progress.steps as u64)),
        ("stage", progress.stage.into()),
    ])
}

pub(super) fn object(entries: &[(&str, JsValue)]) -> JsValue {
    let object = Object::new();
    for (name, value) in entries {
        // Setting a property of a new object cannot fail.
        let _ = Reflect::set(&object, &(*name).into(), value);
    }
    object.into()
}

#[expect(clippy::cast_precision_loss, reason = "JavaScript's numbers")]
pub(super) fn count(value: u64) -> JsValue {
    (value as f64).into()
}
