//! Clips for JavaScript, decoded and encoded part by part.

use js_sys::{Array, Float32Array, Function, Uint8ClampedArray};
use wasm_bindgen::prelude::*;

use super::Result;
use super::encode::encoded_js;
use super::images::WebImages;
use super::latents::WebLatents;
use super::options::WebOptions;
use super::planner::WebPlanner;
use super::source::{JsSource, Rejection, Source};
use super::vae::{Cancel, Listener, WebVae, object};
use crate::io::StoredSpace;
use crate::io::clips::{ClipAxes, ClipLatents};
use crate::tensor::HostTensor;
use crate::vae::{ClipState, Encoded, Latents, Pixels};

/// Latents of a clip that stay in their file until they are read.
#[wasm_bindgen(js_name = ClipLatents)]
#[derive(Debug)]
pub struct WebClipLatents {
    clip: ClipLatents,
    rejection: Rejection,
}

#[wasm_bindgen(js_class = ClipLatents)]
impl WebClipLatents {
    /// Opens a .safetensors or .npy file with latents `[1, c, t, h, w]` or `[c, t, h, w]`, for a
    /// model with `channels` channels.
    pub async fn open(source: Source, channels: u32) -> Result<Self> {
        let rejection = Rejection::default();
        let source = JsSource::new(source, &rejection);
        let clip = rejection.pass_on(ClipLatents::open(Box::new(source), None, channels).await)?;
        Ok(Self { clip, rejection })
    }

    /// Returns the shape, `[c, t, h, w]`.
    #[expect(clippy::cast_precision_loss, reason = "JavaScript's numbers")]
    pub fn shape(&self) -> Vec<f64> {
        let ClipAxes { channels, frames, size } = self.clip.axes();
        vec![channels.into(), frames as f64, size.height.into(), size.width.into()]
    }

    /// Returns true if the latents are the VAE's own, for the model of `planner`. Returns
    /// `undefined` if their file does not tell.
    #[wasm_bindgen(js_name = areUnscaled)]
    pub fn are_unscaled(&self, planner: &WebPlanner) -> Option<bool> {
        let is_stated = self.clip.stored_space() != StoredSpace::Unstated;
        is_stated.then(|| self.clip.space(planner.config()).is_unscaled())
    }

    /// Reads frame `index` of the latents, `[1, c, h, w]`.
    pub async fn frame(&self, index: u32) -> Result<WebLatents> {
        let read = self.clip.read(index.into()..u64::from(index) + 1).await;
        let HostTensor { shape, data } = self.rejection.pass_on(read)?;
        let latents = Latents::new(HostTensor { shape: vec![1, shape[0], shape[2], shape[3]], data })?;
        Ok(WebLatents { latents: latents.in_space(self.clip.stored_space()) })
    }
}

/// The position in a clip, and the states that its parts have left.
#[wasm_bindgen(js_name = Clip)]
#[derive(Debug)]
pub struct WebClip {
    state: ClipState,
}

#[wasm_bindgen(js_class = Clip)]
impl WebClip {
    /// Returns the number of input frames that the next part takes. For a decode it is one frame of
    /// latents. For an encode it is as many pictures as one frame of latents stands for, and for
    /// most models one picture at first.
    pub fn wants(&self) -> u32 {
        self.state.wants()
    }
}

#[wasm_bindgen(js_class = Vae)]
impl WebVae {
    /// Begins to decode or to encode a clip.
    #[wasm_bindgen(js_name = beginClip)]
    pub async fn begin_clip(&mut self, options: JsValue) -> Result<WebClip> {
        let options = WebOptions::read(&options)?;
        let space = self.given_space(&options)?;
        let state = self.vae.begin_clip(options.request(self.vae.config(), space)?).await?;
        Ok(WebClip { state })
    }

    /// Decodes the next part of `clip`. Returns its frames and a report.
    #[wasm_bindgen(js_name = decodePart)]
    pub async fn decode_part(
        &mut self,
        clip: &mut WebClip,
        latents: &mut WebLatents,
        options: JsValue,
        cancel: &Cancel,
        progress: Option<Function>,
    ) -> Result<JsValue> {
        self.in_own_space(latents)?;
        Box::pin(self.next_frames(clip, Some(latents), &options, cancel, progress)).await
    }

    /// Decodes the next frames of `clip` that waited for later latents. Returns them and a report,
    /// or `undefined` if there are no more.
    #[wasm_bindgen(js_name = finishPart)]
    pub async fn finish_part(
        &mut self,
        clip: &mut WebClip,
        options: JsValue,
        cancel: &Cancel,
        progress: Option<Function>,
    ) -> Result<JsValue> {
        Box::pin(self.next_frames(clip, None, &options, cancel, progress)).await
    }

    /// Decodes `latents`, or what waited for later ones.
    async fn next_frames(
        &mut self,
        clip: &mut WebClip,
        latents: Option<&WebLatents>,
        options: &JsValue,
        cancel: &Cancel,
        progress: Option<Function>,
    ) -> Result<JsValue> {
        let options = WebOptions::read(options)?;
        let before = self.begin(cancel);
        let mut listener = Listener::new(progress);
        let mut control = listener.control(cancel, options.submission_target);
        let frames = Array::new();
        let mut sink = |pixels: Pixels| {
            let frame: JsValue = match pixels {
                Pixels::Rgba8(bytes) => Uint8ClampedArray::from(bytes.as_slice()).into(),
                Pixels::Raw(values) => Float32Array::from(values.as_slice()).into(),
            };
            frames.push(&frame);
            Ok(())
        };
        let state = &mut clip.state;
        let ran = match latents {
            Some(latents) => {
                Some(self.vae.decode_part(state, (&latents.latents).into(), &mut control, &mut sink).await?)
            }
            None => self.vae.finish_part(state, &mut control, &mut sink).await?,
        };
        let Some((run, fallback)) = ran else { return Ok(JsValue::UNDEFINED) };
        let size = clip.state.plans.later().result.size;
        Ok(object(&[
            ("width", size.width.into()),
            ("height", size.height.into()),
            ("frames", frames.into()),
            ("report", self.report(before, run, fallback, Some(&clip.state.plans))),
        ]))
    }

    /// Encodes the next part of `clip` to one frame of latents. `index` in the options is the index
    /// of that frame in the clip.
    #[wasm_bindgen(js_name = encodePart)]
    pub async fn encode_part(
        &mut self,
        clip: &mut WebClip,
        frames: &WebImages,
        options: JsValue,
        cancel: &Cancel,
        progress: Option<Function>,
    ) -> Result<JsValue> {
        let options = WebOptions::read(&options)?;
        let before = self.begin(cancel);
        let mut listener = Listener::new(progress);
        let mut control = listener.control(cancel, options.submission_target);
        let Encoded { moments, run, fallback } =
            self.vae.encode_part(&mut clip.state, &frames.images, &mut control).await?;
        let (tensor, unscaled) = self.wanted(moments, &options)?;
        Ok(encoded_js(tensor, &[1], unscaled, self.report(before, run, fallback, Some(&clip.state.plans))))
    }
}
