//! Decodes in tiles. Each tile is a decode of its own, only one plan is prepared at a time, and the
//! pixels are blended on the host.

use web_time::Instant;

use super::job::Job;
use super::latents::check_size;
use super::tile_plans::{TilePlans, tile_options};
use super::{DecodeOptions, DecodedRows, Latents, Pixels, Rows, Vae};
use crate::error::{Error, Result};
use crate::gpu::{Control, Progress, RunReport};
use crate::plan::Output;
use crate::tensor::{HostTensor, Size};
use crate::tiling::{Band, Blender, Grid, Planes, Tile};

impl Vae {
    /// Plans each size of tile of a decode on this device. A decode that is not in tiles has one
    /// plan. Takes no GPU memory.
    ///
    /// # Errors
    /// See [`plan_decode`](super::plan_decode).
    pub fn plan_tiles(&self, latent_size: Size, options: &DecodeOptions) -> Result<TilePlans> {
        self.planner.plan_tiles(latent_size, self.planner.unscaled(), options)
    }

    /// Returns the size and the options of the largest decode that runs at once: the whole image,
    /// or the tile that takes the most memory.
    pub(super) fn decoded_at_once(
        &self,
        latent_size: Size,
        unscaled: bool,
        options: &DecodeOptions,
    ) -> Result<(Size, DecodeOptions)> {
        check_size("size", latent_size)?;
        match options.tiling.grid(latent_size) {
            Some(_) => {
                let largest = self.planner.plan_tiles(latent_size, unscaled, options)?.into_largest();
                Ok((largest.input().size, tile_options(options)))
            }
            None => Ok((latent_size, *options)),
        }
    }

    /// Decodes image `index` of `latents` in the tiles of `grid`, and hands finished rows to
    /// `sink`. The reported time runs from the first upload until all tiles are blended.
    pub(super) async fn decode_tiles(
        &mut self,
        latents: &Latents,
        index: u32,
        grid: &Grid,
        options: &DecodeOptions,
        control: &mut Control<'_>,
        sink: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<DecodedRows> {
        if options.output.stays() {
            return Err(Error::input("output", "rgba8 or raw for tiles, which are blended on the host", "picture"));
        }
        let unscaled = self.planner.unscaled() || latents.are_unscaled();
        let factor = self.config().latent_factor(unscaled);
        let size = self.config().image_size(latents.size(), unscaled);
        let tile_options = tile_options(options);
        let total = self.planner.plan_tiles(latents.size(), unscaled, options)?.macs();
        if let Some(first) = grid.tiles().next() {
            self.prepare_job(Job::Decode { latent_size: first.size(), unscaled, options: tile_options }).await?;
        }
        let start = Instant::now();
        let mut blender = Blender::new(grid, factor);
        let (mut reached, mut runs, mut fallback) = (0, Vec::new(), None);
        let (cancel, submission_target) = (control.cancel.clone(), control.submission_target);
        for tile in grid.tiles() {
            let mut show = shown(control, &mut reached, total);
            let mut tile_control = Control { progress: Some(&mut show), cancel: cancel.clone(), submission_target };
            let part = latents_of(&tile, latents, index)?;
            // Boxed, because a decode calls itself here. It does so once: a tile is not cut again.
            let decoded = Box::pin(self.decode(&part, 0, &tile_options, &mut tile_control)).await;
            let decoded = decoded.map_err(|error| in_image(error, &tile, factor))?;
            drop(show);
            runs.push(decoded.run);
            fallback = fallback.or(decoded.fallback);
            let Pixels::Raw(values) = decoded.pixels else { unreachable!("tiles are decoded to floats") };
            if let Some(Band { rows, pixels }) = blender.add(Planes::new(decoded.size, values)) {
                let pixels = blended(pixels, options.output, self.config().clamps());
                sink(Rows { image: size, rows, pixels: pixels.rows() })?;
            }
        }
        Ok(DecodedRows { size, run: together(runs, start.elapsed().as_secs_f64()), fallback })
    }
}

/// Reports the progress of a tile as progress of all tiles, which have `total` multiply-adds.
/// `reached` of them were done before this tile.
pub(super) fn shown(control: &mut Control<'_>, reached: &mut u64, total: u64) -> impl FnMut(Progress<'_>) {
    let done = *reached;
    move |progress: Progress<'_>| {
        *reached = done + progress.done;
        if let Some(whole) = &mut control.progress {
            whole(Progress { done: *reached, total, ..progress });
        }
    }
}

/// Converts blended `pixels` to `output`. Clamps raw values if the network `clamps`.
pub(super) fn blended(pixels: Planes, output: Output, clamps: bool) -> Pixels {
    match output {
        Output::Rgba8 | Output::Picture(_) => Pixels::Rgba8(pixels.to_rgba8()),
        Output::Raw if clamps => Pixels::Raw(pixels.clamped().into_data()),
        Output::Raw | Output::Tile => Pixels::Raw(pixels.into_data()),
    }
}

/// Returns the latents of one tile of image `index`.
pub(super) fn latents_of(tile: &Tile, latents: &Latents, index: u32) -> Result<Latents> {
    let whole = latents.size();
    let mut data = Vec::new();
    for plane in latents.image(index)?.chunks_exact(whole.width as usize * whole.height as usize) {
        for row in tile.rows.clone() {
            let row = &plane[row as usize * whole.width as usize..];
            data.extend_from_slice(&row[tile.columns.start as usize..tile.columns.end as usize]);
        }
    }
    let shape = [latents.channels(), tile.size().height, tile.size().width];
    let part = Latents::new(HostTensor { shape: shape.map(|extent| extent as usize).to_vec(), data })?;
    Ok(if latents.are_unscaled() { part.unscaled() } else { part })
}

/// Turns an error about a pixel of a tile into one about a pixel of the image.
pub(super) fn in_image(error: Error, tile: &Tile, factor: u32) -> Error {
    let pixels = |latents: u32| latents as usize * factor as usize;
    match error {
        Error::NotFinite { column, row } => {
            Error::NotFinite { column: pixels(tile.columns.start) + column, row: pixels(tile.rows.start) + row }
        }
        other => other,
    }
}

/// Combines the reports of all tiles, which took `seconds` altogether.
pub(super) fn together(runs: Vec<RunReport>, seconds: f64) -> RunReport {
    let mut whole = RunReport { seconds, sink_seconds: 0.0, submissions: Vec::new(), stage_seconds: None };
    for (index, run) in runs.into_iter().enumerate() {
        whole.sink_seconds += run.sink_seconds;
        whole.submissions.extend(run.submissions);
        whole.stage_seconds = match (whole.stage_seconds.take(), run.stage_seconds) {
            (None, stages) if index == 0 => stages,
            (Some(sums), Some(stages)) if sums.len() == stages.len() => {
                Some(sums.iter().zip(stages).map(|(sum, seconds)| sum + seconds).collect())
            }
            _ => None,
        };
    }
    whole
}
