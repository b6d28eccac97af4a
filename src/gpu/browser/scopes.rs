//! Error scopes, and errors that none catches.

use js_sys::{Array, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::{call, handle, text};
use crate::gpu::scopes::Caught;

/// Three error scopes of the browser's, one for each kind, until they are popped.
pub(in crate::gpu) struct Scopes {
    device: JsValue,
    pushed: usize,
}

impl Scopes {
    pub(in crate::gpu) fn push(device: &wgpu::Device) -> Self {
        let device = handle(device);
        let push = |kind: &&str| call(&device, "pushErrorScope", &Array::of1(&(*kind).into())).is_ok();
        let pushed = ["out-of-memory", "internal", "validation"].iter().filter(|kind| push(kind)).count();
        Self { device, pushed }
    }

    /// Ends the scopes now; the first error, innermost scope first, when the device has told. A device that is lost tells nothing.
    pub(in crate::gpu) fn pop(self) -> impl Future<Output = Option<Caught>> {
        let pop = |_| call(&self.device, "popErrorScope", &Array::new()).ok()?.dyn_into::<Promise>().ok();
        // Listened to from now on: a rejection that nobody hears is an error of the page's.
        let answers: Vec<JsFuture> = (0..self.pushed).filter_map(pop).map(JsFuture::from).collect();
        async move {
            let mut caught = None;
            for answer in answers {
                let error = answer.await.ok().filter(JsValue::is_object);
                caught = caught.or(error);
            }
            caught.map(|error| read_error(&error))
        }
    }
}

/// A `GPUError`, by the name of its class.
fn read_error(error: &JsValue) -> Caught {
    let class = Reflect::get(error, &"constructor".into()).ok().and_then(|class| text(&class, "name"));
    let message = text(error, "message").unwrap_or_else(|| "the browser gives no reason".to_owned());
    match class.as_deref() {
        Some("GPUOutOfMemoryError") => Caught::OutOfMemory(message),
        _ => Caught::Other(message),
    }
}

/// Calls `keep` with the message of every error that no scope catches.
pub(in crate::gpu) fn on_uncaptured_error(device: &wgpu::Device, keep: impl Fn(String) + 'static) {
    let listener = Closure::<dyn Fn(JsValue)>::new(move |event: JsValue| {
        let error = Reflect::get(&event, &"error".into()).unwrap_or(JsValue::NULL);
        match read_error(&error) {
            Caught::OutOfMemory(message) | Caught::Other(message) => keep(message),
        }
    });
    if let Some(device) = device.as_webgpu() {
        // A property of a platform object: setting it cannot fail. The listener lives as long as the device, which the browser decides.
        let _ = Reflect::set(device, &"onuncapturederror".into(), &listener.into_js_value());
    }
}
