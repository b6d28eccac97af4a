//! Previews without a model, for JavaScript.

use js_sys::Uint8ClampedArray;
use wasm_bindgen::prelude::*;

use super::Result;
use super::latents::WebLatents;
use super::vae::object;
use crate::preview::{Preview, preview};

#[wasm_bindgen(js_class = Latents)]
impl WebLatents {
    /// Makes a preview of image `index` of a published model without weights: RGBA bytes, at most
    /// `max_side` pixels a side.
    pub fn preview(&self, index: u32, family: &str, max_side: u32) -> Result<JsValue> {
        let Preview { size, pixels } = preview(self.latents.at(index), family, max_side)?;
        let data = Uint8ClampedArray::from(pixels.as_slice());
        Ok(object(&[("width", size.width.into()), ("height", size.height.into()), ("data", data.into())]))
    }
}
