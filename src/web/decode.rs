//! Decodes for JavaScript.

use js_sys::{Float32Array, Function, Uint8Array, Uint8ClampedArray};
use serde::Deserialize;
use wasm_bindgen::prelude::*;

use super::latents::WebLatents;
use super::tiles::WebTiling;
use super::vae::{Cancel, Listener, WebVae, count, object};
use super::{Result, from_js};
use crate::error::Error;
use crate::gpu::new_array;
use crate::model::config::AutoencoderConfig;
use crate::plan::{ChannelOrder, Output};
use crate::tensor::{Bytes, Size};
use crate::vae::{DecodeOptions, Decoded, Parking, PixelFormat};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WebDecodeOptions {
    output: WebOutput,
    /// The channel order of a canvas.
    format: ChannelOrder,
    memory_budget: Option<Bytes>,
    least_memory: bool,
    parking: Parking,
    tiling: WebTiling,
    /// The side of a tile, pixels.
    tile_size: Option<u32>,
    /// The overlap of tiles, pixels.
    tile_overlap: Option<u32>,
    /// The target time of a submission, milliseconds.
    submission_target: Option<f64>,
    index: u32,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WebOutput {
    /// A picture on the device.
    #[default]
    Canvas,
    /// RGBA bytes, `[h, w, 4]`.
    Rgba8,
    /// Floats, `[3, h, w]`.
    Raw,
}

impl WebDecodeOptions {
    /// Returns the target time of a submission, milliseconds.
    pub(super) fn submission_target(&self) -> Option<f64> {
        self.submission_target
    }

    /// Converts to the crate's options for a model of `config`.
    pub(super) fn options(&self, config: &AutoencoderConfig) -> Result<DecodeOptions> {
        let tiling = self.tiling.of_model(config, self.tile_size, self.tile_overlap)?;
        let Self { memory_budget, least_memory, parking, .. } = *self;
        Ok(DecodeOptions { memory_budget, least_memory, parking, tiling, ..DecodeOptions::default() })
    }

    /// Returns the form of an image.
    pub(super) fn output(&self) -> Output {
        match self.output {
            WebOutput::Canvas => Output::Picture(self.format),
            WebOutput::Rgba8 => Output::Rgba8,
            WebOutput::Raw => Output::Raw,
        }
    }

    /// Returns the kind of the frames of a clip, which JavaScript draws itself.
    pub(super) fn frames(&self) -> PixelFormat {
        match self.output {
            WebOutput::Canvas | WebOutput::Rgba8 => PixelFormat::Rgba8,
            WebOutput::Raw => PixelFormat::Raw,
        }
    }
}

#[wasm_bindgen(js_class = Vae)]
impl WebVae {
    /// Returns the width and height, in pixels, of the pictures that these latents decode to.
    #[wasm_bindgen(js_name = imageSize)]
    pub fn image_size(&self, latents: &mut WebLatents) -> Vec<u32> {
        self.in_own_space(latents);
        let Size { width, height } = self.vae.image_size(&latents.latents);
        vec![width, height]
    }

    /// Decodes one image. Returns its pixels or the picture on the device, with a report.
    pub async fn decode(
        &mut self,
        latents: &mut WebLatents,
        options: JsValue,
        cancel: &Cancel,
        progress: Option<Function>,
    ) -> Result<JsValue> {
        let options: WebDecodeOptions = from_js("decode options", &options)?;
        let (decode, index) = (options.options(self.vae.config())?, options.index);
        // Plans of another size, precision or direction are freed first, so that the peak is that
        // of this decode.
        self.in_own_space(latents);
        let latents = &latents.latents;
        self.vae.free_unless(&decode.request(latents.size(), latents.space(), options.output()));
        let before = self.begin(cancel);
        let mut listener = Listener::new(progress);
        let mut control = listener.control(cancel, options.submission_target);
        let size = self.vae.image_size(latents);
        let image = options.image(size)?;
        let mut place = |_: Size, rows: (u32, u32), data: &[u8]| {
            if let Some(image) = &image {
                image.place(rows, data);
            }
            Ok(())
        };
        let Decoded { run, fallback, .. } =
            self.vae.decode_bytes(latents.at(index), options.output(), &decode, &mut control, &mut place).await?;
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
            ("report", self.report(before, run, fallback)),
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

impl WebDecodeOptions {
    /// Makes an image of `size` in JavaScript's memory. `None` for a picture on the device.
    fn image(&self, size: Size) -> crate::error::Result<Option<ImageForJs>> {
        let bytes = match self.output {
            WebOutput::Canvas => return Ok(None),
            WebOutput::Rgba8 => size.pixels() * 4,
            WebOutput::Raw => size.pixels() * 12,
        };
        let buffer = u32::try_from(bytes).ok().and_then(|bytes| new_array("ArrayBuffer", bytes));
        let buffer =
            buffer.ok_or_else(|| Error::HostMemory { what: format!("an image of {size}"), needed: Bytes(bytes) })?;
        let array = match self.output {
            WebOutput::Raw => Float32Array::new(&buffer).into(),
            WebOutput::Canvas | WebOutput::Rgba8 => Uint8ClampedArray::new(&buffer).into(),
        };
        Ok(Some(ImageForJs { size, array, bytes: Uint8Array::new(&buffer) }))
    }
}

impl ImageForJs {
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
