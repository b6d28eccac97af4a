//! The facade: loads a VAE, plans, decodes, encodes. The only module that uses all layers.

mod clip;
mod clip_parts;
mod clip_plans;
mod encode;
mod every_kernel;
mod fallback;
mod images;
mod job;
mod latents;
mod noise;
mod options;
mod pixels;
mod planner;
mod plans;
mod posterior;
mod scaling;
mod tile_plans;
mod tiled;
mod tiled_clip;
mod wanted;
mod weights;

use web_time::Instant;

pub use self::clip::Clip;
#[cfg(target_arch = "wasm32")]
pub(crate) use self::clip_parts::ClipState;
pub use self::clip_plans::{ClipPlans, plan_clip_decode, plan_clip_encode};
pub use self::encode::Encoded;
pub use self::every_kernel::{compile_all, every_variant, odd_network, variants_for};
pub use self::fallback::Fallback;
pub use self::images::Images;
pub use self::latents::Latents;
pub use self::options::{DecodeOptions, Directions, EncodeOptions, LoadOptions, Parking, Precision};
pub use self::pixels::{Pixels, RowPixels, Rows};
pub use self::planner::Planner;
pub use self::plans::{plan_decode, plan_encode};
pub use self::posterior::Posterior;
pub use self::scaling::scale_latents;
pub use self::tile_plans::TilePlans;
pub use self::wanted::{check_clips, check_decoder, check_encoder, weight_reads};

use self::fallback::is_out_of_memory;
use self::job::Job;
use self::weights::VaeWeights;
use crate::error::{Error, Result};
use crate::gpu::{Control, Gpu, GpuBuffer, Input, Prepared, RunReport};
use crate::io::Checkpoint;
use crate::model::config::AutoencoderConfig;
use crate::plan::{ChannelOrder, Output, Plan};
use crate::tensor::{Bytes, Size, Storage};

/// A decoded image and the times of its decode.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// The image's size in pixels.
    pub size: Size,
    /// The image's content.
    pub pixels: Pixels,
    /// The times of the run.
    pub run: RunReport,
    /// The smaller plan that was used, if the device had too little memory for the first.
    pub fallback: Option<Fallback>,
}

/// The report of a decode whose rows went to a sink.
#[derive(Debug, Clone)]
pub struct DecodedRows {
    /// The image's size in pixels.
    pub size: Size,
    /// The times of the run.
    pub run: RunReport,
    /// The smaller plan that was used, if the device had too little memory for the first.
    pub fallback: Option<Fallback>,
}

/// A VAE whose weights are loaded for a GPU.
#[derive(Debug)]
pub struct Vae {
    gpu: Gpu,
    planner: Planner,
    weights: VaeWeights,
    ready: Option<Ready>,
    load_seconds: f64,
}

/// An allocated plan, and the job that it was made for.
#[derive(Debug)]
struct Ready {
    job: Job,
    prepared: Prepared,
    fallback: Option<Fallback>,
    /// True if the last run was completed. Only then is there a picture.
    complete: bool,
}

impl Vae {
    /// Reads the weights that `options` ask for, one tensor at a time, and uploads or keeps them.
    ///
    /// # Errors
    /// [`Error::MissingTensors`]; [`Error::Tensor`] for a tensor of a wrong shape, type or content;
    /// [`Error::Input`] for a file that has only the other half of the model; [`Error::Io`];
    /// [`Error::Device`]; [`Error::HostMemory`]; [`Error::Config`] if the scaling factor is needed
    /// and the files do not tell it.
    pub async fn load(gpu: &Gpu, checkpoint: &Checkpoint, options: LoadOptions) -> Result<Self> {
        let start = Instant::now();
        let planner = Planner::new(gpu, checkpoint, options)?;
        let weights = VaeWeights::load(gpu, checkpoint, &planner, options).await?;
        Ok(Self { gpu: gpu.clone(), planner, weights, ready: None, load_seconds: start.elapsed().as_secs_f64() })
    }

    /// Returns the model's configuration.
    pub fn config(&self) -> &AutoencoderConfig {
        self.planner.config()
    }

    /// Returns the planner of this model on this device.
    pub fn planner(&self) -> &Planner {
        &self.planner
    }

    /// Returns the storage of weights and activations.
    pub fn storage(&self) -> Storage {
        self.planner.storage()
    }

    /// Returns the seconds that [`Self::load`] took.
    pub fn load_seconds(&self) -> f64 {
        self.load_seconds
    }

    /// Returns the size in pixels of the image that `latents` decode to.
    pub fn image_size(&self, latents: &Latents) -> Size {
        self.config().image_size(latents.size(), self.planner.unscaled() || latents.are_unscaled())
    }

    /// Plans a decode of latents of `latent_size` on this device. Takes no GPU memory. In tiles,
    /// returns the plan of the tiles that take the most memory, whose peak is that of the decode.
    /// [`Self::plan_tiles`] returns all plans.
    ///
    /// # Errors
    /// See [`plan_decode`].
    pub fn plan(&self, latent_size: Size, options: &DecodeOptions) -> Result<Plan> {
        self.planner.plan(latent_size, options)
    }

    /// Allocates buffers and compiles kernels for latents of `latent_size`, unless the last decode
    /// was of that size. Decoding does this itself. In tiles, it prepares the plan of the tiles
    /// that take the most memory.
    ///
    /// If the device has too little memory for the plan, a smaller one replaces it and is returned;
    /// see [`Fallback`].
    ///
    /// # Errors
    /// See [`plan_decode`], [`Error::Device`], and [`Error::HostMemory`].
    pub async fn prepare(&mut self, latent_size: Size, options: &DecodeOptions) -> Result<&Plan> {
        let unscaled = self.planner.unscaled();
        let (latent_size, options) = self.decoded_at_once(latent_size, unscaled, options)?;
        self.prepare_job(Job::Decode { latent_size, unscaled, options }).await
    }

    /// Allocates buffers and compiles kernels for `job`, unless that job is ready.
    async fn prepare_job(&mut self, job: Job) -> Result<&Plan> {
        if self.ready.as_ref().is_none_or(|ready| ready.job != job) {
            self.check_loaded(&job)?;
            let plan = self.planner.plan_job(&job)?;
            // Frees the old plan before the new one is allocated, so that the peak is that of one
            // plan.
            self.ready = None;
            self.ready = Some(self.allocate(job, plan).await?);
        }
        self.ready.as_ref().map(|ready| ready.prepared.plan()).ok_or(Error::Cancelled)
    }

    /// Checks that the weights of a job were loaded.
    fn check_loaded(&self, job: &Job) -> Result<()> {
        let (loaded, doing) = match job {
            Job::Decode { .. } | Job::DecodePart { .. } => (self.weights.directions().decodes(), "decode"),
            Job::Encode { .. } | Job::EncodePart { .. } => (self.weights.directions().encodes(), "encode"),
        };
        if job.is_of_clip() != self.planner.clips() {
            let of = |clips: bool| if clips { "clips" } else { "images" };
            return Err(Error::input(
                "model",
                format!("one loaded for {} (see LoadOptions::clips)", of(job.is_of_clip())),
                format!("one loaded for {}", of(self.planner.clips())),
            ));
        }
        if loaded {
            return Ok(());
        }
        Err(Error::input(
            "model",
            format!("one loaded to {doing} (see LoadOptions::directions)"),
            format!("directions {:?}", self.weights.directions()),
        ))
    }

    /// Frees the prepared plan, unless it was for latents of `latent_size` and these options.
    /// Preparing does this itself.
    pub fn free_unless(&mut self, latent_size: Size, options: &DecodeOptions) {
        let unscaled = self.planner.unscaled();
        let kept = Job::Decode { latent_size, unscaled, options: *options };
        self.ready.take_if(|ready| ready.job != kept);
    }

    /// Decodes image `index` of `latents`, `[n, c, h, w]`.
    ///
    /// # Errors
    /// See [`Self::decode_rows`]; [`Error::Input`] for [`Output::Picture`].
    pub async fn decode(
        &mut self,
        latents: &Latents,
        index: u32,
        options: &DecodeOptions,
        control: &mut Control<'_>,
    ) -> Result<Decoded> {
        if options.output.stays() {
            return Err(Error::input(
                "output",
                "rgba8 or raw (a picture stays on the device: see decode_picture)",
                "picture",
            ));
        }
        let mut pixels = None;
        let mut place = |rows: Rows<'_>| {
            pixels.get_or_insert_with(|| Pixels::empty(rows.image, options.output, 3)).place(&rows);
            Ok(())
        };
        let DecodedRows { size, run, fallback } =
            self.decode_rows(latents, index, options, control, &mut place).await?;
        let pixels = pixels.unwrap_or_else(|| Pixels::empty(size, options.output, 3));
        Ok(Decoded { size, pixels, run, fallback })
    }

    /// Decodes image `index` of `latents` and hands its rows to `sink` as they are ready, in order.
    /// The whole image is never in host memory. An error of `sink` stops the decode.
    ///
    /// # Errors
    /// [`Error::Input`] if the channels do not fit the model or there is no image `index`; the
    /// errors of [`plan_decode`]; [`Error::Cancelled`], [`Error::TooLarge`], [`Error::NotFinite`],
    /// [`Error::Device`], [`Error::HostMemory`], or an error of `sink`.
    pub async fn decode_rows(
        &mut self,
        latents: &Latents,
        index: u32,
        options: &DecodeOptions,
        control: &mut Control<'_>,
        sink: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<DecodedRows> {
        let unscaled = self.planner.unscaled() || latents.are_unscaled();
        latents.check(self.config(), unscaled, index)?;
        if let Some(grid) = options.tiling.grid(latents.size()) {
            return self.decode_tiles(latents, index, &grid, options, control, sink).await;
        }
        let job = Job::Decode { latent_size: latents.size(), unscaled, options: *options };
        let plan = self.prepare_job(job).await?;
        let (size, input) = (plan.result.size, latents.input(index, &plan.inputs)?);
        let (run, fallback) = self.run_ready(&input, control, sink).await?;
        Ok(DecodedRows { size, run, fallback })
    }

    /// Runs the plan that is ready. Runs a smaller one if the device has too little memory for it.
    async fn run_ready(
        &mut self,
        input: &Input<'_>,
        control: &mut Control<'_>,
        sink: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<(RunReport, Option<Fallback>)> {
        let mut next_row = 0;
        let mut run = self.run(input, control, &mut next_row, sink).await;
        if let Err(error) = run.as_mut()
            && is_out_of_memory(error)
            && let Some(ready) = self.ready.take_if(|ready| ready.fallback.is_none())
        {
            let error = std::mem::replace(error, Error::Cancelled);
            self.ready = Some(self.fall_back_from(ready, error).await?);
            run = self.run(input, control, &mut next_row, sink).await;
        }
        if matches!(run, Err(Error::Device(_))) {
            // Its buffers may be in any state: the next run makes new ones.
            self.ready = None;
        }
        let fallback = self.ready.as_ref().and_then(|ready| ready.fallback.clone());
        Ok((run?, fallback))
    }

    /// Decodes image `index` of `latents` to a picture that stays on the device, for a canvas or
    /// for [`Self::read_picture`]. The picture exists until the next prepare or decode. `order`
    /// replaces `options.output`, and is the order of the picture's channels.
    ///
    /// # Errors
    /// See [`Self::decode_rows`]; [`Error::Input`] for tiles, which are blended on the host.
    pub async fn decode_picture(
        &mut self,
        latents: &Latents,
        index: u32,
        order: ChannelOrder,
        options: &DecodeOptions,
        control: &mut Control<'_>,
    ) -> Result<DecodedRows> {
        let options = DecodeOptions { output: Output::Picture(order), ..*options };
        self.decode_rows(latents, index, &options, control, &mut |_| Ok(())).await
    }

    /// Returns the picture that [`Self::decode_picture`] left on the device, and the bytes from one
    /// row to the next. `None` if there is no picture.
    pub fn picture(&self) -> Option<(&GpuBuffer, Bytes)> {
        let Some(Ready { prepared, complete: true, .. }) = &self.ready else { return None };
        Some((prepared.picture()?, prepared.plan().row_bytes()))
    }

    /// Reads the picture that [`Self::decode_picture`] left on the device. Returns RGBA8 `[h, w,
    /// 4]`.
    ///
    /// # Errors
    /// [`Error::Input`] if there is no picture, [`Error::Device`].
    pub async fn read_picture(&mut self) -> Result<Pixels> {
        let Some(Ready { prepared, complete: true, .. }) = &mut self.ready else { return Err(no_picture()) };
        let (size, row, output) = (prepared.plan().result.size, prepared.plan().row_bytes().0, prepared.plan().output);
        let padded = prepared.read_picture().await?.ok_or_else(no_picture)?;
        let rows = padded.chunks_exact(usize::try_from(row).unwrap_or(usize::MAX));
        let mut bytes: Vec<u8> = rows.flat_map(|row| &row[..size.width as usize * 4]).copied().collect();
        if output == Output::Picture(ChannelOrder::Bgra) {
            bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|pixel| pixel.swap(0, 2));
        }
        Ok(Pixels::Rgba8(bytes))
    }

    /// Runs the plan that is ready. Skips rows before `next_row`, which an earlier run has handed
    /// out, and moves `next_row` past each row that it hands out.
    async fn run(
        &mut self,
        input: &Input<'_>,
        control: &mut Control<'_>,
        next_row: &mut u32,
        sink: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<RunReport> {
        let Some(Ready { prepared, complete, .. }) = &mut self.ready else { return Err(Error::Cancelled) };
        *complete = false;
        let (image, output) = (prepared.plan().result.size, prepared.plan().output);
        let mut deliver = |rows: (u32, u32), data: &[u8]| {
            if output.stays() {
                return pixels::check_words(image, rows, data);
            }
            let rows = Rows::new(image, output, rows, data);
            rows.check_finite()?;
            let Some(rows) = rows.after(*next_row) else { return Ok(()) };
            let end = rows.rows.end;
            sink(rows)?;
            *next_row = end;
            Ok(())
        };
        let report = prepared.run(input, control, &mut deliver).await?;
        *complete = true;
        Ok(report)
    }

    /// Returns the predicted peak of the plan that was prepared last, all GPU memory included.
    pub fn predicted_peak(&self) -> Option<Bytes> {
        self.ready.as_ref().map(|ready| ready.prepared.plan().memory.peak())
    }
}

fn no_picture() -> Error {
    Error::input("picture", "one that was decoded and is still on the device", "none")
}
