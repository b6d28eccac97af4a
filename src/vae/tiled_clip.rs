//! Decodes of clips in tiles. Each tile is a clip of its own. All tiles decode one part before any
//! of them decodes the next, so that frames are blended as they come.

use super::clip_parts::ClipState;
use super::clip_plans::{ClipPlans, TilesOfSize};
use super::tile_plans::tile_options;
use super::tiled::{blended, in_image, latents_of, shown, together};
use super::{DecodeOptions, Latents, Pixels, Rows, Vae};
use crate::error::{Error, Result};
use crate::gpu::{Control, RunReport};
use crate::plan::Output;
use crate::tensor::Size;
use crate::tiling::{Band, Blender, Grid, Planes, Tile};

/// The tiles of a clip that is being decoded.
#[derive(Debug)]
pub(super) struct TiledClip {
    plans: ClipPlans,
    /// The state of each tile, in the grid's order.
    tiles: Vec<ClipState>,
    frame: FrameOfTiles,
}

/// The facts that all frames of a clip in tiles share.
#[derive(Debug)]
struct FrameOfTiles {
    grid: Grid,
    /// The size of a frame in pixels.
    size: Size,
    output: Output,
    /// The pixels along one side of a latent.
    factor: u32,
    /// True if the network ends with a clamp.
    clamps: bool,
}

impl TiledClip {
    /// Returns the clip's plans.
    pub(super) fn plans(&self) -> &ClipPlans {
        &self.plans
    }
}

impl Vae {
    /// Begins to decode a clip in the tiles of `grid`.
    pub(super) async fn begin_tiles(
        &mut self,
        grid: Grid,
        unscaled: bool,
        options: &DecodeOptions,
    ) -> Result<TiledClip> {
        let unscaled = unscaled || self.planner.unscaled();
        let plans = self.planner.plan_clip_decode(grid.latents(), unscaled, options)?;
        let mut tiles = Vec::new();
        for tile in grid.tiles() {
            let TilesOfSize { plans, budget, .. } = plans.tiles_of(tile.size());
            let options = DecodeOptions { memory_budget: *budget, ..tile_options(options) };
            let jobs = plans.decodes(tile.size(), unscaled, options);
            tiles.push(self.begin_clip(plans.clone(), jobs).await?);
        }
        let config = self.config();
        let (size, factor) = (config.image_size(grid.latents(), unscaled), config.latent_factor(unscaled));
        let frame = FrameOfTiles { grid, size, output: options.output, factor, clamps: config.clamps() };
        Ok(TiledClip { plans, tiles, frame })
    }

    /// Decodes the next part of `clip` from frame `index` of `latents`, and hands its frames to
    /// `sink`, in order.
    pub(super) async fn decode_part_of_tiles(
        &mut self,
        clip: &mut TiledClip,
        latents: &Latents,
        index: u32,
        control: &mut Control<'_>,
        sink: &mut dyn FnMut(Pixels) -> Result<()>,
    ) -> Result<RunReport> {
        let start = web_time::Instant::now();
        let parts: Vec<u64> = clip.tiles.iter().map(ClipState::parts).collect();
        let decoded = self.decode_tiles_of_part(&mut clip.tiles, &clip.frame, latents, index, control).await;
        let (frames, runs) = decoded.inspect_err(|_| {
            // Some tiles are a part ahead of the others, so the clip cannot be continued.
            if clip.tiles.iter().zip(parts).any(|(tile, parts)| tile.parts() != parts) {
                clip.tiles.iter_mut().for_each(ClipState::end);
            }
        })?;
        frames.into_iter().try_for_each(sink)?;
        Ok(together(runs, start.elapsed().as_secs_f64()))
    }

    /// Decodes the next part of each of `tiles`. Returns the blended frames, and the times of each
    /// tile.
    async fn decode_tiles_of_part(
        &mut self,
        tiles: &mut [ClipState],
        frame: &FrameOfTiles,
        latents: &Latents,
        index: u32,
        control: &mut Control<'_>,
    ) -> Result<(Vec<Pixels>, Vec<RunReport>)> {
        if latents.size() != frame.grid.latents() {
            return Err(Error::input(
                "latents of the clip",
                format!("a size of {}", frame.grid.latents()),
                format!("a size of {}", latents.size()),
            ));
        }
        let total = tiles.iter().map(ClipState::macs).sum();
        let mut frames: Vec<Frame<'_>> = Vec::new();
        let (mut reached, mut runs) = (0, Vec::new());
        let (cancel, submission_target) = (control.cancel.clone(), control.submission_target);
        for (tile, state) in frame.grid.tiles().zip(tiles) {
            let part = latents_of(&tile, latents, index)?;
            let done = reached + state.macs();
            let mut number = 0;
            let mut take = |pixels: Pixels| {
                let Pixels::Raw(values) = pixels else { unreachable!("tiles are decoded to floats") };
                if frames.len() == number {
                    frames.push(Frame::new(frame));
                }
                frames[number].add(Planes::new(frame.pixels_of(&tile), values));
                number += 1;
                Ok(())
            };
            let mut show = shown(control, &mut reached, total);
            let mut tile_control = Control { progress: Some(&mut show), cancel: cancel.clone(), submission_target };
            let run = self.decode_part(state, &part, 0, &mut tile_control, &mut take).await;
            drop(show);
            runs.push(run.map_err(|error| in_image(error, &tile, frame.factor))?);
            reached = done;
        }
        Ok((frames.into_iter().map(|frame| frame.pixels).collect(), runs))
    }
}

impl FrameOfTiles {
    /// Returns the size of `tile` in pixels.
    fn pixels_of(&self, tile: &Tile) -> Size {
        let Size { width, height } = tile.size();
        Size { width: width * self.factor, height: height * self.factor }
    }
}

/// A frame that is being blended from tiles.
struct Frame<'a> {
    whole: &'a FrameOfTiles,
    blender: Blender,
    pixels: Pixels,
}

impl<'a> Frame<'a> {
    fn new(whole: &'a FrameOfTiles) -> Self {
        let blender = Blender::new(&whole.grid, whole.factor);
        Self { whole, blender, pixels: Pixels::empty(whole.size, whole.output, 3) }
    }

    fn add(&mut self, tile: Planes) {
        let Some(Band { rows, pixels }) = self.blender.add(tile) else { return };
        let pixels = blended(pixels, self.whole.output, self.whole.clamps);
        self.pixels.place(&Rows { image: self.whole.size, rows, pixels: pixels.rows() });
    }
}
