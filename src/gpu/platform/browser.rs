//! Browser-only code: devices and buffers that JavaScript made. This is the only module that uses
//! the handles behind wgpu's objects.
//!
//! wgpu 30 can neither adopt a `GPUDevice` nor request one with `subgroups`. But it calls the
//! browser's `GPUAdapter.prototype.requestDevice`, and takes the device that this returns. So that
//! method is replaced for the time of the call.

mod bindings;
mod callers;
mod compiling;
mod foreign;
mod host_bytes;
mod polling;
mod scopes;
mod unwanted;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use js_sys::{Array, Function, Object, Promise, Proxy, Reflect};
use wasm_bindgen::prelude::*;

use self::bindings::{ADAPTER_PROTOTYPE, Adapter, Device, DeviceDescriptor};
pub(in crate::gpu) use self::compiling::compile_all;
pub use self::foreign::ForeignBuffer;
pub use self::host_bytes::HostBytes;
pub(in crate::gpu) use self::polling::Poller;
pub(in crate::gpu) use self::scopes::{Scopes, on_uncaptured_error};
pub(in crate::gpu) use self::unwanted::Unwanted;

use crate::error::{DeviceError, Error, Result};
use crate::execution::AdapterReport;
use crate::gpu::Gpu;
use crate::gpu::buffers::GpuBuffer;
use crate::gpu::options::{GpuOptions, NO_ADAPTER_ADVICE, QUAD};
use crate::limits::{DeviceLimits, Vendor};

type Thrown<T> = std::result::Result<T, JsValue>;

const REQUEST_DEVICE: &str = "requestDevice";
/// WebGPU's name of the subgroups feature.
const SUBGROUPS: &str = "subgroups";

/// Advice for a browser whose WebGPU finds no adapter. Node and Deno look for drivers as native
/// programs do.
const NO_BROWSER_ADAPTER_ADVICE: &str = "there is WebGPU, but it gives no GPU: in a browser turn on graphics acceleration in its settings; update the graphics \
                                            driver and the browser";

/// True in a page or in a worker of a page. False in Node and Deno, although the class names in
/// their workers are those of a browser.
fn is_browser() -> bool {
    let has = |name: &str| Reflect::has(&js_sys::global(), &name.into()).unwrap_or(false);
    !has("Deno") && (has("Window") || has("WorkerGlobalScope"))
}

/// Returns advice for a machine without any adapter.
pub(in crate::gpu) fn no_adapter_advice() -> &'static str {
    if is_browser() { NO_BROWSER_ADAPTER_ADVICE } else { NO_ADAPTER_ADVICE }
}

/// Returns the one adapter that a browser shows for this power preference.
pub(in crate::gpu) async fn enumerate(options: &GpuOptions) -> Vec<wgpu::Adapter> {
    let new = || wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let Some(instance) = with_gpu(options.gpu.as_ref(), new) else { return Vec::new() };
    let power_preference =
        if options.low_power { wgpu::PowerPreference::LowPower } else { wgpu::PowerPreference::HighPerformance };
    let options = wgpu::RequestAdapterOptions { power_preference, ..Default::default() };
    instance.request_adapter(&options).await.into_iter().collect()
}

/// Adds the name that the browser gives for an open device, and the facts that follow from the
/// vendor, such as whether memory is shared.
pub(in crate::gpu) fn as_named(report: AdapterReport, device: &wgpu::Device) -> AdapterReport {
    let info = adapter_info(device);
    let name = Some(report.name).filter(|name| !name.is_empty()).or(info.name).unwrap_or_else(|| "unnamed".to_owned());
    let quads = has_subgroups(device) && report.subgroup_size[0] >= QUAD;
    let vendor = info.vendor.as_deref().map_or(report.limits.vendor, Vendor::from_name);
    let unified_memory = report.limits.unified_memory || vendor.shares_memory();
    let limits = DeviceLimits { unified_memory, vendor, quads, ..report.limits };
    AdapterReport { name, limits, ..report }
}

/// Wraps `device`, which the caller made, as a device of wgpu.
pub(in crate::gpu) async fn adopt(
    adapter: &wgpu::Adapter,
    descriptor: &wgpu::DeviceDescriptor<'_>,
    device: &JsValue,
) -> Result<(wgpu::Device, wgpu::Queue)> {
    let refused =
        |reason: String| Error::Device(DeviceError::Refused { adapter: "of the caller's device".to_owned(), reason });
    let prototype = ADAPTER_PROTOTYPE.with(Option::clone);
    let prototype = prototype.ok_or_else(|| refused("this browser has no GPUAdapter".to_owned()))?;
    let existing = device.clone();
    let give = Closure::<dyn Fn() -> Promise>::new(move || Promise::resolve(&existing));
    // The request is made before this returns; only the answer is awaited.
    let ask = || adapter.request_device(descriptor);
    let request = with_property(&prototype, REQUEST_DEVICE, give.as_ref(), ask).ok_or_else(|| {
        refused("GPUAdapter.prototype is frozen, and the caller's device can only be used through it".to_owned())
    })?;
    let (opened, queue) = request.await.map_err(|error| refused(error.to_string()))?;
    if handle(&opened) != *device {
        // Nothing else refers to that device.
        opened.destroy();
        return Err(refused("the browser gave another device".to_owned()));
    }
    Ok((opened, queue))
}

/// Requests a device. On a CPU adapter, requests one with `subgroups` if the adapter has them.
pub(in crate::gpu) fn request_device(
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
    // If the prototype is frozen, the device has no subgroups, and the rules choose kernels without
    // them.
    own.unwrap_or_else(ask)
}

/// Calls `request`, the original `requestDevice`, on `adapter`, with the subgroups feature added if
/// the adapter has it.
fn ask_with_subgroups(request: Function, adapter: Adapter, arguments: Array) -> Thrown<JsValue> {
    if adapter.features().has(SUBGROUPS) {
        arguments.get(0).unchecked_ref::<DeviceDescriptor>().required_features().push(&SUBGROUPS.into());
    }
    request.apply(&adapter, &arguments)
}

/// True if kernels on `device` may use subgroup operations.
pub(in crate::gpu) fn has_subgroups(device: &wgpu::Device) -> bool {
    typed(device).is_some_and(|device| device.features().has(SUBGROUPS))
}

/// The facts that a browser gives about an adapter. wgpu passes on only a description, which
/// browsers leave empty.
#[derive(Default)]
pub(in crate::gpu) struct AdapterFacts {
    /// The vendor, architecture, device and description in one line, as far as they are known.
    pub(in crate::gpu) name: Option<String>,
    pub(in crate::gpu) vendor: Option<String>,
}

pub(in crate::gpu) fn adapter_info(device: &wgpu::Device) -> AdapterFacts {
    let Some(info) = typed(device).and_then(|device| device.adapter_info()) else { return AdapterFacts::default() };
    let parts = [info.vendor(), info.architecture(), info.device(), info.description()];
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    AdapterFacts { name: (!parts.is_empty()).then(|| parts.join(" ")), vendor: info.vendor() }
}

impl Gpu {
    /// Sets the flag that stops compiling, from now on. Once it is set, compiling ends between two
    /// kernels with [`Error::Cancelled`]. With `None`, compiling runs to its end.
    pub(crate) fn heed(&self, flag: Option<Arc<AtomicBool>>) {
        self.inner.unwanted.heed(flag);
    }

    /// Returns the browser's device.
    pub fn handle(&self) -> JsValue {
        handle(&self.inner.device)
    }
}

impl GpuBuffer {
    /// Returns the browser's buffer.
    pub fn handle(&self) -> JsValue {
        self.raw.as_webgpu().map_or(JsValue::NULL, |buffer| buffer.into())
    }
}

fn handle(device: &wgpu::Device) -> JsValue {
    device.as_webgpu().map_or(JsValue::NULL, |device| device.into())
}

fn typed(device: &wgpu::Device) -> Option<Device> {
    device.as_webgpu().map(|device| JsValue::from(device).unchecked_into())
}

/// Runs `work` while wgpu finds `gpu`, if it is given. wgpu looks for WebGPU only in pages and
/// workers, which it recognises by the names of their classes. So Node and Deno look like a page
/// for that time. `None` if the global object is frozen; `work` does not run then.
pub(in crate::gpu) fn with_gpu<T>(gpu: Option<&JsValue>, work: impl FnOnce() -> T) -> Option<T> {
    let Some(gpu) = gpu else { return Some(work()) };
    let (global, navigator) = (js_sys::global(), Object::new());
    // Setting a property of a new object cannot fail.
    let _ = Reflect::set(&navigator, &"gpu".into(), gpu);
    with_property(&global, "Window", &Object::new(), || with_property(&global, "navigator", &navigator, work)).flatten()
}

/// Runs `work` while `replacement` replaces a property of `object`. `None` if the object may not be
/// changed; `work` does not run then.
fn with_property<T>(object: &Object, name: &str, replacement: &JsValue, work: impl FnOnce() -> T) -> Option<T> {
    let name = JsValue::from(name);
    let own = Object::get_own_property_descriptor(object, &name);
    let stand_in = Object::new();
    for (attribute, value) in [("value", replacement), ("configurable", &true.into()), ("writable", &true.into())] {
        let _ = Reflect::set(&stand_in, &attribute.into(), value);
    }
    // For a frozen object this returns false and does not throw.
    if !Reflect::define_property(object, &name, &stand_in).unwrap_or(false) {
        return None;
    }
    let done = work();
    // A property that could be replaced can also be restored.
    let _ = match own.is_undefined() {
        true => Reflect::delete_property(object, &name),
        false => Reflect::define_property(object, &name, own.unchecked_ref()),
    };
    Some(done)
}

/// Makes a typed array of zeros. `None` if the browser has no memory for it: web-sys's own
/// constructors would end the module instead.
pub(crate) fn new_array(class: &str, length: u32) -> Option<JsValue> {
    let class = Reflect::get(&js_sys::global(), &class.into()).ok()?;
    Reflect::construct(class.dyn_ref::<Function>()?, &Array::of1(&length.into())).ok()
}

impl GpuOptions {
    #[expect(clippy::unused_self, reason = "natively it can be asked for")]
    pub(in crate::gpu) fn wants_matrix_units(&self) -> bool {
        false
    }
}

/// Destroys a device whose last handle is dropped: in a browser, dropping does nothing.
pub(in crate::gpu) fn drop_device(device: &wgpu::Device) {
    device.destroy();
}
