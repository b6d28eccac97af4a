//! GPU devices for JavaScript, and the kernels that models use there. A module that computes on the
//! CPU lacks this file.

use serde::Serialize;
use serde_json::Value;
use wasm_bindgen::prelude::*;

use super::device::WebDevice;
use super::{Result, to_js};
use crate::error::Error;
use crate::gpu::{Gpu, GpuOptions};
use crate::tuning::TuneOptions;

/// Returns the crate's options for a device of `gpu`, a `GPU` object.
pub(super) fn options_of(gpu: JsValue, low_power: bool, webgpu_default_limits: bool) -> GpuOptions {
    GpuOptions { webgpu_default_limits, low_power, gpu: Some(gpu), ..GpuOptions::default() }
}

impl WebDevice {
    /// Returns the GPU. In this module every device is one.
    fn gpu(&self) -> Result<&Gpu> {
        self.device.gpu().ok_or_else(|| Error::input("device", "a GPU", "the CPU").into())
    }
}

#[wasm_bindgen(js_class = Device)]
impl WebDevice {
    /// Opens a device of `gpu`, a `GPU` object.
    pub async fn request(gpu: JsValue, low_power: bool, default_limits: bool) -> Result<Self> {
        Ok(Self { device: Gpu::request(&options_of(gpu, low_power, default_limits)).await?.into() })
    }

    /// Uses the caller's `device`. It comes from `gpu`, or from another `GPU` object.
    pub async fn adopt(gpu: JsValue, device: JsValue) -> Result<Self> {
        Ok(Self { device: Gpu::adopt(&device, Some(gpu)).await?.into() })
    }

    /// Returns the `GPUDevice`.
    #[wasm_bindgen(js_name = gpuDevice)]
    pub fn gpu_device(&self) -> JsValue {
        self.device.gpu().map_or(JsValue::UNDEFINED, Gpu::handle)
    }

    /// Times the kernels that the rules allow on this device.
    pub async fn tune(&self) -> Result<JsValue> {
        Ok(to_js(&self.gpu()?.tune(&TuneOptions::default()).await?))
    }

    /// Returns the key under which the result of `tune` may be stored.
    #[wasm_bindgen(js_name = tuningKey)]
    pub fn tuning_key(&self) -> String {
        self.device.gpu().map_or_else(String::new, Gpu::tuning_key)
    }

    /// Sets the kernels of models that are loaded from now on, in place of the rules' kernels.
    #[wasm_bindgen(js_name = takeKernels)]
    pub fn take_kernels(&mut self, kernels: &JsValue) -> Result<()> {
        let text = js_sys::JSON::stringify(kernels).map(String::from).unwrap_or_default();
        // Compares their JSON. Code to deserialise kernels would add to the download of a page.
        let wanted: Option<Value> = serde_json::from_str(&text).ok();
        let is_wanted = |kernels: &_| wanted.is_some() && as_value(kernels) == wanted;
        let Some(kernels) = self.gpu()?.possible_kernels().into_iter().find(is_wanted) else {
            return Err(Error::input("kernels", "kernels that tuning can find on this device", text).into());
        };
        self.device = self.gpu()?.clone().with_kernels(kernels)?.into();
        Ok(())
    }

    /// Destroys the device, unless the caller made it.
    pub fn lose(&self) {
        self.device.gpu().inspect(|gpu| gpu.destroy());
    }
}

/// Converts to a JSON value, to be compared.
fn as_value(value: &impl Serialize) -> Option<Value> {
    serde_json::from_str(&serde_json::to_string(value).ok()?).ok()
}
