//! The face of the crate in a browser: translates between JavaScript's types and ours, nothing
//! else. `web/src/` makes the package of it that people use; what is here is that package's own.

#![expect(unreachable_pub, reason = "wasm-bindgen exports public functions only")]

mod checkpoint;
mod clips;
mod decode;
mod device;
mod encode;
mod error;
mod images;
mod latents;
mod planner;
mod selftest;
mod source;
mod tiles;
mod vae;

use std::alloc::{Layout, handle_alloc_error};
use std::cell::RefCell;
use std::panic::PanicHookInfo;

use js_sys::Function;
use serde::Serialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::prelude::*;

use self::error::Failure;
use crate::error::Error;

type Result<T> = std::result::Result<T, Failure>;

thread_local! {
    /// Who hears of a panic.
    static PANIC_LISTENER: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Called once, when the module is there: a panic is a bug, and shall at least say where it is.
#[wasm_bindgen(start)]
pub fn start() {
    std::panic::set_hook(Box::new(tell_panic));
}

/// Calls `listener` with the message of a panic, right before the module ends for good.
#[wasm_bindgen(js_name = onPanic)]
pub fn on_panic(listener: Function) {
    PANIC_LISTENER.set(Some(listener));
}

fn tell_panic(panic: &PanicHookInfo<'_>) {
    console_error_panic_hook::hook(panic);
    PANIC_LISTENER.with_borrow(|listener| {
        if let Some(listener) = listener {
            // The module ends in any case.
            let _ = listener.call1(&JsValue::NULL, &panic.to_string().into());
        }
    });
}

/// Ends the module as a bug would (`panic`) or as a failed allocation does (`memory`), when the
/// caller has returned. For tests.
#[doc(hidden)]
#[wasm_bindgen(js_name = breakDown)]
pub async fn break_down(how: String) {
    assert!(how == "memory", "a panic for tests");
    handle_alloc_error(Layout::new::<u8>());
}

/// The version of this crate.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// The names of the published models.
#[wasm_bindgen]
pub fn families() -> JsValue {
    let names: Vec<_> = crate::model::config::FAMILIES.iter().map(|family| family.name).collect();
    to_js(&names)
}

/// As a plain object. Numbers are JavaScript's: bytes below 2^53 are exact.
fn to_js(value: &impl Serialize) -> JsValue {
    let text = serde_json::to_string(value).unwrap_or_default();
    js_sys::JSON::parse(&text).unwrap_or(JsValue::NULL)
}

/// Options from a plain object; absent and undefined are the defaults.
fn from_js<T: DeserializeOwned + Default>(what: &str, value: &JsValue) -> Result<T> {
    if value.is_undefined() || value.is_null() {
        return Ok(T::default());
    }
    let text = js_sys::JSON::stringify(value).map(String::from).unwrap_or_default();
    serde_json::from_str(&text).map_err(|problem| {
        let expected = "known options of the right types".to_owned();
        Failure::from(Error::Input { what: what.to_owned(), expected, found: problem.to_string() })
    })
}
