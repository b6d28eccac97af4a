//! Facts that need neither a model nor a device.

use wasm_bindgen::prelude::*;

use super::to_js;

/// Returns the version of this crate.
#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// Returns the names of the published models.
#[wasm_bindgen]
pub fn families() -> JsValue {
    let names: Vec<_> = crate::model::config::FAMILIES.iter().map(|family| family.name).collect();
    to_js(&names)
}
