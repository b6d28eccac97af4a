//! Clips for JavaScript, decoded and encoded part by part.

use js_sys::{Array, Float32Array, Function, Uint8ClampedArray};
use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::encode::encoded_js;
use super::images::WebImages;
use super::latents::WebLatents;
use super::options::WebOptions;
use super::planner::{PlanWithTimeline, WebPlanner};
use super::source::{JsSource, Rejection, Source};
use super::vae::{Cancel, Listener, WebVae, object};
use super::{Result, to_js};
use crate::io::clips::{ClipAxes, ClipLatents};
use crate::model::config::LatentSpace;
use crate::plan::PlaneExtents;
use crate::tensor::{Bytes, HostTensor, Size};
use crate::vae::{ClipState, Encoded, Latents, Pixels, Plans};

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

    /// True if the latents are the VAE's own.
    #[wasm_bindgen(js_name = areUnscaled)]
    pub fn are_unscaled(&self) -> bool {
        self.clip.space().is_unscaled()
    }

    /// Reads frame `index` of the latents, `[1, c, h, w]`.
    pub async fn frame(&self, index: u32) -> Result<WebLatents> {
        let read = self.clip.read(index.into()..u64::from(index) + 1).await;
        let HostTensor { shape, data } = self.rejection.pass_on(read)?;
        let latents = Latents::new(HostTensor { shape: vec![1, shape[0], shape[2], shape[3]], data })?;
        Ok(WebLatents { latents: latents.in_space(self.clip.space()) })
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

/// The facts about the plans of a clip.
#[derive(Serialize)]
struct ClipFacts {
    predicted_peak_bytes: Bytes,
    host_bytes: Bytes,
    state_bytes: Bytes,
    width: u32,
    height: u32,
    /// The number of frames of every part but the first, which has one (as many, in an encode by
    /// TAEHV and a decode by LTX-2).
    frames: u32,
    /// The number of parts after that of the last latent, in which a decoder that sees later frames
    /// gives its last ones.
    parts_after: u32,
    /// The plan of the first part. In tiles, `first` and `next` are the plans of the tile that
    /// takes the most memory.
    first: PlanWithTimeline,
    /// The plan of every other part.
    next: PlanWithTimeline,
}

/// Converts the facts of `plans` to an object. `frames` is the result of a decode, or the input of
/// an encode.
fn plan_js(plans: &Plans, frames: PlaneExtents) -> JsValue {
    to_js(&ClipFacts {
        predicted_peak_bytes: plans.peak(),
        host_bytes: plans.host_bytes(),
        state_bytes: plans.state_bytes(),
        width: frames.size.width,
        height: frames.size.height,
        frames: frames.frames,
        parts_after: plans.later().result.parts_after(),
        first: PlanWithTimeline::of(plans.first()),
        next: PlanWithTimeline::of(plans.later()),
    })
}

#[wasm_bindgen(js_class = Planner)]
impl WebPlanner {
    /// Plans the decode of a clip of `width` by `height` latents.
    #[wasm_bindgen(js_name = planClip)]
    pub fn plan_clip(&self, width: u32, height: u32, options: &JsValue) -> Result<JsValue> {
        let options = WebOptions::read(options)?;
        let frames = options.frames();
        let options = options.decode(self.planner.config())?;
        let plans = self.planner.plan(&options.request(Size { width, height }, self.space, frames).of_clip())?;
        Ok(plan_js(&plans, plans.later().result))
    }

    /// Plans the encode of a clip with frames of `width` by `height` pixels.
    #[wasm_bindgen(js_name = planClipEncode)]
    pub fn plan_clip_encode(&self, width: u32, height: u32, options: &JsValue) -> Result<JsValue> {
        let options = WebOptions::read(options)?;
        let plans = self.planner.plan(&options.encode().request(Size { width, height }).of_clip())?;
        Ok(plan_js(&plans, plans.later().input()))
    }
}

#[wasm_bindgen(js_class = Vae)]
impl WebVae {
    /// Begins to decode a clip of `width` by `height` latents.
    #[wasm_bindgen(js_name = beginClip)]
    pub async fn begin_clip(&mut self, width: u32, height: u32, unscaled: bool, options: JsValue) -> Result<WebClip> {
        let options = WebOptions::read(&options)?;
        let (frames, options) = (options.frames(), options.decode(self.vae.config())?);
        let space = if unscaled { LatentSpace::Vae } else { self.space };
        let state = self.vae.begin_decode(Size { width, height }, space, frames, &options).await?;
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
        self.in_own_space(latents);
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
        let size = clip.state.plans().later().result.size;
        Ok(object(&[
            ("width", size.width.into()),
            ("height", size.height.into()),
            ("frames", frames.into()),
            ("report", self.report(before, run, fallback)),
        ]))
    }

    /// Begins to encode a clip with frames of `width` by `height` pixels.
    #[wasm_bindgen(js_name = beginClipEncode)]
    pub async fn begin_clip_encode(&mut self, width: u32, height: u32, options: JsValue) -> Result<WebClip> {
        let options = WebOptions::read(&options)?;
        self.given_space(&options)?;
        let state = self.vae.begin_encode(Size { width, height }, &options.encode()).await?;
        Ok(WebClip { state })
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
        Ok(encoded_js(tensor, &[1], unscaled, self.report(before, run, fallback)))
    }
}
