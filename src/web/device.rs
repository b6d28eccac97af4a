//! Devices for JavaScript: a GPU, or the CPU in a module that computes there.

use std::sync::Arc;

use js_sys::Function;
use serde::Serialize;
use serde_json::json;
use wasm_bindgen::prelude::*;

use super::{Result, to_js};
use crate::device::Device;
use crate::execution::{Listener, Preparing};
use crate::tensor::Bytes;

/// The bytes and the number of the buffers on a device.
#[derive(Serialize)]
struct LedgerFacts {
    current: Bytes,
    peak: Bytes,
    created: u64,
}

/// A device that this module opened, or that the caller made.
#[wasm_bindgen(js_name = Device)]
#[derive(Debug)]
pub struct WebDevice {
    pub(super) device: Device,
}

#[wasm_bindgen(js_class = Device)]
impl WebDevice {
    /// Returns facts about the adapter.
    pub fn adapter(&self) -> JsValue {
        to_js(self.device.adapter())
    }

    /// Returns the bytes of all buffers now, the most bytes ever at once, and the number of buffers
    /// created.
    pub fn ledger(&self) -> JsValue {
        let ledger = self.device.ledger();
        to_js(&LedgerFacts { current: ledger.current(), peak: ledger.highest(), created: ledger.created() })
    }

    /// Sets the listener that hears how many kernels are compiled, from now on. Without one,
    /// removes it.
    pub fn watch(&self, listener: Option<Function>) {
        let told = listener.map(|listener| -> Arc<Listener> {
            Arc::new(move |now: Preparing<'_>| {
                if let Preparing::Kernels { done, total, kernel } = now {
                    let facts = to_js(&json!({ "done": done, "total": total, "kernel": kernel }));
                    // Exceptions of a listener are ignored.
                    let _ = listener.call1(&JsValue::NULL, &facts);
                }
            })
        });
        self.device.watch(told);
    }

    /// Resolves when the device has finished all submitted work.
    pub async fn idle(&self) -> Result<()> {
        Ok(self.device.idle().await?)
    }
}
