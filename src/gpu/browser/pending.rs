//! Pipelines that the browser compiles beside other work.
//!
//! wgpu 30 knows only `createComputePipeline`, which holds up all that comes after it. It is made to ask for `createComputePipelineAsync`, and asked
//! again when the pipeline is there.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::{call, handle, text, with_method};

const CREATE: &str = "createComputePipeline";

/// A pipeline that the browser compiles.
pub(in crate::gpu) struct PendingPipeline {
    // Listened to from the begin: a rejection that nobody hears is an error of the page's.
    answer: std::result::Result<JsFuture, JsValue>,
}

impl PendingPipeline {
    /// Asks for what `create` asks wgpu for.
    pub(in crate::gpu) fn ask(device: &wgpu::Device, create: impl FnOnce() -> wgpu::ComputePipeline) -> Self {
        let device = handle(device);
        let nothing = Err(JsValue::from("wgpu asked for no pipeline"));
        let asked: Rc<RefCell<std::result::Result<Promise, JsValue>>> = Rc::new(RefCell::new(nothing));
        let (target, answer) = (device.clone(), Rc::clone(&asked));
        let ask = Closure::<dyn Fn(JsValue)>::new(move |descriptor: JsValue| {
            let promise = call(&target, "createComputePipelineAsync", &Array::of1(&descriptor));
            *answer.borrow_mut() = promise.and_then(JsCast::dyn_into);
        });
        // What wgpu holds now is no pipeline, and goes at once.
        let promise = with_method(&device, CREATE, ask.as_ref(), || drop(create()));
        let promise = promise.and_then(|()| asked.replace(Err(JsValue::UNDEFINED)));
        Self { answer: promise.map(JsFuture::from) }
    }

    /// The pipeline, as what `create` makes. Else what the browser has against it.
    pub(in crate::gpu) async fn compiled(
        self,
        device: &wgpu::Device,
        create: impl FnOnce() -> wgpu::ComputePipeline,
    ) -> std::result::Result<wgpu::ComputePipeline, String> {
        let reason = |error: JsValue| text(&error, "message").unwrap_or_else(|| format!("{error:?}"));
        let pipeline = self.answer.map_err(reason)?.await.map_err(reason)?;
        let give = Closure::<dyn Fn() -> JsValue>::new(move || pipeline.clone());
        with_method(&handle(device), CREATE, give.as_ref(), create).map_err(reason)
    }
}
