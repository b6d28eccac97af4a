//! GPU devices for JavaScript.

use serde::{Deserialize, Serialize};
use wasm_bindgen::prelude::*;

use super::{Result, from_js, to_js};
use crate::error::Error;
use crate::gpu::{Gpu, GpuOptions};
use crate::tensor::{Bytes, Storage};

/// Which device to open.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Options {
    power_preference: Option<Power>,
    default_limits: bool,
    memory_limit: Option<Bytes>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Power {
    HighPerformance,
    LowPower,
}

/// Bytes and numbers of the buffers on a device.
#[derive(Serialize)]
struct LedgerFacts {
    current: Bytes,
    peak: Bytes,
    created: u64,
}

/// A device: our own, or the caller's.
#[wasm_bindgen(js_name = Gpu)]
#[derive(Debug)]
pub struct WebGpu {
    pub(super) gpu: Gpu,
}

#[wasm_bindgen(js_class = Gpu)]
impl WebGpu {
    /// Opens a device of `gpu`, a `GPU`.
    pub async fn request(gpu: JsValue, options: JsValue) -> Result<Self> {
        let options: Options = from_js("device options", &options)?;
        let options = GpuOptions {
            webgpu_default_limits: options.default_limits,
            memory_limit: options.memory_limit,
            low_power: options.power_preference == Some(Power::LowPower),
            gpu: Some(gpu),
            ..GpuOptions::default()
        };
        Ok(Self { gpu: Gpu::request(&options).await? })
    }

    /// Takes over the caller's device, which came of `gpu`, or of another one.
    pub async fn adopt(gpu: JsValue, device: JsValue) -> Result<Self> {
        Ok(Self { gpu: Gpu::adopt(&device, Some(gpu)).await? })
    }

    /// What it runs on.
    pub fn adapter(&self) -> JsValue {
        to_js(self.gpu.adapter())
    }

    /// Bytes of all buffers: now, at most, and how many were created.
    pub fn ledger(&self) -> JsValue {
        let ledger = self.gpu.ledger();
        to_js(&LedgerFacts { current: ledger.current(), peak: ledger.peak(), created: ledger.created() })
    }

    /// The `GPUDevice`.
    pub fn device(&self) -> JsValue {
        self.gpu.handle()
    }

    /// Resolves when the device has done all that was submitted.
    pub async fn idle(&self) -> Result<()> {
        Ok(self.gpu.idle().await?)
    }

    /// Destroys the device, unless it is the caller's.
    pub fn lose(&self) {
        self.gpu.destroy();
    }
}

/// Compiles every kernel in every variant that a plan can ask for, on `gpu`. Returns their files' names. For tests.
#[wasm_bindgen(js_name = compileAll)]
pub async fn compile_all(gpu: &WebGpu, storage: &str) -> Result<JsValue> {
    let storage: Storage = serde_json::from_value(storage.into()).map_err(|problem| Error::Input {
        what: "storage".to_owned(),
        expected: "f32, f16 or packed_f16".to_owned(),
        found: problem.to_string(),
    })?;
    Ok(to_js(&crate::vae::compile_all(&gpu.gpu, storage).await?))
}
