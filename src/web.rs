//! The crate's interface in a browser. It only translates between JavaScript's types and the
//! crate's. `web/src/` builds the public package on top of it; everything here is internal to that
//! package.

#![expect(unreachable_pub, reason = "wasm-bindgen exports public functions only")]

#[cfg(not(feature = "cores"))]
mod about;
mod checkpoint;
mod clips;
#[cfg(feature = "cores")]
mod cores;
mod decode;
mod device;
mod encode;
mod error;
#[cfg(not(feature = "cores"))]
mod gpu;
mod images;
mod latents;
mod options;
mod planner;
#[cfg(not(feature = "cores"))]
mod preview;
#[cfg(not(feature = "cores"))]
mod selftest;
mod source;
mod supposed;
mod vae;
#[cfg(not(feature = "cores"))]
mod without_device;

use std::alloc::{Layout, handle_alloc_error};
use std::cell::RefCell;
use std::panic::PanicHookInfo;

use js_sys::Function;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wasm_bindgen::prelude::*;

use self::error::Failure;
use crate::error::Error;

type Result<T> = std::result::Result<T, Failure>;

thread_local! {
    /// The function that receives the message of a panic.
    static PANIC_LISTENER: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Sets the panic hook. Runs once, when the module is loaded. A panic is a bug, and should at least
/// report its place.
#[wasm_bindgen(start)]
pub fn start() {
    std::panic::set_hook(Box::new(tell_panic));
}

/// Sets `listener` to be called with the message of a panic, right before the module ends for good.
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

/// Ends the module after the caller has returned, as a bug does (`panic`) or as a failed allocation
/// does (`memory`). For tests.
#[doc(hidden)]
#[wasm_bindgen(js_name = breakDown)]
pub async fn break_down(how: String) {
    assert!(how == "memory", "a panic for tests");
    handle_alloc_error(Layout::new::<u8>());
}

/// Converts a value to a plain object. Numbers are JavaScript's: byte counts below 2^53 are exact.
fn to_js(value: &impl Serialize) -> JsValue {
    let text = serde_json::to_string(value).unwrap_or_default();
    js_sys::JSON::parse(&text).unwrap_or(JsValue::NULL)
}

/// Reads options from a plain object. Absent and undefined options get their defaults. They are
/// read from a [`Value`]: code to read each from text would add to the download of a page.
fn from_js<T: DeserializeOwned + Default>(what: &str, value: &JsValue) -> Result<T> {
    if value.is_undefined() || value.is_null() {
        return Ok(T::default());
    }
    let text = js_sys::JSON::stringify(value).map(String::from).unwrap_or_default();
    serde_json::from_str::<Value>(&text).and_then(serde_json::from_value).map_err(|problem| {
        let expected = "known options of the right types".to_owned();
        Failure::from(Error::input(what, expected, problem.to_string()))
    })
}
