//! What only a browser has: devices and buffers that JavaScript made. The one place that knows wgpu's handles behind them.
//!
//! wgpu 30 cannot adopt a `GPUDevice`. But it asks the browser for one by `GPUAdapter.prototype.requestDevice`, and takes what that gives.

use js_sys::{Array, Function, Promise, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::buffers::GpuBuffer;
use super::scopes::Caught;
use super::{Gpu, Input};
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
    let method = JsValue::from("requestDevice");
    let original = Reflect::get(&prototype, &method).map_err(failed)?;
    let existing = device.clone();
    let give = Closure::<dyn Fn() -> Promise>::new(move || Promise::resolve(&existing));
    Reflect::set(&prototype, &method, give.as_ref()).map_err(failed)?;
    // The browser is asked before this returns; what is awaited is only the answer.
    let request = adapter.request_device(descriptor);
    Reflect::set(&prototype, &method, &original).map_err(failed)?;
    request.await.map_err(|error| refused(error.to_string()))
}

/// What an adapter is called. wgpu passes on a description, which browsers leave empty.
pub(super) fn adapter_name(device: &wgpu::Device) -> Option<String> {
    let info = Reflect::get(device.as_webgpu()?, &"adapterInfo".into()).ok()?;
    let part = |name: &str| Reflect::get(&info, &name.into()).ok()?.as_string().filter(|text| !text.is_empty());
    let parts: Vec<String> = ["vendor", "architecture", "device", "description"].into_iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

impl Gpu {
    /// The browser's device.
    pub fn handle(&self) -> JsValue {
        self.inner.device.as_webgpu().map_or(JsValue::NULL, |device| device.into())
    }
}

impl GpuBuffer {
    /// The browser's buffer.
    pub fn handle(&self) -> JsValue {
        self.raw().as_webgpu().map_or(JsValue::NULL, |buffer| buffer.into())
    }
}

/// A `GPUBuffer` of the caller's, made on the device that decodes, and the byte that counts as its first.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignBuffer {
    buffer: JsValue,
    offset: u64,
}

impl ForeignBuffer {
    /// Takes `buffer` from byte `offset` on, of which `bytes` will be copied.
    ///
    /// # Errors
    /// [`Error::Input`] unless it is a `GPUBuffer` of that many bytes that may be copied from.
    pub fn new(buffer: JsValue, offset: u64, bytes: u64) -> Result<Self> {
        const COPY_SRC: u64 = 4;
        let number = |name: &str| Reflect::get(&buffer, &name.into()).ok()?.as_f64();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size or flags")]
        let number = |name: &str| number(name).map(|number| number as u64);
        let wrong = |expected: String, found: String| Error::Input { what: "latents".to_owned(), expected, found };
        let (Some(size), Some(usage)) = (number("size"), number("usage")) else {
            return Err(wrong("a GPUBuffer".to_owned(), "something else".to_owned()));
        };
        if usage & COPY_SRC == 0 {
            return Err(wrong("a GPUBuffer with usage COPY_SRC".to_owned(), format!("usage {usage:#x}")));
        }
        if !offset.is_multiple_of(4) || offset.checked_add(bytes).is_none_or(|end| end > size) {
            let expected = format!("{bytes} bytes from a multiple of 4 on");
            return Err(wrong(expected, format!("a GPUBuffer of {size} bytes, read from byte {offset} on")));
        }
        Ok(Self { buffer, offset })
    }

    /// Copies `bytes`, from byte `at` on, into `target` at byte `to`.
    pub(super) async fn copy(&self, gpu: &Gpu, at: u64, bytes: u64, target: (&GpuBuffer, u64)) -> Result<()> {
        const DOING: &str = "copying latents from the caller's buffer";
        let copied = gpu.scoped(DOING, || self.submit_copy(gpu, at, bytes, target)).await?;
        copied.map_err(|error| gpu.failure(DOING, &format!("{error:?}")))
    }

    #[expect(clippy::cast_precision_loss, reason = "JavaScript's numbers; sizes of buffers fit them")]
    fn submit_copy(
        &self,
        gpu: &Gpu,
        at: u64,
        bytes: u64,
        (target, to): (&GpuBuffer, u64),
    ) -> std::result::Result<(), JsValue> {
        let device = gpu.handle();
        let encoder = call(&device, "createCommandEncoder", &Array::new())?;
        let arguments = Array::of5(
            &self.buffer,
            &((self.offset + at) as f64).into(),
            &target.handle(),
            &(to as f64).into(),
            &(bytes as f64).into(),
        );
        call(&encoder, "copyBufferToBuffer", &arguments)?;
        let commands = Array::of1(&call(&encoder, "finish", &Array::new())?);
        let queue = Reflect::get(&device, &"queue".into())?;
        call(&queue, "submit", &Array::of1(&commands)).map(drop)
    }
}

/// Three error scopes of the browser's, one for each kind, until they are popped.
pub(super) struct Scopes {
    device: JsValue,
    pushed: usize,
}

impl Scopes {
    pub(super) fn push(device: &wgpu::Device) -> Self {
        let device: JsValue = device.as_webgpu().map_or(JsValue::NULL, |device| device.into());
        let push = |kind: &&str| call(&device, "pushErrorScope", &Array::of1(&(*kind).into())).is_ok();
        let pushed = ["out-of-memory", "internal", "validation"].iter().filter(|kind| push(kind)).count();
        Self { device, pushed }
    }

    /// Ends the scopes now; the first error, innermost scope first, when the device has told. A device that is lost tells nothing.
    pub(super) fn pop(self) -> impl Future<Output = Option<Caught>> {
        let pop = |_| call(&self.device, "popErrorScope", &Array::new()).ok()?.dyn_into::<Promise>().ok();
        let answers: Vec<Promise> = (0..self.pushed).filter_map(pop).collect();
        async move {
            let mut caught = None;
            for answer in answers {
                let error = JsFuture::from(answer).await.ok().filter(JsValue::is_object);
                caught = caught.or(error);
            }
            caught.map(|error| read_error(&error))
        }
    }
}

/// A `GPUError`, by the name of its class.
fn read_error(error: &JsValue) -> Caught {
    let text = |object: &JsValue, name: &str| Reflect::get(object, &name.into()).ok()?.as_string();
    let class = Reflect::get(error, &"constructor".into()).ok().and_then(|class| text(&class, "name"));
    let message = text(error, "message").filter(|message| !message.is_empty());
    let message = message.unwrap_or_else(|| "the browser gives no reason".to_owned());
    match class.as_deref() {
        Some("GPUOutOfMemoryError") => Caught::OutOfMemory(message),
        _ => Caught::Other(message),
    }
}

/// Calls `keep` with the message of every error that no scope catches.
pub(super) fn on_uncaptured_error(device: &wgpu::Device, keep: impl Fn(String) + 'static) {
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

impl<'a> Input<'a> {
    /// Image `index` of several in the caller's buffer, of `bytes` each.
    pub(crate) fn foreign(buffer: &'a ForeignBuffer, index: u32, bytes: u64) -> Self {
        Self::Foreign { buffer, at: u64::from(index) * bytes, bytes }
    }
}

fn call(object: &JsValue, method: &str, arguments: &Array) -> std::result::Result<JsValue, JsValue> {
    let function: Function = Reflect::get(object, &method.into())?.dyn_into()?;
    Reflect::apply(&function, object, arguments)
}
