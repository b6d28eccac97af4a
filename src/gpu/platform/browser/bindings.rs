//! Bindings to the WebGPU objects that this crate calls directly. web-sys offers them only behind
//! `web_sys_unstable_apis`, and wgpu exports only five types of its copy. Every method that may
//! throw is declared with `catch`: an exception that nothing catches ends the module.

use js_sys::{Array, Function, Object, Promise};
use wasm_bindgen::prelude::*;

use super::Thrown;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(thread_local_v2, js_namespace = GPUAdapter, js_name = prototype)]
    pub(super) static ADAPTER_PROTOTYPE: Option<Object>;

    pub(super) type Device;

    /// Information about the device's adapter. Chrome and Edge have it since version 131.
    #[wasm_bindgen(method, getter, js_name = adapterInfo)]
    pub(super) fn adapter_info(this: &Device) -> Option<AdapterInfo>;

    #[wasm_bindgen(method, getter)]
    pub(super) fn features(this: &Device) -> Features;

    #[wasm_bindgen(method, getter)]
    pub(super) fn queue(this: &Device) -> Queue;

    #[wasm_bindgen(method, setter)]
    pub(super) fn set_onuncapturederror(this: &Device, listener: &Function);

    #[wasm_bindgen(method, catch, js_name = pushErrorScope)]
    pub(super) fn push_error_scope(this: &Device, filter: &str) -> Thrown<()>;

    #[wasm_bindgen(method, catch, js_name = popErrorScope)]
    pub(super) fn pop_error_scope(this: &Device) -> Thrown<Promise>;

    #[wasm_bindgen(method, catch, js_name = createCommandEncoder)]
    pub(super) fn create_command_encoder(this: &Device) -> Thrown<CommandEncoder>;

    #[wasm_bindgen(method, catch, js_name = createComputePipelineAsync)]
    pub(super) fn create_compute_pipeline_async(this: &Device, descriptor: &JsValue) -> Thrown<Promise>;

    #[wasm_bindgen(method)]
    pub(super) fn destroy(this: &Device);

    pub(super) type Adapter;

    #[wasm_bindgen(method, getter)]
    pub(super) fn features(this: &Adapter) -> Features;

    pub(super) type Features;

    #[wasm_bindgen(method)]
    pub(super) fn has(this: &Features, name: &str) -> bool;

    pub(super) type DeviceDescriptor;

    /// The required features, which wgpu always sets.
    #[wasm_bindgen(method, getter, js_name = requiredFeatures)]
    pub(super) fn required_features(this: &DeviceDescriptor) -> Array;

    pub(super) type AdapterInfo;

    #[wasm_bindgen(method, getter)]
    pub(super) fn vendor(this: &AdapterInfo) -> Option<String>;

    #[wasm_bindgen(method, getter)]
    pub(super) fn architecture(this: &AdapterInfo) -> Option<String>;

    #[wasm_bindgen(method, getter)]
    pub(super) fn device(this: &AdapterInfo) -> Option<String>;

    #[wasm_bindgen(method, getter)]
    pub(super) fn description(this: &AdapterInfo) -> Option<String>;

    pub(super) type Queue;

    #[wasm_bindgen(method, catch)]
    pub(super) fn submit(this: &Queue, commands: &Array) -> Thrown<()>;

    pub(super) type CommandEncoder;

    #[wasm_bindgen(method, catch, js_name = copyBufferToBuffer)]
    pub(super) fn copy_buffer_to_buffer(
        this: &CommandEncoder,
        source: &JsValue,
        source_offset: f64,
        target: &JsValue,
        target_offset: f64,
        bytes: f64,
    ) -> Thrown<()>;

    #[wasm_bindgen(method, catch)]
    pub(super) fn finish(this: &CommandEncoder) -> Thrown<JsValue>;

    pub(super) type Buffer;

    #[wasm_bindgen(method, getter)]
    pub(super) fn size(this: &Buffer) -> Option<f64>;

    #[wasm_bindgen(method, getter)]
    pub(super) fn usage(this: &Buffer) -> Option<f64>;

    #[wasm_bindgen(js_name = GPUOutOfMemoryError)]
    pub(super) type OutOfMemoryError;

    pub(super) type GpuError;

    #[wasm_bindgen(method, getter)]
    pub(super) fn message(this: &GpuError) -> Option<String>;

    pub(super) type UncapturedErrorEvent;

    #[wasm_bindgen(method, getter)]
    pub(super) fn error(this: &UncapturedErrorEvent) -> GpuError;
}
