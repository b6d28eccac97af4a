//! Clips: video that is decoded or encoded part by part. A frame depends on few earlier frames, and
//! in LTX-2 on a few later ones, so a clip of any length takes the memory of one part. Only in
//! HunyuanVideo 1.5 it depends on all earlier ones.
//!
//! In tiles, each tile is a clip of its own. All tiles decode one part before any of them decodes
//! the next, so that frames are blended as they come.

use std::borrow::Cow;
use std::sync::Arc;

use web_time::Instant;

use super::options::{DecodeOptions, EncodeOptions};
use super::pixels::{Frame, FrameSink};
use super::plans::{Plans, TilesOfSize};
use super::request::Request;
use super::run::{ClipPart, Inputs, Ran};
use super::tiled::{Blending, Mosaic, in_image, latents_of, shown, together};
use super::{At, Encoded, Fallback, Images, Latents, PixelFormat, Pixels, Vae};
use crate::device::ClipStates;
use crate::direction::Direction;
use crate::error::{Error, Result};
use crate::execution::{Control, RunReport};
use crate::gpu::Input;
use crate::io::clips::TimeFactor;
use crate::model::config::{AutoencoderConfig, LatentSpace, Starts};
use crate::plan::turns::Turn;
use crate::plan::{Output, Plan};
use crate::tensor::Size;

/// A clip that is being decoded. An error in the middle ends it: begin another clip then.
///
/// Models of LTX-2 see frames of later latents. Their frames come some latents late, and the last
/// of them by [`Self::finish`].
///
/// ```no_run
/// use wgvae::images::{PixelFormat, Pixels};
/// use wgvae::{Control, DecodeOptions, Latents, Vae};
///
/// /// `latents`: `[t, c, h, w]`, one image for each frame of latents.
/// async fn decode(vae: &mut Vae, latents: &Latents) -> wgvae::Result<Vec<Pixels>> {
///     let (size, space) = (latents.size(), latents.space(vae.config()));
///     let options = DecodeOptions::default();
///     let mut clip = vae.decode_clip(size, space, PixelFormat::Rgba8, &options).await?;
///     let mut frames = Vec::new();
///     for index in 0..latents.count() {
///         let mut keep = |frame| Ok(frames.push(frame));
///         clip.decode(latents.at(index), &mut Control::default(), &mut keep).await?;
///     }
///     let mut keep = |frame| Ok(frames.push(frame));
///     while clip.finish(&mut Control::default(), &mut keep).await?.is_some() {}
///     Ok(frames)
/// }
/// ```
#[derive(Debug)]
pub struct ClipDecoder<'a> {
    vae: &'a mut Vae,
    state: ClipState,
}

/// A clip that is being encoded. An error in the middle ends it: begin another clip then.
#[derive(Debug)]
pub struct ClipEncoder<'a> {
    vae: &'a mut Vae,
    state: ClipState,
}

/// The position in a clip, and the states that its parts have left. It is for callers who cannot
/// borrow the VAE until the clip ends. Others use [`ClipDecoder`] and [`ClipEncoder`].
#[derive(Debug)]
pub(crate) struct ClipState {
    pub(crate) plans: Plans,
    request: Request,
    /// True after a part with fewer frames than it takes: the last.
    filled: bool,
    /// Number of latents, once there are no more.
    latents: Option<u64>,
    /// Each tile, in the grid's order; one if there are none.
    tiles: Vec<TileState>,
    /// The facts for blending; `None` if there are no tiles.
    mosaic: Option<Mosaic>,
}

/// The position in one tile of a clip, and the states that its parts have left.
#[derive(Debug)]
struct TileState {
    plans: Arc<TilesOfSize>,
    /// The states; `None` while a part runs, and after a part that failed.
    states: Option<ClipStates>,
    parts: u64,
    starts: Starts,
}

impl Vae {
    /// Begins to decode a clip of latents of `latent_size`, in `space`, to frames of `format`.
    /// Allocates the states that its first part leaves for the next.
    ///
    /// # Errors
    /// See [`super::plan`]; [`Error::Input`] if the VAE was not loaded to decode clips
    /// ([`super::LoadOptions::clips`]); [`Error::Device`], [`Error::HostMemory`].
    pub async fn decode_clip(
        &mut self,
        latent_size: Size,
        space: LatentSpace,
        format: PixelFormat,
        options: &DecodeOptions,
    ) -> Result<ClipDecoder<'_>> {
        let state = self.begin_clip(options.request(latent_size, space, format)).await?;
        Ok(ClipDecoder { vae: self, state })
    }

    /// Begins to encode a clip of frames of `image_size` pixels. Allocates the states that its
    /// first part leaves for the next.
    ///
    /// # Errors
    /// See [`super::plan`]; [`Error::Input`] if the VAE was not loaded to encode clips
    /// ([`super::LoadOptions::clips`]); [`Error::Device`], [`Error::HostMemory`].
    pub async fn encode_clip(&mut self, image_size: Size, options: &EncodeOptions) -> Result<ClipEncoder<'_>> {
        let state = self.begin_clip(options.request(image_size)).await?;
        Ok(ClipEncoder { vae: self, state })
    }

    /// Begins the clip of `request`, and allocates the states that its first part leaves.
    ///
    /// # Errors
    /// See [`Self::decode_clip`] and [`Self::encode_clip`].
    pub(crate) async fn begin_clip(&mut self, request: Request) -> Result<ClipState> {
        let request = request.of_clip();
        if request.direction == Direction::Decode {
            self.check_count(request.clip_latents)?;
        }
        let plans = self.planner.plan(&request)?;
        self.free_ready().await?;
        let mosaic = Mosaic::new(self.config(), &request);
        let sizes = match &mosaic {
            Some(mosaic) => mosaic.grid.tiles().map(|tile| tile.size()).collect(),
            None => vec![request.size],
        };
        let mut tiles = Vec::new();
        for size in sizes {
            let plans = Arc::clone(plans.of_size(size));
            let states = ClipStates::new(&self.device, &plans.part(0).states).await?;
            tiles.push(TileState { plans, states: Some(states), parts: 0, starts: self.config().starts() });
        }
        Ok(ClipState { plans, request, filled: false, latents: None, tiles, mosaic })
    }

    /// Decodes the next part of `clip`. See [`ClipDecoder::decode`].
    ///
    /// # Errors
    /// See [`ClipDecoder::decode`].
    pub(crate) async fn decode_part(
        &mut self,
        clip: &mut ClipState,
        latents: At<'_, Latents>,
        control: &mut Control<'_>,
        sink: &mut FrameSink<'_, Pixels>,
    ) -> Result<(RunReport, Option<Fallback>)> {
        clip.check_latents(latents.batch, self.config())?;
        let latents = latents.checked(self.config())?;
        Box::pin(self.decode_pixels(clip, Some(latents), control, sink)).await
    }

    /// Decodes the next frames of `clip` that waited for later latents. See
    /// [`ClipDecoder::finish`].
    ///
    /// # Errors
    /// See [`ClipDecoder::finish`].
    pub(crate) async fn finish_part(
        &mut self,
        clip: &mut ClipState,
        control: &mut Control<'_>,
        sink: &mut FrameSink<'_, Pixels>,
    ) -> Result<Option<(RunReport, Option<Fallback>)>> {
        clip.tiles.iter().try_for_each(TileState::check)?;
        let parts = clip.tiles[0].parts;
        self.check_end(&clip.request, parts)?;
        let latents = *clip.latents.get_or_insert(parts);
        if latents == 0 || parts >= latents + u64::from(clip.plans.later().result.parts_after()) {
            return Ok(None);
        }
        Box::pin(self.decode_pixels(clip, None, control, sink)).await.map(Some)
    }

    /// Decodes an image of latents, or what waited for later ones if there are no more.
    async fn decode_pixels(
        &mut self,
        clip: &mut ClipState,
        latents: Option<(&Latents, u32)>,
        control: &mut Control<'_>,
        sink: &mut FrameSink<'_, Pixels>,
    ) -> Result<(RunReport, Option<Fallback>)> {
        match clip.request.output {
            Output::Rgba8 => self.decode_frames(clip, latents, control, &mut |f| sink(Pixels::Rgba8(f))).await,
            _ => self.decode_frames(clip, latents, control, &mut |f| sink(Pixels::Raw(f))).await,
        }
    }

    /// Decodes an image of latents, if there is one, as the next part of `clip`, and hands its
    /// frames to `sink`.
    async fn decode_frames<F: Frame>(
        &mut self,
        clip: &mut ClipState,
        latents: Option<(&Latents, u32)>,
        control: &mut Control<'_>,
        sink: &mut FrameSink<'_, F>,
    ) -> Result<(RunReport, Option<Fallback>)> {
        let Some(mosaic) = &clip.mosaic else {
            let inputs = |plan: &Plan| match latents {
                Some((latents, index)) => latents.input(index, &plan.inputs),
                None => Ok(Input::Host(Vec::new())),
            };
            let ran = self.run_part(&mut clip.tiles[0], clip.latents, &inputs, control).await?;
            deliver(ran.frames, sink, &mut clip.tiles)?;
            return Ok((ran.report, ran.fallback));
        };
        let start = Instant::now();
        let parts: Vec<u64> = clip.tiles.iter().map(|tile| tile.parts).collect();
        let part = (latents, clip.latents);
        let decoded = self.decode_tiles_of_part(&mut clip.tiles, mosaic, part, control).await;
        let (frames, runs, fallback) = decoded.inspect_err(|_| {
            // Some tiles are a part ahead of the others, so the clip cannot be continued.
            if clip.tiles.iter().zip(parts).any(|(tile, parts)| tile.parts != parts) {
                end(&mut clip.tiles);
            }
        })?;
        deliver(frames, sink, &mut clip.tiles)?;
        Ok((together(runs, start.elapsed().as_secs_f64()), fallback))
    }

    /// Decodes the next part of each of `tiles`. Returns the blended frames, and the times of each
    /// tile.
    async fn decode_tiles_of_part<F: Frame>(
        &mut self,
        tiles: &mut [TileState],
        mosaic: &Mosaic,
        (latents, all): (Option<(&Latents, u32)>, Option<u64>),
        control: &mut Control<'_>,
    ) -> Result<(Vec<F>, Vec<RunReport>, Option<Fallback>)> {
        let total = tiles.iter().map(|tile| tile.next().macs()).sum();
        let (mut blending, mut runs, mut fallback, mut reached) = (Vec::<Blending<'_, F>>::new(), Vec::new(), None, 0);
        let (cancel, submission_target) = (control.cancel.clone(), control.submission_target);
        for (tile, state) in mosaic.grid.tiles().zip(tiles) {
            let part = latents.map(|(latents, index)| latents_of(&tile, latents, index)).transpose()?;
            let inputs = |plan: &Plan| match &part {
                Some(part) => part.input(0, &plan.inputs),
                None => Ok(Input::Host(Vec::new())),
            };
            let planned = state.next().macs();
            let done = reached + planned;
            let mut show = shown(control, &mut reached, (planned, total));
            let mut tile_control = Control { progress: Some(&mut show), cancel: cancel.clone(), submission_target };
            let ran = self.run_part(state, all, &inputs, &mut tile_control).await;
            drop(show);
            let ran = ran.map_err(|error| in_image(error, &tile, mosaic.factor))?;
            blending.resize_with(ran.frames.len(), || mosaic.frame());
            for (blended, pixels) in blending.iter_mut().zip(ran.frames) {
                blended.add(&tile, pixels)?;
            }
            runs.push(ran.report);
            fallback = fallback.or(ran.fallback);
            reached = done;
        }
        Ok((blending.into_iter().map(|frame| frame.into_pixels()).collect(), runs, fallback))
    }

    /// Encodes the next part of `clip`. See [`ClipEncoder::encode`].
    ///
    /// # Errors
    /// See [`ClipEncoder::encode`].
    pub(crate) async fn encode_part(
        &mut self,
        clip: &mut ClipState,
        frames: &Images,
        control: &mut Control<'_>,
    ) -> Result<Encoded> {
        let (planes, wants) = (clip.tiles[0].next().input(), clip.wants());
        let (count, size) = (frames.count(), frames.size());
        let fills = self.config().fills_parts() && (1..wants).contains(&count);
        if clip.filled || size != planes.size || (count != wants && !fills) {
            let expected = if clip.filled { 0 } else { wants };
            return Err(Error::input(
                "frames of the clip",
                format!("{expected} of {}", planes.size),
                format!("{count} of {size}"),
            ));
        }
        let all = Cow::Borrowed(frames.all(planes.channels)?);
        let all = match planes.frames - count {
            0 => all,
            missing if fills => Cow::Owned(filled(&all, count, missing)),
            missing => Cow::Owned(after_black(&all, count, missing)),
        };
        let inputs = |_: &Plan| Ok(Input::Host(vec![Cow::Borrowed(&*all)]));
        let ran = self.run_part(&mut clip.tiles[0], None, &inputs, control).await?;
        clip.filled = fills;
        Ok(ran.into_encoded(self.config()))
    }

    /// Returns an error if `tile` has had all the latents that its plans have room for.
    fn check_length(&self, tile: &TileState) -> Result<()> {
        let most = tile.plans.request.most_latents();
        let facts = self.config().network.facts();
        // An encoder's first part does not depend on how many follow.
        let is_decode = tile.plans.request.direction == Direction::Decode;
        let is_limited = facts.keeps_all || (is_decode && facts.starts == Starts::FirstIfOdd);
        if !is_limited || tile.parts < u64::from(most) {
            return Ok(());
        }
        let expected = format!(
            "at most {most} latents, for which the clip is planned (clip_latents, clipLatents, --clip-latents)"
        );
        Err(Error::input("latents of the clip", expected, "one more"))
    }

    /// Returns an error if no clip has `latents` latents, or if their number must be known before
    /// the first of them is decoded.
    fn check_count(&self, latents: Option<u32>) -> Result<()> {
        if self.config().starts() == Starts::FirstIfOdd && latents.is_none() {
            let expected = "the number of latents of the clip, on which this model's first frames depend (clipLatents in JavaScript)";
            return Err(Error::input("clip_latents", expected, "none"));
        }
        let (Some(latents), Some(factor)) = (latents, TimeFactor::of(self.config())) else { return Ok(()) };
        if latents == 0 || factor.frames(latents.into()).is_some() {
            return Ok(());
        }
        Err(Error::input("latents of the clip", factor.expected_latents(), latents.to_string()))
    }

    /// Returns an error if a clip ends after `parts` latents, and another number has decided about
    /// its first frames.
    fn check_end(&self, request: &Request, parts: u64) -> Result<()> {
        let given = u64::from(request.most_latents());
        if self.config().starts() != Starts::FirstIfOdd || parts >= given {
            return Ok(());
        }
        Err(Error::input("latents of the clip", format!("{given}, as clip_latents says"), parts.to_string()))
    }

    /// Runs the next part of a clip, or of one tile of it, and returns its frames. `latents` is the
    /// number of latents of the clip, if there are no more.
    async fn run_part<F: Frame>(
        &mut self,
        tile: &mut TileState,
        latents: Option<u64>,
        inputs: &Inputs<'_, '_>,
        control: &mut Control<'_>,
    ) -> Result<Ran<F>> {
        tile.check()?;
        self.check_length(tile)?;
        let mut states = tile.states.take().unwrap_or_default();
        let wanted = &tile.next().states;
        if tile.parts > 0 && tile.begins_chunk() {
            // Frees the old states before new ones are allocated, which are zero.
            states = ClipStates::default();
        }
        let dropped = tile.dropped();
        if !states.hold(wanted) {
            // Later parts keep more states than the first part, whose plan does not count them. So
            // that plan is freed before they are allocated.
            self.ready = None;
            states.add(&self.device, wanted).await?;
        }
        let mut part = ClipPart { states, turn: Turn { part: tile.parts, latents } };
        let mut ran: Ran<F> = self.run_whole(&tile.plans.job(tile.parts), inputs, &mut part, control).await?;
        ran.frames.drain(..dropped);
        tile.states = Some(part.states);
        tile.parts += 1;
        Ok(ran)
    }
}

impl ClipState {
    /// Returns the frames of the next part; see [`ClipEncoder::wants`].
    pub(crate) fn wants(&self) -> u32 {
        let tile = &self.tiles[0];
        if tile.begins_chunk() { 1 } else { tile.next().input().frames }
    }

    /// Checks that `latents` have the size, the channels and the space that the clip began with,
    /// and that it has not been finished.
    fn check_latents(&self, latents: &Latents, config: &AutoencoderConfig) -> Result<()> {
        if let Some(count) = self.latents {
            return Err(Error::input("latents of the clip", format!("{count}, as the clip is finished"), "more"));
        }
        let (size, space) = (self.request.size, self.request.latents);
        let channels = self.tiles[0].next().input().channels;
        if (latents.channels(), latents.size()) != (channels, size) {
            return Err(Error::input(
                "latents of the clip",
                format!("{channels} channels of {size}"),
                format!("{} of {}", latents.channels(), latents.size()),
            ));
        }
        let found = latents.space(config);
        if found == space {
            return Ok(());
        }
        let name = |space| match space {
            LatentSpace::Model => "latents in the diffusion model's scale",
            LatentSpace::Vae => "the VAE's own latents",
        };
        Err(Error::input("latents of the clip", format!("{}, as the clip began", name(space)), name(found)))
    }
}

/// Hands the frames of a part to `sink`, whose error ends the clip of `tiles`: its frames are lost.
fn deliver<F>(frames: Vec<F>, sink: &mut FrameSink<'_, F>, tiles: &mut [TileState]) -> Result<()> {
    frames.into_iter().try_for_each(sink).inspect_err(|_| end(tiles))
}

/// Ends the clip of `tiles`, so that no more of its parts run.
fn end(tiles: &mut [TileState]) {
    tiles.iter_mut().for_each(|tile| tile.states = None);
}

/// Returns the `count` frames `frames`, and then `missing` copies of the last.
fn filled(frames: &[f32], count: u32, missing: u32) -> Vec<f32> {
    let mut filled = frames.to_vec();
    let last = frames.len() - frames.len() / count as usize;
    (0..missing).for_each(|_| filled.extend_from_slice(&frames[last..]));
    filled
}

/// Returns the `count` frames `frames` after `missing` black ones.
fn after_black(frames: &[f32], count: u32, missing: u32) -> Vec<f32> {
    let black = frames.len() / count as usize * missing as usize;
    [vec![-1.0; black].as_slice(), frames].concat()
}

impl TileState {
    /// Returns an error if an error has ended the clip.
    fn check(&self) -> Result<()> {
        if self.states.is_some() {
            return Ok(());
        }
        Err(Error::input(
            "clip",
            "a clip that no error has ended: begin another one",
            format!("one that ended after {} parts", self.parts),
        ))
    }

    /// Returns the plan of the next part.
    fn next(&self) -> &Plan {
        self.plans.part(self.parts)
    }

    /// Returns the number of first frames of the next part that are not frames of the clip. Most
    /// networks make no such frames.
    fn dropped(&self) -> usize {
        let request = &self.plans.request;
        let makes_them = self.starts != Starts::First && request.direction == Direction::Decode;
        let is_start = self.starts.contain(self.parts, request.most_latents().into());
        if makes_them && is_start { self.next().result.frames as usize - 1 } else { 0 }
    }

    /// True if an encode begins a chunk with the next part. That part takes one frame, with black
    /// ones before it, and sees no earlier part.
    fn begins_chunk(&self) -> bool {
        let is_encode = self.plans.request.direction == Direction::Encode;
        is_encode && self.starts == Starts::EveryFifth && self.starts.contain(self.parts, 0)
    }
}

impl ClipDecoder<'_> {
    /// Returns the clip's plans.
    pub fn plans(&self) -> &Plans {
        &self.state.plans
    }

    /// Returns the VAE that decodes the clip.
    pub fn vae(&self) -> &Vae {
        self.vae
    }

    /// Decodes the clip's next frame of latents: `latents` of one frame, or [`Latents::at`] of
    /// several. Hands the resulting frames to `sink`, in order. Returns the times, and the smaller
    /// plan that was used, if the device had too little memory for the first.
    ///
    /// # Errors
    /// [`Error::Input`] if the latents do not fit the clip, or an error has ended it;
    /// [`Error::Cancelled`], [`Error::NotFinite`], [`Error::Device`], [`Error::HostMemory`], or an
    /// error of `sink`.
    pub async fn decode(
        &mut self,
        latents: impl Into<At<'_, Latents>>,
        control: &mut Control<'_>,
        sink: &mut FrameSink<'_, Pixels>,
    ) -> Result<(RunReport, Option<Fallback>)> {
        self.vae.decode_part(&mut self.state, latents.into(), control, sink).await
    }

    /// Decodes the next frames that waited for later latents, and hands them to `sink`. Call it
    /// after the last latents, until it returns `None`: at once, for models that see no later
    /// latents.
    ///
    /// # Errors
    /// See [`Self::decode`].
    pub async fn finish(
        &mut self,
        control: &mut Control<'_>,
        sink: &mut FrameSink<'_, Pixels>,
    ) -> Result<Option<(RunReport, Option<Fallback>)>> {
        self.vae.finish_part(&mut self.state, control, sink).await
    }
}

impl ClipEncoder<'_> {
    /// Returns the clip's plans.
    pub fn plans(&self) -> &Plans {
        &self.state.plans
    }

    /// Returns the VAE that encodes the clip.
    pub fn vae(&self) -> &Vae {
        self.vae
    }

    /// Returns the number of frames that the next part takes: as many as one frame of latents
    /// stands for, and for most models one image at first. TAEHV's last part may have fewer: the
    /// last frame is then repeated.
    pub fn wants(&self) -> u32 {
        self.state.wants()
    }

    /// Encodes the clip's next [`Self::wants`] frames, `[frames, 3, h, w]` in -1..1. Returns the
    /// moments of one frame of the VAE's own latents.
    ///
    /// # Errors
    /// [`Error::Input`] if the frames do not fit the clip, or an error has ended it;
    /// [`Error::Cancelled`], [`Error::NotFinite`], [`Error::Device`], [`Error::HostMemory`].
    pub async fn encode(&mut self, frames: &Images, control: &mut Control<'_>) -> Result<Encoded> {
        self.vae.encode_part(&mut self.state, frames, control).await
    }
}

impl Drop for ClipDecoder<'_> {
    fn drop(&mut self) {
        self.vae.drop_states();
    }
}

impl Drop for ClipEncoder<'_> {
    fn drop(&mut self) {
        self.vae.drop_states();
    }
}

impl Vae {
    /// Frees the states that a part whose future was dropped has left in its plan.
    fn drop_states(&mut self) {
        if let Some(ready) = &mut self.ready {
            drop(ready.prepared.take_states());
        }
    }
}
