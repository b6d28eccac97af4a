//! Error scopes, and the listener for errors that no scope catches.

use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::bindings::{Device, GpuError, OutOfMemoryError, UncapturedErrorEvent};
use super::typed;
use crate::gpu::scopes::Caught;

/// Three error scopes of the browser, one for each kind of error, until they are popped.
pub(in crate::gpu) struct Scopes {
    device: Option<Device>,
    pushed: usize,
}

impl Scopes {
    pub(in crate::gpu) fn push(device: &wgpu::Device) -> Self {
        let device = typed(device);
        let push = |kind: &&str| device.as_ref().is_some_and(|device| device.push_error_scope(kind).is_ok());
        let pushed = ["out-of-memory", "internal", "validation"].iter().filter(|kind| push(kind)).count();
        Self { device, pushed }
    }

    /// Ends the scopes now. The returned future gives the first error, innermost scope first, once
    /// the device has reported. A lost device reports nothing.
    pub(in crate::gpu) fn pop(self) -> impl Future<Output = Option<Caught>> {
        let pop = |_| self.device.as_ref()?.pop_error_scope().ok();
        // The promises need a listener from now on: the page reports an unhandled rejection as an
        // error.
        let answers: Vec<JsFuture> = (0..self.pushed).filter_map(pop).map(JsFuture::from).collect();
        async move {
            let mut caught = None;
            for answer in answers {
                let error = answer.await.ok().filter(JsValue::is_object);
                caught = caught.or(error);
            }
            caught.map(|error| read_error(error.unchecked_ref()))
        }
    }
}

pub(super) fn read_error(error: &GpuError) -> Caught {
    let message = error.message().filter(|message| !message.is_empty());
    let message = message.unwrap_or_else(|| "the browser gives no reason".to_owned());
    match error.is_instance_of::<OutOfMemoryError>() {
        true => Caught::OutOfMemory(message),
        false => Caught::Other(message),
    }
}

/// Calls `keep` with the message of every error that no scope catches.
pub(in crate::gpu) fn on_uncaptured_error(device: &wgpu::Device, keep: impl Fn(String) + 'static) {
    let listener = Closure::<dyn Fn(UncapturedErrorEvent)>::new(move |event: UncapturedErrorEvent| {
        match read_error(&event.error()) {
            Caught::OutOfMemory(message) | Caught::Other(message) => keep(message),
        }
    });
    if let Some(device) = typed(device) {
        // The listener lives as long as the device, which the browser decides.
        device.set_onuncapturederror(listener.into_js_value().unchecked_ref());
    }
}
