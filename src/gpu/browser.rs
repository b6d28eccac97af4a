//! What only a browser has: devices and buffers that JavaScript made. The one place that knows
//! wgpu's handles behind them.
//!
//! wgpu 30 cannot adopt a `GPUDevice`, nor ask for one with `subgroups`. But it asks the browser by
//! `GPUAdapter.prototype.requestDevice`, and takes what that gives.

mod bindings;
mod compiling;
mod foreign;
mod host_bytes;
mod scopes;
mod unwanted;

use js_sys::{Array, Function, Object, Promise, Proxy, Reflect};
use wasm_bindgen::prelude::*;

use self::bindings::{ADAPTER_PROTOTYPE, Adapter, Device, DeviceDescriptor};
pub(super) use self::compiling::compile_all;
pub use self::foreign::ForeignBuffer;
pub use self::host_bytes::HostBytes;
pub(super) use self::scopes::{Scopes, on_uncaptured_error};
pub(super) use self::unwanted::Unwanted;

use super::Gpu;
use super::buffers::GpuBuffer;
use crate::error::{DeviceError, Error, Result};

type Thrown<T> = std::result::Result<T, JsValue>;

const REQUEST_DEVICE: &str = "requestDevice";
/// The name of a feature.
const SUBGROUPS: &str = "subgroups";

/// What to do where a browser's WebGPU finds no adapter. Node and Deno look for drivers as programs
/// do.
pub(super) const NO_ADAPTER_ADVICE: &str = "there is WebGPU, but it gives no GPU: in a browser turn on graphics acceleration in its settings; update the graphics \
                                            driver and the browser";

/// Whether this is a page or a worker of one, and not Node or Deno, whose workers are a browser's
/// by the names of their classes.
pub(super) fn is_browser() -> bool {
    let has = |name: &str| Reflect::has(&js_sys::global(), &name.into()).unwrap_or(false);
    !has("Deno") && (has("Window") || has("WorkerGlobalScope"))
}

/// Opens `device`, which the caller made, as wgpu's.
pub(super) async fn adopt(
    adapter: &wgpu::Adapter,
    descriptor: &wgpu::DeviceDescriptor<'_>,
    device: &JsValue,
) -> Result<(wgpu::Device, wgpu::Queue)> {
    let refused = |reason: String| {
        Error::Device(DeviceError::Refused { adapter: "that of the caller's device".to_owned(), reason })
    };
    let prototype = ADAPTER_PROTOTYPE.with(Option::clone);
    let prototype = prototype.ok_or_else(|| refused("this browser has no GPUAdapter".to_owned()))?;
    let existing = device.clone();
    let give = Closure::<dyn Fn() -> Promise>::new(move || Promise::resolve(&existing));
    // The browser is asked before this returns; what is awaited is only the answer.
    let ask = || adapter.request_device(descriptor);
    let request = with_property(&prototype, REQUEST_DEVICE, give.as_ref(), ask).ok_or_else(|| {
        refused("GPUAdapter.prototype is frozen, and a device can only be taken over through it".to_owned())
    })?;
    let (opened, queue) = request.await.map_err(|error| refused(error.to_string()))?;
    if handle(&opened) != *device {
        // Nobody else knows of it.
        opened.destroy();
        return Err(refused("the browser gave another device".to_owned()));
    }
    Ok((opened, queue))
}

/// Asks for a device, on a processor for one with `subgroups`, if its adapter has them.
pub(super) fn request_device(
    adapter: &wgpu::Adapter,
    descriptor: &wgpu::DeviceDescriptor<'_>,
) -> impl Future<Output = std::result::Result<(wgpu::Device, wgpu::Queue), wgpu::RequestDeviceError>> {
    let ask = || adapter.request_device(descriptor);
    if adapter.get_info().device_type != wgpu::DeviceType::Cpu {
        return ask();
    }
    let with_subgroups = Closure::<dyn Fn(Function, Adapter, Array) -> Thrown<JsValue>>::new(ask_with_subgroups);
    let own = ADAPTER_PROTOTYPE.with(Option::clone).and_then(|prototype| {
        let request = Reflect::get(&prototype, &REQUEST_DEVICE.into()).ok()?;
        let handler = Object::new();
        Reflect::set(&handler, &"apply".into(), with_subgroups.as_ref()).ok()?;
        with_property(&prototype, REQUEST_DEVICE, &Proxy::new(&request, &handler), ask)
    });
    // Where the prototype is frozen the kernels are those for a device without.
    own.unwrap_or_else(ask)
}

/// Calls `request`, which is `requestDevice`, of `adapter`.
fn ask_with_subgroups(request: Function, adapter: Adapter, arguments: Array) -> Thrown<JsValue> {
    if adapter.features().has(SUBGROUPS) {
        arguments.get(0).unchecked_ref::<DeviceDescriptor>().required_features().push(&SUBGROUPS.into());
    }
    request.apply(&adapter, &arguments)
}

/// Whether kernels on `device` may use subgroup operations.
pub(super) fn has_subgroups(device: &wgpu::Device) -> bool {
    typed(device).is_some_and(|device| device.features().has(SUBGROUPS))
}

/// What a browser tells of an adapter. wgpu passes on a description only, which browsers leave
/// empty.
#[derive(Default)]
pub(super) struct AdapterInfo {
    /// Vendor, architecture and what else there is, in one line.
    pub(super) name: Option<String>,
    pub(super) vendor: Option<String>,
}

pub(super) fn adapter_info(device: &wgpu::Device) -> AdapterInfo {
    let Some(info) = typed(device).and_then(|device| device.adapter_info()) else { return AdapterInfo::default() };
    let parts = [info.vendor(), info.architecture(), info.device(), info.description()];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    AdapterInfo { name: (!parts.is_empty()).then(|| parts.join(" ")), vendor: info.vendor() }
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

fn handle(device: &wgpu::Device) -> JsValue {
    device.as_webgpu().map_or(JsValue::NULL, |device| device.into())
}

fn typed(device: &wgpu::Device) -> Option<Device> {
    device.as_webgpu().map(|device| JsValue::from(device).unchecked_into())
}

/// Runs `work` while wgpu finds `gpu`, if there is one. It looks for it in pages and in workers
/// alone, which it tells by the names of their classes: so Node and Deno are taken for a page for
/// as long. `None`, and nothing is run, where the global object is frozen.
pub(super) fn with_gpu<T>(gpu: Option<&JsValue>, work: impl FnOnce() -> T) -> Option<T> {
    let Some(gpu) = gpu else { return Some(work()) };
    let (global, navigator) = (js_sys::global(), Object::new());
    // Setting a property of a new object cannot fail.
    let _ = Reflect::set(&navigator, &"gpu".into(), gpu);
    with_property(&global, "Window", &Object::new(), || with_property(&global, "navigator", &navigator, work)).flatten()
}

/// Runs `work` while `replacement` stands in for a property of `object`. `None`, and nothing is
/// run, where the object may not be changed.
fn with_property<T>(object: &Object, name: &str, replacement: &JsValue, work: impl FnOnce() -> T) -> Option<T> {
    let name = JsValue::from(name);
    let own = Object::get_own_property_descriptor(object, &name);
    let stand_in = Object::new();
    for (attribute, value) in [("value", replacement), ("configurable", &true.into()), ("writable", &true.into())] {
        let _ = Reflect::set(&stand_in, &attribute.into(), value);
    }
    // A frozen object answers false, it does not throw.
    if !Reflect::define_property(object, &name, &stand_in).unwrap_or(false) {
        return None;
    }
    let done = work();
    // What could be replaced can be put back.
    let _ = match own.is_undefined() {
        true => Reflect::delete_property(object, &name),
        false => Reflect::define_property(object, &name, own.unchecked_ref()),
    };
    Some(done)
}

/// A typed array of zeros. `None` where the browser has no memory for it: that must not end the
/// module, as web-sys's own constructors would.
pub(crate) fn new_array(class: &str, length: u32) -> Option<JsValue> {
    let class = Reflect::get(&js_sys::global(), &class.into()).ok()?;
    Reflect::construct(class.dyn_ref::<Function>()?, &Array::of1(&length.into())).ok()
}
