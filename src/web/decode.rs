//! Decodes for JavaScript.

use js_sys::{Float32Array, Function, Uint8ClampedArray};
use serde::Deserialize;
use wasm_bindgen::prelude::*;

use super::latents::WebLatents;
use super::tiles::WebTiling;
use super::vae::{Cancel, Listener, WebVae, count, object};
use super::{Result, from_js};
use crate::error::Error;
use crate::gpu::{Control, new_array};
use crate::model::config::AutoencoderConfig;
use crate::plan::{ChannelOrder, Output};
use crate::tensor::{Bytes, Size};
use crate::vae::{DecodeOptions, DecodedRows, Latents, Parking, RowPixels, Rows};

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WebDecodeOptions {
    output: WebOutput,
    /// The channel order of a canvas.
    format: ChannelOrder,
    memory_budget: Option<Bytes>,
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
        let output = match self.output {
            WebOutput::Canvas => Output::Picture(self.format),
            WebOutput::Rgba8 => Output::Rgba8,
            WebOutput::Raw => Output::Raw,
        };
        let Self { memory_budget, parking, .. } = *self;
        Ok(DecodeOptions { output, memory_budget, parking, tiling, ..DecodeOptions::default() })
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
        self.vae.free_unless(&decode.request(latents.size(), latents.space()));
        let before = self.begin(cancel);
        let mut listener = Listener::new(progress);
        let mut control = listener.control(cancel, options.submission_target);
        let (decoded, data) = match options.output {
            WebOutput::Canvas => {
                (self.vae.decode_picture(latents, index, options.format, &decode, &mut control).await?, None)
            }
            WebOutput::Rgba8 | WebOutput::Raw => self.decode_to_js(latents, &options, &decode, &mut control).await?,
        };
        let DecodedRows { size, run, fallback } = decoded;
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

impl WebVae {
    /// Decodes into an array in JavaScript's memory.
    async fn decode_to_js(
        &mut self,
        latents: &Latents,
        options: &WebDecodeOptions,
        decode: &DecodeOptions,
        control: &mut Control<'_>,
    ) -> Result<(DecodedRows, Option<JsValue>)> {
        let mut rows = RowsForJs::new(self.vae.image_size(latents), options.output)?;
        let mut sink = |part: Rows<'_>| {
            rows.place(&part);
            Ok(())
        };
        let decoded = self.vae.decode_rows(latents, options.index, decode, control, &mut sink).await?;
        Ok((decoded, Some(rows.into_js())))
    }
}

/// An image in JavaScript's memory that is filled row by row.
enum RowsForJs {
    Rgba8(Uint8ClampedArray),
    Raw(Float32Array),
}

impl RowsForJs {
    fn new(size: Size, output: WebOutput) -> Result<Self> {
        let pixels = u64::from(size.width) * u64::from(size.height);
        let (class, length, bytes) = match output {
            WebOutput::Raw => ("Float32Array", pixels * 3, pixels * 12),
            WebOutput::Canvas | WebOutput::Rgba8 => ("Uint8ClampedArray", pixels * 4, pixels * 4),
        };
        let array = u32::try_from(length).ok().and_then(|length| new_array(class, length));
        let array =
            array.ok_or_else(|| Error::HostMemory { what: format!("an image of {size}"), needed: Bytes(bytes) })?;
        Ok(match output {
            WebOutput::Raw => Self::Raw(array.unchecked_into()),
            WebOutput::Canvas | WebOutput::Rgba8 => Self::Rgba8(array.unchecked_into()),
        })
    }

    fn place(&mut self, part: &Rows<'_>) {
        let (width, start) = (part.image.width, part.rows.start);
        match (self, &part.pixels) {
            (Self::Rgba8(array), RowPixels::Rgba8(data)) => {
                array.subarray(start * width * 4, part.rows.end * width * 4).copy_from(data);
            }
            (Self::Raw(array), RowPixels::Raw(data)) => {
                let (rows, plane) = ((part.rows.end - start) * width, width * part.image.height);
                for (channel, values) in (0..).zip(data.chunks_exact(rows as usize)) {
                    let first = channel * plane + start * width;
                    array.subarray(first, first + rows).copy_from(values);
                }
            }
            // One plan makes both, so their kinds agree.
            (Self::Rgba8(_), RowPixels::Raw(_)) | (Self::Raw(_), RowPixels::Rgba8(_)) => {}
        }
    }

    fn into_js(self) -> JsValue {
        match self {
            Self::Rgba8(array) => array.into(),
            Self::Raw(array) => array.into(),
        }
    }
}
