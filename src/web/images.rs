//! Images from JavaScript: arrays, files of floats, pixels.

use js_sys::Float32Array;
use wasm_bindgen::prelude::*;

use super::Result;
use super::latents::extents;
use super::source::{JsSource, MOST_BYTES, Rejection, Source};
use crate::error::Error;
use crate::io::read_images;
use crate::tensor::{Bytes, HostTensor, Size};
use crate::vae::Images;

/// One or several images, `[n, c, h, w]`, -1 to 1.
#[wasm_bindgen(js_name = Images)]
#[derive(Debug)]
pub struct WebImages {
    pub(super) images: Images,
}

#[wasm_bindgen(js_class = Images)]
impl WebImages {
    /// Copies images `[n, c, h, w]` or `[c, h, w]`, -1 to 1, from an array.
    #[wasm_bindgen(js_name = fromArray)]
    pub fn from_array(data: &Float32Array, shape: &[u32]) -> Result<Self> {
        let bytes = u64::from(data.length()) * 4;
        if bytes > MOST_BYTES {
            return Err(no_memory(bytes).into());
        }
        Ok(Self { images: Images::new(HostTensor { shape: extents(shape), data: data.to_vec() })? })
    }

    /// Reads images from a .safetensors or .npy file with such floats.
    #[wasm_bindgen(js_name = fromFile)]
    pub async fn from_file(source: Source) -> Result<Self> {
        let rejection = Rejection::default();
        let source = JsSource::new(source, &rejection);
        let tensor = rejection.pass_on(read_images(&source, None).await)?;
        Ok(Self { images: Images::new(tensor)? })
    }

    /// Returns the largest magnitude of all values.
    pub fn largest(&self) -> f32 {
        let all = (0..self.images.count()).filter_map(|index| self.images.image(index));
        all.flatten().fold(0.0, |largest, value| largest.max(value.abs()))
    }

    /// Returns the width and height in pixels.
    pub fn size(&self) -> Vec<u32> {
        let size = self.images.size();
        vec![size.width, size.height]
    }
}

/// Images of one size that are encoded together, one after the other.
#[wasm_bindgen(js_name = Frames)]
#[derive(Debug, Default)]
pub struct WebFrames {
    shape: Vec<usize>,
    data: Vec<f32>,
}

#[wasm_bindgen(js_class = Frames)]
impl WebFrames {
    /// Makes an empty list.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a copy of one image.
    pub fn add(&mut self, WebImages { images }: &WebImages) -> Result<()> {
        let Some(frame) = images.image(0).filter(|_| images.count() == 1) else {
            return Err(Error::input("frame", "one picture", images.count().to_string()).into());
        };
        let Size { width, height } = images.size();
        let area = width as usize * height as usize;
        self.shape = vec![frame.len() / area, height as usize, width as usize];
        let reserved = self.data.try_reserve_exact(frame.len()).ok();
        reserved.ok_or_else(|| no_memory(4 * frame.len() as u64))?;
        self.data.extend_from_slice(frame);
        Ok(())
    }

    /// Returns all images as one tensor.
    pub fn finish(self) -> Result<WebImages> {
        let count = self.data.len().checked_div(self.shape.iter().product()).unwrap_or(0);
        let shape = [&[count], self.shape.as_slice()].concat();
        Ok(WebImages { images: Images::new(HostTensor { shape, data: self.data })? })
    }
}

/// One image that is filled part by part.
#[wasm_bindgen(js_name = Picture)]
#[derive(Debug)]
pub struct WebPicture {
    shape: Vec<usize>,
    data: Vec<f32>,
}

#[wasm_bindgen(js_class = Picture)]
impl WebPicture {
    /// Makes an image of zeros, `[c, h, w]`.
    #[wasm_bindgen(constructor)]
    pub fn new(shape: &[u32]) -> Result<Self> {
        let values = shape.iter().map(|&extent| u64::from(extent)).product::<u64>();
        let mut data = Vec::new();
        let reserved =
            usize::try_from(values).ok().and_then(|values| data.try_reserve_exact(values).ok().map(|()| values));
        data.resize(reserved.ok_or_else(|| no_memory(values * 4))?, 0.0);
        Ok(Self { shape: extents(shape), data })
    }

    /// Copies `values` to the elements from `start` on.
    pub fn set(&mut self, start: usize, values: &Float32Array) {
        values.copy_to(&mut self.data[start..][..values.length() as usize]);
    }

    /// Returns the image.
    pub fn finish(self) -> Result<WebImages> {
        Ok(WebImages { images: Images::new(HostTensor { shape: self.shape, data: self.data })? })
    }
}

fn no_memory(bytes: u64) -> Error {
    Error::HostMemory { what: "an image".to_owned(), needed: Bytes(bytes) }
}
