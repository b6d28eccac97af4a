//! Compiles kernels in parallel. With wgpu's `create_compute_pipeline`, browsers compile kernels
//! one after the other, at the latest when each is first used. With `createComputePipelineAsync`,
//! which wgpu 30 does not have, they can use as many threads as they like.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use js_sys::{Object, Reflect};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::scopes::read_error;
use super::{Scopes, Thrown, handle, typed, with_property};
use crate::error::Result;
use crate::gpu::kernel_text::{KernelText, Parts, Pipeline};
use crate::gpu::{Gpu, Preparing};

const CREATE: &str = "createComputePipeline";

/// The number of kernels to compile at once if the browser does not report its number of threads.
const LANES: usize = 4;

/// Returns the pipelines of `sources`, in their order. Returns only the first ones if the cancel
/// flag was set meanwhile.
pub(in crate::gpu) async fn compile_all(gpu: &Gpu, sources: &[&KernelText]) -> Result<Vec<Pipeline>> {
    gpu.check_alive("compiling kernels")?;
    let device = &gpu.inner.device;
    let (mut pipelines, total) = (Vec::new(), sources.len());
    let mut coming = sources.iter().map(|source| {
        let scopes = Scopes::push(device);
        let parts = Parts::new(device, source);
        let answer = ask(device, &parts, source.interface.file);
        (parts, answer, scopes.pop())
    });
    // A browser finishes every kernel that it was asked for, even when the result is no longer
    // wanted.
    let mut asked: VecDeque<_> = coming.by_ref().take(lanes()).collect();
    for source in sources {
        let kernel = source.interface.file;
        gpu.tell(Preparing::Kernels { done: pipelines.len(), total, kernel });
        let Some((parts, answer, caught)) = asked.pop_front() else { break };
        gpu.reported(&source.doing, (), caught.await)?;
        let made = match answer {
            Some(answer) => {
                let refused = |error: JsValue| gpu.failure(&source.doing, &read_error(error.unchecked_ref()));
                adopt(device, &parts, kernel, answer.await.map_err(refused)?)
            }
            None => None,
        };
        let pipeline = match made {
            Some(pipeline) => pipeline,
            None => gpu.scoped(&source.doing, || parts.pipeline(device, kernel)).await?,
        };
        pipelines.push(parts.with(pipeline));
        if gpu.inner.unwanted.is_set() {
            break;
        }
        asked.extend(coming.next());
    }
    gpu.check_alive("compiling kernels")?;
    Ok(pipelines)
}

/// Returns how many kernels a browser is asked for at once: one for each thread, at least two.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
fn lanes() -> usize {
    let property = |object: &JsValue, name: &str| Reflect::get(object, &name.into()).ok();
    let navigator = property(&js_sys::global(), "navigator");
    let threads = navigator.and_then(|navigator| property(&navigator, "hardwareConcurrency")?.as_f64());
    threads.map_or(LANES, |threads| threads as usize).max(2)
}

/// Starts the compilation that wgpu would ask the browser for. `None` if the device object may not
/// be changed.
fn ask(device: &wgpu::Device, parts: &Parts, label: &str) -> Option<JsFuture> {
    let typed = typed(device)?;
    let (object, answer) = (handle(device), Rc::new(RefCell::new(None)));
    let keep = Rc::clone(&answer);
    let begin = Closure::<dyn Fn(JsValue) -> Thrown<Object>>::new(move |descriptor: JsValue| {
        // The promise needs a listener from now on: the page reports an unhandled rejection as an
        // error.
        keep.replace(Some(JsFuture::from(typed.create_compute_pipeline_async(&descriptor)?)));
        Ok(Object::new())
    });
    // wgpu gets an empty object instead of a pipeline here. It is dropped at once.
    with_property(object.unchecked_ref(), CREATE, begin.as_ref(), || drop(parts.pipeline(device, label)))?;
    answer.take()
}

/// Wraps the browser's pipeline `made` as a pipeline of wgpu.
fn adopt(device: &wgpu::Device, parts: &Parts, label: &str, made: JsValue) -> Option<wgpu::ComputePipeline> {
    let give = Closure::<dyn Fn() -> JsValue>::new(move || made.clone());
    with_property(handle(device).unchecked_ref(), CREATE, give.as_ref(), || parts.pipeline(device, label))
}
