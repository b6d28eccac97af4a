//! Decodes in tiles. Each tile is a decode of its own, only one plan is prepared at a time, and the
//! pixels are blended on the host.

use web_time::Instant;

use super::pixels::{Frame, place};
use super::request::Request;
use super::run::ClipPart;
use super::{Decoded, Latents, Vae};
use crate::error::{Error, Result};
use crate::execution::{Control, Progress, RunReport};
use crate::model::config::AutoencoderConfig;
use crate::plan::{Output, Plan};
use crate::tensor::{HostTensor, Size};
use crate::tiling::{Band, Blender, Grid, Planes, Tile};

/// The facts that all images made of one request's tiles share.
#[derive(Debug)]
pub(super) struct Mosaic {
    /// The tiles.
    pub(super) grid: Grid,
    /// The size of an image in pixels.
    size: Size,
    output: Output,
    /// The pixels along one side of a latent.
    pub(super) factor: u32,
    /// True if the network ends with a clamp.
    clamps: bool,
}

impl Mosaic {
    /// Returns the facts of a request in tiles; `None` if it has no tiles.
    pub(super) fn new(config: &AutoencoderConfig, request: &Request) -> Option<Self> {
        Some(Self {
            grid: request.tiling.grid(request.size)?,
            size: config.image_size(request.size, request.latents),
            output: request.output,
            factor: config.decoded_factor(request.latents),
            clamps: config.network.facts().clamps,
        })
    }

    /// Begins a frame of a clip.
    pub(super) fn frame<F: Frame>(&self) -> Blending<'_, F> {
        Blending { whole: self, blender: Blender::new(&self.grid, self.factor), pixels: F::default() }
    }

    /// Adds the floats `[c, h, w]` of `tile` to `blender`. If that finishes rows, hands them to
    /// `deliver`. Clamps floats if the network does.
    fn blend(&self, blender: &mut Blender, tile: &Tile, floats: Vec<f32>, deliver: &mut DeliverRows<'_>) -> Result<()> {
        let Size { width, height } = tile.size();
        let size = Size { width: width * self.factor, height: height * self.factor };
        let Some(Band { rows, pixels }) = blender.add(Planes::new(size, floats)) else { return Ok(()) };
        let rows = (rows.start, rows.end);
        match self.output {
            Output::Rgba8 | Output::Picture(_) => deliver(self.size, rows, &pixels.to_rgba8()),
            Output::Raw if self.clamps => deliver(self.size, rows, bytemuck::cast_slice(pixels.clamped().data())),
            Output::Raw | Output::Tile => deliver(self.size, rows, bytemuck::cast_slice(pixels.data())),
        }
    }
}

wasm_not! {
    Send;
    /// A function that takes rows of an image: the image's size, the first row and the row after
    /// the last, and their bytes in each plane.
    pub(crate) type DeliverRows<'a> = dyn FnMut(Size, (u32, u32), &[u8]) -> Result<()> + 'a
}

/// A frame that is being blended from tiles.
pub(super) struct Blending<'a, F> {
    whole: &'a Mosaic,
    blender: Blender,
    pixels: F,
}

impl<F: Frame> Blending<'_, F> {
    /// Adds the floats `[c, h, w]` of the next tile.
    pub(super) fn add(&mut self, tile: &Tile, floats: Vec<f32>) -> Result<()> {
        let Self { whole, blender, pixels } = self;
        whole.blend(blender, tile, floats, &mut |size, rows, data| {
            place(pixels, size, rows, data);
            Ok(())
        })
    }

    /// Returns the frame.
    pub(super) fn into_pixels(self) -> F {
        self.pixels
    }
}

impl Vae {
    /// Decodes image `index` of `latents` in the tiles of `request`, and hands finished rows to
    /// `deliver`. The reported time runs from the first upload until all tiles are blended.
    pub(super) async fn decode_tiles(
        &mut self,
        request: &Request,
        mosaic: &Mosaic,
        (latents, index): (&Latents, u32),
        control: &mut Control<'_>,
        deliver: &mut DeliverRows<'_>,
    ) -> Result<Decoded<()>> {
        let plans = self.planner.plan(request)?;
        let total = plans.macs(1);
        if let Some(first) = mosaic.grid.tiles().next() {
            self.prepare_job(&plans.of_size(first.size()).job(0)).await?;
        }
        let start = Instant::now();
        let mut blender = Blender::new(&mosaic.grid, mosaic.factor);
        let (mut reached, mut runs, mut fallback, mut peak) = (0, Vec::new(), None, None);
        let (cancel, submission_target) = (control.cancel.clone(), control.submission_target);
        for tile in mosaic.grid.tiles() {
            let planned = plans.of_size(tile.size()).part(0).macs();
            let done = reached + planned;
            let mut show = shown(control, &mut reached, (planned, total));
            let mut tile_control = Control { progress: Some(&mut show), cancel: cancel.clone(), submission_target };
            let part = latents_of(&tile, latents, index)?;
            let job = plans.of_size(tile.size()).job(0);
            let inputs = |plan: &Plan| part.input(0, &plan.inputs);
            let ran = self.run_whole(&job, &inputs, &mut ClipPart::default(), &mut tile_control).await;
            let ran = ran.map_err(|error| in_image(error, &tile, mosaic.factor))?;
            drop(show);
            reached = done;
            runs.push(ran.report);
            fallback = fallback.or(ran.fallback);
            peak = peak.max(self.predicted_peak());
            for floats in ran.frames {
                mosaic.blend(&mut blender, &tile, floats, deliver)?;
            }
        }
        if let Some(ready) = &mut self.ready {
            ready.peak_of_tiles = peak;
        }
        let run = together(runs, start.elapsed().as_secs_f64());
        Ok(Decoded { size: mosaic.size, pixels: (), run, fallback })
    }
}

/// Reports the progress of a tile as progress of all tiles, which have `total` multiply-adds.
/// `reached` of them were done before this tile, which has `planned`. A smaller plan, after the
/// device ran out of memory, does more.
pub(super) fn shown(
    control: &mut Control<'_>,
    reached: &mut u64,
    (planned, total): (u64, u64),
) -> impl FnMut(Progress<'_>) {
    let done = *reached;
    move |progress: Progress<'_>| {
        *reached = done + progress.done.min(planned);
        if let Some(whole) = &mut control.progress {
            whole(Progress { done: *reached, total, ..progress });
        }
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
    let shape = shape.map(|extent| extent as usize).to_vec();
    Ok(Latents::new(HostTensor { shape, data })?.in_space(latents.stored_space()))
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
