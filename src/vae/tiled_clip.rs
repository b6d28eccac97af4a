//! Decodes of clips in tiles: each tile is a clip of its own, and its parts are decoded beside those of the others, so that frames are blended as they come.

use super::clip::ClipState;
use super::clip_plans::ClipPlans;
use super::tile_plans::tile_options;
use super::tiled::{in_image, latents_of, shown, together};
use super::{DecodeOptions, Latents, Pixels, RowPixels, Rows, Vae};
use crate::error::{Error, Result};
use crate::gpu::{Control, RunReport};
use crate::plan::Output;
use crate::tensor::Size;
use crate::tiling::{Blender, Grid, Planes};

/// The tiles of a clip under way.
#[derive(Debug)]
pub(super) struct TiledClip {
    plans: ClipPlans,
    grid: Grid,
    /// In the grid's order.
    tiles: Vec<ClipState>,
    /// Of a frame, pixels.
    size: Size,
    output: Output,
    /// Pixels along one side of a latent.
    factor: u32,
}

impl TiledClip {
    /// Its plans.
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
            let own = plans.of_tile(tile.size()).ok_or(Error::Cancelled)?;
            let jobs = own.decodes(tile.size(), unscaled, tile_options(options));
            tiles.push(self.begin_clip(own.clone(), jobs).await?);
        }
        let size = self.config().image_size(grid.latents(), unscaled);
        let factor = self.config().latent_factor(unscaled);
        Ok(TiledClip { plans, grid, tiles, size, output: options.output, factor })
    }

    /// Decodes the next part of `clip`, frame `index` of `latents`, and hands its frames to `sink`, in order.
    pub(super) async fn decode_part_of_tiles(
        &mut self,
        clip: &mut TiledClip,
        latents: &Latents,
        index: u32,
        control: &mut Control<'_>,
        sink: &mut dyn FnMut(Pixels) -> Result<()>,
    ) -> Result<RunReport> {
        if latents.size() != clip.grid.latents() {
            return Err(Error::Input {
                what: "latents of the clip".to_owned(),
                expected: format!("those of {}", clip.grid.latents()),
                found: format!("those of {}", latents.size()),
            });
        }
        let (start, total) = (web_time::Instant::now(), clip.tiles.iter().map(ClipState::macs).sum());
        let mut frames: Vec<Frame> = Vec::new();
        let (mut reached, mut runs) = (0, Vec::new());
        let (cancel, submission_target) = (control.cancel.clone(), control.submission_target);
        for (tile, state) in clip.grid.tiles().zip(&mut clip.tiles) {
            let part = latents_of(&tile, latents, index)?;
            let done = reached + state.macs();
            let mut number = 0;
            let mut take = |pixels: Pixels| {
                let Pixels::Raw(values) = pixels else { unreachable!("tiles are decoded to floats") };
                if frames.len() == number {
                    frames.push(Frame::new(&clip.grid, clip.factor, clip.size, clip.output));
                }
                let Size { width, height } = tile.size();
                let size = Size { width: width * clip.factor, height: height * clip.factor };
                frames[number].add(Planes::new(size, values));
                number += 1;
                Ok(())
            };
            let mut show = shown(control, &mut reached, total);
            let mut tile_control = Control { progress: Some(&mut show), cancel: cancel.clone(), submission_target };
            let run = self.decode_part(state, &part, 0, &mut tile_control, &mut take).await;
            drop(show);
            runs.push(run.map_err(|error| in_image(error, &tile, clip.factor))?);
            reached = done;
        }
        frames.into_iter().try_for_each(|frame| sink(frame.pixels))?;
        Ok(together(runs, start.elapsed().as_secs_f64()))
    }
}

/// A frame that is made of tiles.
struct Frame {
    blender: Blender,
    size: Size,
    pixels: Pixels,
}

impl Frame {
    fn new(grid: &Grid, factor: u32, size: Size, output: Output) -> Self {
        Self { blender: Blender::new(grid, factor), size, pixels: Pixels::empty(size, output, 3) }
    }

    fn add(&mut self, tile: Planes) {
        let Some(band) = self.blender.add(tile) else { return };
        let levels;
        let pixels = match self.pixels {
            Pixels::Rgba8(_) => {
                levels = band.pixels.to_rgba8();
                RowPixels::Rgba8(&levels)
            }
            Pixels::Raw(_) => RowPixels::Raw(band.pixels.data().into()),
        };
        self.pixels.place(&Rows { image: self.size, rows: band.rows, pixels });
    }
}
