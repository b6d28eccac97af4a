//! What only a browser has: devices and buffers that JavaScript made. The one place that knows wgpu's handles behind them.
//!
//! wgpu 30 cannot adopt a `GPUDevice`. But it asks the browser for one by `GPUAdapter.prototype.requestDevice`, and takes what that gives.

mod foreign;
mod host_bytes;
mod scopes;

use js_sys::{Array, Function, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;

pub use self::foreign::ForeignBuffer;
pub use self::host_bytes::HostBytes;
pub(super) use self::scopes::{Scopes, on_uncaptured_error};

use super::Gpu;
use super::buffers::GpuBuffer;
use crate::error::{DeviceError, Error, Result};

/// Opens `device`, which the caller made, as wgpu's.
pub(super) async fn adopt(
    adapter: &wgpu::Adapter,
    descriptor: &wgpu::DeviceDescriptor<'_>,
    device: &JsValue,
) -> Result<(wgpu::Device, wgpu::Queue)> {
    let refused = |reason: String| {
        Error::Device(DeviceError::Refused { adapter: "that of the caller's device".to_owned(), reason })
    };
    let failed = |error: JsValue| refused(format!("{error:?}"));
    let prototype = Reflect::get(&js_sys::global(), &"GPUAdapter".into())
        .and_then(|class| Reflect::get(&class, &"prototype".into()))
        .map_err(failed)?;
    let existing = device.clone();
    let give = Closure::<dyn Fn() -> Promise>::new(move || Promise::resolve(&existing));
    // The browser is asked before this returns; what is awaited is only the answer.
    let ask = || adapter.request_device(descriptor);
    let request = with_method(&prototype, "requestDevice", give.as_ref(), ask).map_err(failed)?;
    request.await.map_err(|error| refused(error.to_string()))
}

/// What an adapter is called. wgpu passes on a description, which browsers leave empty.
pub(super) fn adapter_name(device: &wgpu::Device) -> Option<String> {
    let info = Reflect::get(device.as_webgpu()?, &"adapterInfo".into()).ok()?;
    let part = |name: &str| text(&info, name);
    let parts: Vec<String> = ["vendor", "architecture", "device", "description"].into_iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

impl Gpu {
    /// The browser's device.
    pub fn handle(&self) -> JsValue {
        handle(&self.inner.device)
    }
}

impl GpuBuffer {
    /// The browser's buffer.
    pub fn handle(&self) -> JsValue {
        self.raw().as_webgpu().map_or(JsValue::NULL, |buffer| buffer.into())
    }
}

fn call(object: &JsValue, method: &str, arguments: &Array) -> std::result::Result<JsValue, JsValue> {
    let function: Function = Reflect::get(object, &method.into())?.dyn_into()?;
    Reflect::apply(&function, object, arguments)
}

/// A property that has text in it.
fn text(object: &JsValue, name: &str) -> Option<String> {
    Reflect::get(object, &name.into()).ok()?.as_string().filter(|text| !text.is_empty())
}

fn handle(device: &wgpu::Device) -> JsValue {
    device.as_webgpu().map_or(JsValue::NULL, |device| device.into())
}

/// Runs `work` while `replacement` stands in for a method of `object`.
fn with_method<T>(
    object: &JsValue,
    method: &str,
    replacement: &JsValue,
    work: impl FnOnce() -> T,
) -> std::result::Result<T, JsValue> {
    let (object, name) = (object.dyn_ref::<Object>().ok_or(JsValue::NULL)?, JsValue::from(method));
    let own = Object::get_own_property_descriptor(object, &name);
    let restore = || match own.is_undefined() {
        true => Reflect::delete_property(object, &name),
        false => Reflect::define_property(object, &name, own.unchecked_ref()),
    };
    Reflect::set(object, &name, replacement)?;
    let done = work();
    restore()?;
    Ok(done)
}

/// A typed array of zeros. `None` where the browser has no memory for it: that must not end the module, as web-sys's own constructors would.
pub(crate) fn new_array(class: &str, length: u32) -> Option<JsValue> {
    let class = Reflect::get(&js_sys::global(), &class.into()).ok()?;
    Reflect::construct(class.dyn_ref::<Function>()?, &Array::of1(&length.into())).ok()
}
