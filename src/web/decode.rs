//! Decodes for JavaScript.

use js_sys::{Float32Array, Function, Uint8Array, Uint8ClampedArray};
use wasm_bindgen::prelude::*;

use super::Result;
use super::latents::WebLatents;
use super::options::WebOptions;
use super::vae::{Cancel, Listener, WebVae, count, object};
use crate::error::Error;
use crate::gpu::new_array;
use crate::plan::Output;
use crate::tensor::{Bytes, Size};
use crate::vae::Decoded;

#[wasm_bindgen(js_class = Vae)]
impl WebVae {
    /// Returns the width and height, in pixels, of the pictures that these latents decode to.
    #[wasm_bindgen(js_name = imageSize)]
    pub fn image_size(&self, latents: &mut WebLatents) -> Result<Vec<u32>> {
        self.in_own_space(latents)?;
        let Size { width, height } = self.vae.image_size(&latents.latents);
        Ok(vec![width, height])
    }

    /// Returns latents of a smaller picture, at most `max_side` pixels a side, by means of latents.
    #[wasm_bindgen(js_name = reducedLatents)]
    pub fn reduced_latents(&self, latents: &mut WebLatents, max_side: u32) -> Result<WebLatents> {
        self.in_own_space(latents)?;
        Ok(WebLatents { latents: latents.latents.reduced(self.vae.config(), max_side)? })
    }

    /// Decodes one image. Returns its pixels or the picture on the device, with a report.
    pub async fn decode(
        &mut self,
        latents: &mut WebLatents,
        options: JsValue,
        cancel: &Cancel,
        progress: Option<Function>,
    ) -> Result<JsValue> {
        let options = WebOptions::read(&options)?;
        let (decode, output) = (options.decode(self.vae.config())?, options.image());
        // Plans of another size, precision or direction are freed first, so that the peak is that
        // of this decode.
        self.in_own_space(latents)?;
        let latents = &latents.latents;
        self.vae.free_unless(&decode.request(latents.size(), latents.space(self.vae.config()), output));
        let before = self.begin(cancel);
        let mut listener = Listener::new(progress);
        let mut control = listener.control(cancel, options.submission_target);
        let size = self.vae.image_size(latents);
        let image = ImageForJs::new(output, size, self.vae.config().out_channels)?;
        let mut place = |_: Size, rows: (u32, u32), data: &[u8]| {
            if let Some(image) = &image {
                image.place(rows, data);
            }
            Ok(())
        };
        let Decoded { run, fallback, .. } =
            self.vae.decode_bytes(latents.at(options.index), output, &decode, &mut control, &mut place).await?;
        let data = image.map(|image| image.array);
        let picture = match self.vae.picture() {
            Some((buffer, row)) if data.is_none() => {
                object(&[("buffer", buffer.handle()), ("bytesPerRow", count(row.0)), ("offset", 0.into())])
            }
            _ => JsValue::UNDEFINED,
        };
        Ok(object(&[
            ("width", size.width.into()),
            ("height", size.height.into()),
            ("data", data.unwrap_or(JsValue::UNDEFINED)),
            ("picture", picture),
            ("report", self.report(before, run, fallback, None)),
        ]))
    }
}

/// An image in JavaScript's memory that is filled row by row.
struct ImageForJs {
    size: Size,
    /// The image, as JavaScript gets it.
    array: JsValue,
    /// Its bytes.
    bytes: Uint8Array,
}

impl ImageForJs {
    /// Makes an image of `size` in JavaScript's memory. `None` for a picture on the device. Floats
    /// have so many `channels`.
    fn new(output: Output, size: Size, channels: u32) -> crate::error::Result<Option<Self>> {
        let bytes = match output {
            Output::Rgba8 => size.pixels() * 4,
            Output::Raw => size.pixels() * 4 * u64::from(channels),
            _ => return Ok(None),
        };
        let buffer = u32::try_from(bytes).ok().and_then(|bytes| new_array("ArrayBuffer", bytes));
        let buffer =
            buffer.ok_or_else(|| Error::HostMemory { what: format!("an image of {size}"), needed: Bytes(bytes) })?;
        let array = match output {
            Output::Raw => Float32Array::new(&buffer).into(),
            _ => Uint8ClampedArray::new(&buffer).into(),
        };
        Ok(Some(Self { size, array, bytes: Uint8Array::new(&buffer) }))
    }

    /// Copies `data`, some `rows` of each plane, into their place. A pixel of a plane has four
    /// bytes.
    fn place(&self, rows: (u32, u32), data: &[u8]) {
        let row = self.size.width * 4;
        let part = (rows.1 - rows.0) * row;
        for (plane, rows_of_plane) in (0..).zip(data.chunks_exact(part as usize)) {
            let start = plane * self.size.height * row + rows.0 * row;
            self.bytes.subarray(start, start + part).copy_from(rows_of_plane);
        }
    }
}
