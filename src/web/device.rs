//! GPU devices for JavaScript, and which kernels models have there.

use std::sync::Arc;

use js_sys::Function;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wasm_bindgen::prelude::*;

use super::{Result, from_js, to_js};
use crate::error::Error;
use crate::gpu::{Gpu, GpuOptions, Listener, Preparing};
use crate::tensor::{Bytes, Storage};
use crate::tuning::TuneOptions;

/// Which device to open.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Options {
    power_preference: Option<Power>,
    default_limits: bool,
    memory_limit: Option<Bytes>,
}

impl Options {
    /// For a device of `gpu`, a `GPU`.
    pub(super) fn of(self, gpu: JsValue) -> GpuOptions {
        GpuOptions {
            webgpu_default_limits: self.default_limits,
            memory_limit: self.memory_limit,
            low_power: self.power_preference == Some(Power::LowPower),
            gpu: Some(gpu),
            ..GpuOptions::default()
        }
    }
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
        Ok(Self { gpu: Gpu::request(&options.of(gpu)).await? })
    }

    /// Takes over the caller's device, which came of `gpu`, or of another one.
    pub async fn adopt(gpu: JsValue, device: JsValue) -> Result<Self> {
        Ok(Self { gpu: Gpu::adopt(&device, Some(gpu)).await? })
    }

    /// What it runs on.
    pub fn adapter(&self) -> JsValue {
        to_js(self.gpu.adapter())
    }

    /// Bytes of all buffers: now, and the most there ever were at once; and how many were created.
    pub fn ledger(&self) -> JsValue {
        let ledger = self.gpu.ledger();
        to_js(&LedgerFacts { current: ledger.current(), peak: ledger.highest(), created: ledger.created() })
    }

    /// The `GPUDevice`.
    pub fn device(&self) -> JsValue {
        self.gpu.handle()
    }

    /// From now on `listener` hears how many kernels are compiled; nobody does without.
    pub fn watch(&self, listener: Option<Function>) {
        let told = listener.map(|listener| -> Arc<Listener> {
            Arc::new(move |now: Preparing<'_>| {
                if let Preparing::Kernels { done, total, kernel } = now {
                    let facts = to_js(&json!({ "done": done, "total": total, "kernel": kernel }));
                    // What a listener throws is the listener's own affair.
                    let _ = listener.call1(&JsValue::NULL, &facts);
                }
            })
        });
        self.gpu.watch(told);
    }

    /// Times the kernels that the rules leave open.
    pub async fn tune(&self) -> Result<JsValue> {
        Ok(to_js(&self.gpu.tune(&TuneOptions::default()).await?))
    }

    /// By what the result of that may be remembered.
    #[wasm_bindgen(js_name = tuningKey)]
    pub fn tuning_key(&self) -> String {
        self.gpu.tuning_key()
    }

    /// Models that are loaded from now on have these kernels, in the rules' place.
    #[wasm_bindgen(js_name = takeKernels)]
    pub fn take_kernels(&mut self, kernels: &JsValue) -> Result<()> {
        let text = js_sys::JSON::stringify(kernels).map(String::from).unwrap_or_default();
        // By their text: to read them is more code than a page needs to download.
        let wanted: Option<Value> = serde_json::from_str(&text).ok();
        let is_wanted = |kernels: &_| wanted.is_some() && as_value(kernels) == wanted;
        let Some(kernels) = self.gpu.possible_kernels().into_iter().find(is_wanted) else {
            return Err(Error::Input {
                what: "kernels".to_owned(),
                expected: "some that measuring can find on this device".to_owned(),
                found: text,
            }
            .into());
        };
        self.gpu = self.gpu.clone().with_kernels(kernels)?;
        Ok(())
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

/// As JSON is compared.
fn as_value(value: &impl Serialize) -> Option<Value> {
    serde_json::from_str(&serde_json::to_string(value).ok()?).ok()
}

/// Compiles every kernel in every variant that a plan can ask for, on `gpu`. Returns their files'
/// names. For tests.
#[wasm_bindgen(js_name = compileAll)]
pub async fn compile_all(gpu: &WebGpu, storage: &str) -> Result<JsValue> {
    let storage: Storage = serde_json::from_value(storage.into()).map_err(|problem| Error::Input {
        what: "storage".to_owned(),
        expected: "f32, f16, packed_f16 or fast_f16".to_owned(),
        found: problem.to_string(),
    })?;
    Ok(to_js(&crate::vae::compile_all(&gpu.gpu, storage).await?))
}
