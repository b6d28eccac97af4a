//! Loading, planning and decoding for JavaScript.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use js_sys::{Float32Array, Function, Object, Reflect, Uint8ClampedArray};
use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;

use super::checkpoint::WebCheckpoint;
use super::device::WebGpu;
use super::latents::WebLatents;
use super::{Result, from_js, to_js};
use crate::error::Error;
use crate::gpu::{Control, Gpu, Progress, RunReport, new_array};
use crate::plan::{ChannelOrder, Output, Plan, PlanFacts, RunFacts};
use crate::tensor::{Bytes, Size};
use crate::vae::{
    DecodeOptions, DecodedRows, Directions, Fallback, LoadOptions, Parking, Planner, Precision, RowPixels, Rows, Vae,
};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct WebLoadOptions {
    precision: Precision,
    unscaled: bool,
    weights_on_host: bool,
    directions: Directions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct WebDecodeOptions {
    output: WebOutput,
    /// Of a canvas.
    format: ChannelOrder,
    memory_budget: Option<Bytes>,
    parking: Parking,
    /// Milliseconds.
    submission_target: Option<f64>,
    index: u32,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WebOutput {
    /// A picture on the device.
    #[default]
    Canvas,
    /// `[h, w, 4]` bytes.
    Rgba8,
    /// `[3, h, w]` f32.
    Raw,
}

impl WebDecodeOptions {
    fn options(&self) -> DecodeOptions {
        let output = match self.output {
            WebOutput::Canvas => Output::Picture(self.format),
            WebOutput::Rgba8 => Output::Rgba8,
            WebOutput::Raw => Output::Raw,
        };
        DecodeOptions { output, memory_budget: self.memory_budget, parking: self.parking, ..DecodeOptions::default() }
    }

    fn submission_target(&self) -> Option<Duration> {
        self.submission_target.and_then(|milliseconds| Duration::try_from_secs_f64(milliseconds / 1000.0).ok())
    }
}

/// Stops a decode between two submissions.
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
}

#[wasm_bindgen]
impl Cancel {
    /// One that was not used yet.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops what it was given to.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }
}

/// Plans decodes, also while one runs.
#[wasm_bindgen(js_name = Planner)]
#[derive(Debug)]
pub struct WebPlanner {
    planner: Planner,
}

#[derive(Serialize)]
struct PlanWithTimeline {
    #[serde(flatten)]
    facts: PlanFacts,
    timeline: Vec<RunFacts>,
}

fn plan_js(plan: &Plan) -> JsValue {
    to_js(&PlanWithTimeline { facts: plan.facts(), timeline: plan.timeline() })
}

#[wasm_bindgen(js_class = Planner)]
impl WebPlanner {
    /// Plans a decode of so many latents across and down.
    pub fn plan(&self, width: u32, height: u32, options: &JsValue) -> Result<JsValue> {
        let options: WebDecodeOptions = from_js("plan options", options)?;
        Ok(plan_js(&self.planner.plan(Size { width, height }, &options.options())?))
    }
}

/// What a decode took.
#[derive(Serialize)]
struct Report {
    predicted_peak_bytes: Option<Bytes>,
    /// Of all buffers that were on the device at once, other models' included.
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
    gpu: Gpu,
    vae: Vae,
}

#[wasm_bindgen(js_class = Vae)]
impl WebVae {
    /// Reads the decoder's weights, one tensor at a time, each straight to the device.
    pub async fn load(gpu: &WebGpu, checkpoint: &WebCheckpoint, options: JsValue) -> Result<Self> {
        let WebLoadOptions { precision, unscaled, weights_on_host, directions } = from_js("load options", &options)?;
        let options = LoadOptions { precision, unscaled, weights_on_host, directions };
        let vae = Vae::load(&gpu.gpu, &checkpoint.checkpoint, options).await;
        Ok(Self { gpu: gpu.gpu.clone(), vae: checkpoint.rejection.pass_on(vae)? })
    }

    /// How it is stored, and how long it took to load.
    pub fn info(&self) -> JsValue {
        let (config, unscaled) = (self.vae.config(), self.vae.planner().unscaled());
        let info = serde_json::json!({
            "storage": self.vae.storage(),
            "submission_target": Control::default_target(self.gpu.limits().kind).as_secs_f64() * 1000.0,
            "load_seconds": self.vae.load_seconds(),
            "latent_channels": config.channels(unscaled),
            "pixels_per_latent": config.latent_factor(unscaled),
        });
        to_js(&info)
    }

    /// What plans its decodes.
    pub fn planner(&self) -> WebPlanner {
        WebPlanner { planner: self.vae.planner().clone() }
    }

    /// Decodes one image.
    pub async fn decode(
        &mut self,
        latents: &WebLatents,
        options: JsValue,
        cancel: &Cancel,
        progress: Option<Function>,
    ) -> Result<JsValue> {
        let options: WebDecodeOptions = from_js("decode options", &options)?;
        let (decode, index) = (options.options(), options.index);
        // What another size or precision left is freed before: the peak shall be this decode's.
        self.vae.free_unless(latents.latents.size(), &decode);
        self.gpu.ledger().restart_peak();
        let before = self.gpu.compiled();
        let mut show = |now: Progress<'_>| {
            if let Some(progress) = &progress {
                // What a listener throws is the listener's own affair.
                let _ = progress.call1(&JsValue::NULL, &progress_js(now));
            }
        };
        let mut control = Control {
            progress: Some(&mut show),
            cancel: Some(Arc::clone(&cancel.flag)),
            submission_target: options.submission_target(),
        };
        let (decoded, data) = match options.output {
            WebOutput::Canvas => {
                (self.vae.decode_picture(&latents.latents, index, options.format, &decode, &mut control).await?, None)
            }
            WebOutput::Rgba8 | WebOutput::Raw => {
                let size = self.vae.image_size(&latents.latents);
                let mut rows = RowsForJs::new(size, options.output)?;
                let mut sink = |part: Rows<'_>| {
                    rows.place(&part);
                    Ok(())
                };
                let decoded = self.vae.decode_rows(&latents.latents, index, &decode, &mut control, &mut sink).await?;
                (decoded, Some(rows.into_js()))
            }
        };
        Ok(self.result(decoded, data, before))
    }

    /// `before`: the pipelines that there were, and the time they had taken.
    fn result(&self, decoded: DecodedRows, data: Option<JsValue>, before: (usize, Duration)) -> JsValue {
        let (compiled, time) = self.gpu.compiled();
        let report = Report {
            predicted_peak_bytes: self.vae.predicted_peak(),
            measured_peak_bytes: self.gpu.ledger().peak(),
            compiled: compiled - before.0,
            compile_seconds: time.saturating_sub(before.1).as_secs_f64(),
            fallback_text: decoded.fallback.as_ref().map(ToString::to_string),
            fallback: decoded.fallback,
            run: decoded.run,
        };
        let picture = match self.vae.picture() {
            Some((buffer, row)) if data.is_none() => {
                object(&[("buffer", buffer.handle()), ("bytesPerRow", count(row.0)), ("offset", 0.into())])
            }
            _ => JsValue::UNDEFINED,
        };
        object(&[
            ("width", decoded.size.width.into()),
            ("height", decoded.size.height.into()),
            ("data", data.unwrap_or(JsValue::UNDEFINED)),
            ("picture", picture),
            ("report", to_js(&report)),
        ])
    }
}

/// An image in JavaScript's memory, filled by rows.
enum RowsForJs {
    Rgba8(Uint8ClampedArray),
    Raw(Float32Array),
}

impl RowsForJs {
    fn new(size: Size, output: WebOutput) -> Result<Self> {
        let pixels = u64::from(size.width) * u64::from(size.height);
        let (class, length, bytes) = match output {
            WebOutput::Raw => ("Float32Array", pixels * 3, pixels * 12),
            WebOutput::Canvas | WebOutput::Rgba8 => ("Uint8ClampedArray", pixels * 4, pixels * 4),
        };
        let array = u32::try_from(length).ok().and_then(|length| new_array(class, length));
        let array =
            array.ok_or_else(|| Error::HostMemory { what: format!("an image of {size}"), needed: Bytes(bytes) })?;
        Ok(match output {
            WebOutput::Raw => Self::Raw(array.unchecked_into()),
            WebOutput::Canvas | WebOutput::Rgba8 => Self::Rgba8(array.unchecked_into()),
        })
    }

    fn place(&mut self, part: &Rows<'_>) {
        let (width, start) = (part.image.width, part.rows.start);
        match (self, &part.pixels) {
            (Self::Rgba8(array), RowPixels::Rgba8(data)) => {
                array.subarray(start * width * 4, part.rows.end * width * 4).copy_from(data);
            }
            (Self::Raw(array), RowPixels::Raw(data)) => {
                let (rows, plane) = ((part.rows.end - start) * width, width * part.image.height);
                for (channel, values) in (0..).zip(data.chunks_exact(rows as usize)) {
                    let first = channel * plane + start * width;
                    array.subarray(first, first + rows).copy_from(values);
                }
            }
            // One plan makes both.
            (Self::Rgba8(_), RowPixels::Raw(_)) | (Self::Raw(_), RowPixels::Rgba8(_)) => {}
        }
    }

    fn into_js(self) -> JsValue {
        match self {
            Self::Rgba8(array) => array.into(),
            Self::Raw(array) => array.into(),
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

fn object(entries: &[(&str, JsValue)]) -> JsValue {
    let object = Object::new();
    for (name, value) in entries {
        // Setting a property of a new object cannot fail.
        let _ = Reflect::set(&object, &(*name).into(), value);
    }
    object.into()
}

#[expect(clippy::cast_precision_loss, reason = "JavaScript's numbers")]
fn count(value: u64) -> JsValue {
    (value as f64).into()
}
