//! A model on a device, as Python holds it.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use pyo3::prelude::*;
use serde_json::json;
use wgvae::files::{LatentScale, Variant};
use wgvae::{Checkpoint, Directions, LatentSpace, LoadOptions, Precision, Size};

use crate::arrays::Array;
use crate::clip;
use crate::device::{Device, Source};
use crate::errors::{Stop, input};
use crate::hub;
use crate::images::{self, check_multiple};
use crate::options::{Options, Place};
use crate::watch::{Watch, run};

/// A model on a device. Several threads may use it: they take turns.
#[pyclass(frozen, module = "wgvae._native")]
#[derive(Debug)]
pub(crate) struct Model {
    /// `None` after it is closed.
    device: Mutex<Option<Arc<Device>>>,
    /// Process that opened the device. Its child processes cannot use the device.
    process: u32,
    precision: Precision,
    /// Facts about the model and its device, as JSON.
    facts: String,
}

#[pymethods]
impl Model {
    /// Opens a model's files and a device. Reads headers only.
    #[staticmethod]
    #[pyo3(signature = (path, family, border, fp16, preview_rate, place))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        family: Option<String>,
        border: Option<String>,
        fp16: bool,
        preview_rate: bool,
        place: Place,
    ) -> PyResult<Self> {
        let precision = place.precision().map_err(|error| Stop::from(error).into_exception(py))?;
        let variant = if fp16 { Variant::Fp16 } else { Variant::Default };
        let (device, facts) = run(py, None, |_| {
            let source = Source { path: hub::local(path, variant)?, family, border, variant, preview_rate };
            let checkpoint = source.open()?;
            let device = place.open()?;
            let facts = facts(&checkpoint, &device, precision).to_string();
            Ok((Arc::new(Device::new(checkpoint, device)), facts))
        })?;
        Ok(Self { device: Mutex::new(Some(device)), process: std::process::id(), precision, facts })
    }

    /// Facts about the model and its device, as JSON.
    #[getter]
    fn facts(&self) -> &str {
        &self.facts
    }

    /// True if it is closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        self.check_process(py)?;
        Ok(self.device.lock().is_none())
    }

    /// Releases the device after running calls have ended.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.check_process(py)?;
        let device = self.device.lock().take();
        py.detach(|| drop(device));
        Ok(())
    }

    /// Returns the device's memory in bytes: the current amount and the peak.
    fn memory(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let device = self.device(py)?;
        let ledger = device.device.ledger();
        Ok((ledger.current().0, ledger.peak().0))
    }

    /// See `wgvae.Vae.decode`.
    fn decode(
        &self,
        py: Python<'_>,
        latents: &Bound<'_, PyAny>,
        bfloat16: bool,
        options: Options,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let latents = Array::new(latents, "latents", bfloat16, false);
        self.call(py, latents, &options, progress, |device, load, latents, watch| {
            images::decode(device, load, latents, &options, watch)
        })?
        .into_array(py)
    }

    /// See `wgvae.Vae.encode`.
    fn encode(
        &self,
        py: Python<'_>,
        images: &Bound<'_, PyAny>,
        bfloat16: bool,
        options: Options,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let images = Array::new(images, "images", bfloat16, true);
        self.call(py, images, &options, progress, |device, load, images, watch| {
            images::encode(device, load, images, &options, watch)
        })?
        .into_array(py)
    }

    /// See `wgvae.Clip.decode`.
    fn decode_clip(
        &self,
        py: Python<'_>,
        latents: &Bound<'_, PyAny>,
        bfloat16: bool,
        take: Py<PyAny>,
        options: Options,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let latents = Array::new(latents, "latents", bfloat16, false);
        self.call(py, latents, &options, progress, |device, load, latents, watch| {
            clip::decode(device, load, latents, &take, &options, watch)
        })
    }

    /// See `wgvae.Clip.encode`.
    fn encode_clip(
        &self,
        py: Python<'_>,
        frames: &Bound<'_, PyAny>,
        bfloat16: bool,
        take: Py<PyAny>,
        options: Options,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let frames = Array::new(frames, "frames", bfloat16, true);
        self.call(py, frames, &options, progress, |device, load, frames, watch| {
            clip::encode(device, load, frames, &take, &options, watch)
        })
    }

    /// Plans a decode or an encode of an image of that size, and returns text and JSON. For a clip,
    /// the plans of its first part and of its other parts.
    fn plan(
        &self,
        py: Python<'_>,
        height: u32,
        width: u32,
        encode: bool,
        clip: bool,
        options: Options,
    ) -> PyResult<(String, String)> {
        let device = self.device(py)?;
        let directions = if encode { Directions::Encode } else { Directions::Decode };
        let load = LoadOptions { directions, clips: clip, ..self.load_options(&options) };
        run(py, None, |_: &mut Watch| {
            let planner = device.planner(load)?;
            let (image, space, config) = (Size { width, height }, options.space(), planner.config());
            // A decode may make larger pictures than those that encode to the same latents.
            let (factor, step) = if encode {
                (config.latent_factor(space), config.image_step(space))
            } else {
                (config.decoded_factor(space), config.decoded_step(space))
            };
            check_multiple(image, step)?;
            let latents = Size { width: width / factor, height: height / factor };
            let latents = match options.max_side {
                Some(side) => config.reduced_size(latents, space, side)?,
                None => latents,
            };
            let request = if encode {
                options.encode()?.request(image)
            } else {
                options.decode(config)?.request(latents, space, options.format())
            };
            if !clip {
                let plans = planner.plan(&request)?;
                let mut facts = json!(plans.first().facts());
                // Of all tiles.
                facts["predicted_peak_bytes"] = json!(plans.peak());
                facts["host_bytes"] = json!(plans.host_bytes());
                facts["macs"] = json!(plans.macs(1));
                facts["predicted_seconds"] = json!(plans.predicted_seconds(1));
                facts["transferred_bytes"] = json!(plans.transferred(1));
                return Ok((plans.to_string(), json!([facts]).to_string()));
            }
            let plans = planner.plan(&request.of_clip())?;
            Ok((plans.to_string(), json!([plans.first().facts(), plans.later().facts()]).to_string()))
        })
    }
}

impl Model {
    /// Runs `work` on an array from Python, without the GIL.
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        array: Result<Array, Stop>,
        options: &Options,
        progress: Option<Py<PyAny>>,
        work: impl FnOnce(&Device, LoadOptions, &Array, &mut Watch) -> Result<T, Stop> + Send,
    ) -> PyResult<T> {
        let device = self.device(py)?;
        let array = array.map_err(|stop| stop.into_exception(py))?;
        let load = self.load_options(options);
        run(py, progress, |watch| {
            if !options.moments {
                device.checkpoint.check_space(options.space())?;
            }
            work(&device, load, &array, watch)
        })
    }

    /// Returns the device, if this process opened it.
    fn device(&self, py: Python<'_>) -> PyResult<Arc<Device>> {
        self.check_process(py)?;
        self.device.lock().clone().ok_or_else(|| input(py, "Vae", "an open Vae", "a closed Vae"))
    }

    fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        let here = std::process::id();
        if here == self.process {
            return Ok(());
        }
        let expected = format!(
            "a Vae that process {here} opened, as a device does not survive a fork: open the model in this process"
        );
        Err(input(py, "Vae", &expected, &format!("a Vae of process {}", self.process)))
    }

    fn load_options(&self, options: &Options) -> LoadOptions {
        LoadOptions { precision: self.precision, weights_on_host: options.has_budget(), ..LoadOptions::default() }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            // The threads of the device belong to the parent process, so waiting for them would
            // never end.
            std::mem::forget(self.device.get_mut().take());
        }
    }
}

/// The spaces of latents, in the order of the facts.
const SPACES: [LatentSpace; 2] = [LatentSpace::Model, LatentSpace::Vae];

fn facts(checkpoint: &Checkpoint, device: &wgvae::Device, precision: Precision) -> serde_json::Value {
    let config = checkpoint.config();
    json!({
        "name": checkpoint.name(),
        "config": config,
        "files": checkpoint.files().map(|(name, _)| name).collect::<Vec<_>>(),
        "adapter": device.adapter(),
        "storage": precision.storage(device.limits()),
        "can_decode": checkpoint.check_decoder().is_ok(),
        "can_encode": checkpoint.check_encoder().is_ok(),
        "scaled": matches!(checkpoint.scale(), LatentScale::Known { .. }),
        "latent_channels": SPACES.map(|space| config.channels(space)),
        "latent_factor": SPACES.map(|space| config.latent_factor(space)),
        "image_step": SPACES.map(|space| config.image_step(space)),
        "temporal_factor": config.has_time().then(|| config.temporal_factor()),
        "fills_parts": config.fills_parts(),
        "starts": config.starts(),
        "unscaled_in_comfyui": config.space_in_comfyui(config.channels(LatentSpace::Model)).is_unscaled(),
    })
}
