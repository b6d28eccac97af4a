//! The self-test for JavaScript.

use std::sync::Arc;

use js_sys::Function;
use wasm_bindgen::prelude::*;

use super::checkpoint::WebCheckpoint;
use super::gpu::options_of;
use super::source::{JsSource, Source};
use super::vae::{Cancel, count};
use super::{Result, to_js};
use crate::selftest::SelftestControl;

/// Decodes the latents in `reference` with every set of kernels, and compares the results with the
/// image in it. Each set gets a device of its own from `gpu`, a `GPU` object.
#[wasm_bindgen]
pub async fn selftest(
    gpu: JsValue,
    low_power: bool,
    default_limits: bool,
    checkpoint: &WebCheckpoint,
    reference: Source,
    cancel: &Cancel,
    progress: Function,
) -> Result<JsValue> {
    let WebCheckpoint { checkpoint, rejection, .. } = checkpoint;
    let reference = JsSource::new(reference, rejection);
    let mut tell = |done: usize, total: usize| {
        // Exceptions of a listener are ignored.
        let _ = progress.call2(&JsValue::NULL, &count(done as u64), &count(total as u64));
    };
    let mut control = SelftestControl { progress: Some(&mut tell), cancel: Some(Arc::clone(&cancel.flag)) };
    let found =
        crate::selftest::run(&options_of(gpu, low_power, default_limits), checkpoint, &reference, &mut control).await;
    Ok(to_js(&rejection.pass_on(found)?))
}
