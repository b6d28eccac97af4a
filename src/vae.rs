//! The facade: load a VAE, plan a decode, decode. The only module that sees all layers.

mod every_kernel;
mod fallback;
mod latents;
mod noise;
mod options;
mod pixels;
mod posterior;
mod scaling;
mod tiled;
mod weights;

use web_time::Instant;

pub use self::every_kernel::{compile_all, every_variant, odd_network};
pub use self::fallback::Fallback;
pub use self::latents::Latents;
pub use self::options::{DecodeOptions, LoadOptions, Parking, Precision};
pub use self::pixels::{Pixels, RowPixels, Rows};
pub use self::posterior::Posterior;
pub use self::scaling::scale_latents;
pub use self::tiled::TilePlans;
pub use self::weights::{check_decoder, decoder_reads};

use self::fallback::is_out_of_memory;
use self::latents::{check_image, check_size};
use self::weights::VaeWeights;
use crate::error::{Error, Result};
use crate::gpu::{Control, Gpu, GpuBuffer, Input, Prepared, RunReport};
use crate::io::Checkpoint;
use crate::limits::DeviceLimits;
use crate::model::autoencoder_kl;
use crate::model::config::AutoencoderConfig;
use crate::plan::{ChannelOrder, Output, Plan, PlanOptions, Weights};
use crate::tensor::{Bytes, Size, Storage};

/// One decoded image and what it took.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// Its size in pixels.
    pub size: Size,
    /// Its content.
    pub pixels: Pixels,
    /// Times.
    pub run: RunReport,
    /// The smaller plan that was used, where the device had too little memory for the first.
    pub fallback: Option<Fallback>,
}

/// What it took to decode an image whose rows were handed out.
#[derive(Debug, Clone)]
pub struct DecodedRows {
    /// The image's size in pixels.
    pub size: Size,
    /// Times.
    pub run: RunReport,
    /// The smaller plan that was used, where the device had too little memory for the first.
    pub fallback: Option<Fallback>,
}

/// Plans a decode of latents of `latent_size`, without a device. In tiles: the plan of those that take the most memory.
///
/// A plan with a budget takes its weights from the host: see [`LoadOptions::weights_on_host`].
///
/// # Errors
/// [`Error::Config`] naming a field of `config` that makes no sense; [`Error::TooLarge`] when something does not fit `limits`; [`Error::Budget`] when no plan
/// keeps the budget; [`Error::Input`] for an empty size or one that nobody means, for limits that no device has, and for f16 on a device without `shader-f16`.
pub fn plan_decode(
    config: &AutoencoderConfig,
    latent_size: Size,
    limits: &DeviceLimits,
    storage: Storage,
    unscaled: bool,
    options: &DecodeOptions,
) -> Result<Plan> {
    plan_with(config, latent_size, limits, storage, unscaled, options, Weights::Host)
}

fn plan_with(
    config: &AutoencoderConfig,
    latent_size: Size,
    limits: &DeviceLimits,
    storage: Storage,
    unscaled: bool,
    options: &DecodeOptions,
    weights: Weights,
) -> Result<Plan> {
    config.validate()?;
    limits.validate()?;
    check_storage(storage, limits)?;
    check_size("size", latent_size)?;
    check_image(config.image_size(latent_size))?;
    if let Some(grid) = options.tiling.grid(latent_size) {
        let tile_options = tiled::tile_options(options);
        let plan = |size| plan_with(config, size, limits, storage, unscaled, &tile_options, weights);
        return TilePlans::new(&grid, plan).map(TilePlans::into_largest);
    }
    let graph = |size| autoencoder_kl::decoder(config, size, unscaled);
    let plan_options = PlanOptions {
        profile: options.profile,
        memory_budget: options.memory_budget,
        parking: options.parking.allowed(limits),
        weights,
        ..PlanOptions::new(storage, options.output)
    };
    match options.tiling.measured_size(latent_size) {
        Some(small) => Plan::estimated(&graph(latent_size), &graph(small), limits, &plan_options),
        None => Plan::new(&graph(latent_size), limits, &plan_options),
    }
}

/// Halves of the hardware's own type need a device that has them.
fn check_storage(storage: Storage, limits: &DeviceLimits) -> Result<()> {
    if storage != Storage::F16 || limits.shader_f16 {
        return Ok(());
    }
    Err(Error::Input {
        what: "storage".to_owned(),
        expected: "f32 or packed_f16, on a device without shader-f16".to_owned(),
        found: "f16".to_owned(),
    })
}

/// Plans decodes of one model on one device. Needs neither: it may be asked while the model is loaded, and while a decode runs.
#[derive(Debug, Clone)]
pub struct Planner {
    config: AutoencoderConfig,
    limits: DeviceLimits,
    storage: Storage,
    unscaled: bool,
    weights: Weights,
}

impl Planner {
    /// Plans decodes of a model as it will be after [`Vae::load`] with the same options.
    ///
    /// # Errors
    /// [`Error::Config`] when the scaling factor cannot be told from the files and is needed.
    pub fn new(gpu: &Gpu, checkpoint: &Checkpoint, options: LoadOptions) -> Result<Self> {
        let config = if options.unscaled { checkpoint.config() } else { checkpoint.scaled_config()? }.clone();
        Ok(Self {
            config,
            limits: gpu.limits().clone(),
            storage: options.precision.storage(gpu.limits()),
            unscaled: options.unscaled,
            weights: if options.weights_on_host { Weights::Host } else { Weights::Device },
        })
    }

    /// The model's configuration.
    pub fn config(&self) -> &AutoencoderConfig {
        &self.config
    }

    /// See [`Vae::plan`].
    ///
    /// # Errors
    /// See [`plan_decode`].
    pub fn plan(&self, latent_size: Size, options: &DecodeOptions) -> Result<Plan> {
        plan_with(&self.config, latent_size, &self.limits, self.storage, self.unscaled, options, self.weights)
    }
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

/// A plan that is allocated, and what it was made for.
#[derive(Debug)]
struct Ready {
    latent_size: Size,
    options: DecodeOptions,
    prepared: Prepared,
    fallback: Option<Fallback>,
    /// Whether the last run went through: only then is there a picture.
    complete: bool,
}

impl Ready {
    fn is_for(&self, latent_size: Size, options: &DecodeOptions) -> bool {
        self.latent_size == latent_size && self.options == *options
    }
}

impl Vae {
    /// Reads the decoder's weights, one tensor at a time, and uploads them.
    ///
    /// # Errors
    /// [`Error::MissingTensors`], [`Error::Tensor`] naming a tensor of a wrong shape, type or content, [`Error::Io`],
    /// [`Error::Device`], or [`Error::Config`] when the scaling factor cannot be told from the files and is needed.
    pub async fn load(gpu: &Gpu, checkpoint: &Checkpoint, options: LoadOptions) -> Result<Self> {
        let start = Instant::now();
        let planner = Planner::new(gpu, checkpoint, options)?;
        let weights = VaeWeights::load(gpu, checkpoint, &planner.config, planner.storage, options).await?;
        Ok(Self { gpu: gpu.clone(), planner, weights, ready: None, load_seconds: start.elapsed().as_secs_f64() })
    }

    /// The model's configuration.
    pub fn config(&self) -> &AutoencoderConfig {
        &self.planner.config
    }

    /// What plans its decodes.
    pub fn planner(&self) -> &Planner {
        &self.planner
    }

    /// How its weights and activations are stored.
    pub fn storage(&self) -> Storage {
        self.planner.storage
    }

    /// Seconds that [`Self::load`] took.
    pub fn load_seconds(&self) -> f64 {
        self.load_seconds
    }

    /// Plans a decode of latents of `latent_size` on this device. Costs no GPU memory. In tiles: the plan of those that take the most
    /// memory, which is what the decode takes; see [`Self::plan_tiles`] for all.
    ///
    /// # Errors
    /// See [`plan_decode`].
    pub fn plan(&self, latent_size: Size, options: &DecodeOptions) -> Result<Plan> {
        self.planner.plan(latent_size, options)
    }

    /// Allocates and compiles for latents of `latent_size`, unless the last decode was of that size. Decoding does this itself. In
    /// tiles: for those that take the most memory.
    ///
    /// Where the device has too little memory for the plan, a smaller one takes its place: the one returned, see [`Fallback`].
    ///
    /// # Errors
    /// See [`plan_decode`], [`Error::Device`], and [`Error::HostMemory`].
    pub async fn prepare(&mut self, latent_size: Size, options: &DecodeOptions) -> Result<&Plan> {
        let (latent_size, options) = &self.decoded_at_once(latent_size, options)?;
        if self.ready.as_ref().is_none_or(|ready| !ready.is_for(*latent_size, options)) {
            let plan = self.plan(*latent_size, options)?;
            // Free the old size before the new one is allocated: the peak is that of one plan, not of two.
            self.free_unless(*latent_size, options);
            self.ready = Some(self.allocate(*latent_size, options, plan).await?);
        }
        self.ready.as_ref().map(|ready| ready.prepared.plan()).ok_or(Error::Cancelled)
    }

    /// Frees what was prepared, unless it was for latents of `latent_size` and these options. Preparing does this itself.
    pub fn free_unless(&mut self, latent_size: Size, options: &DecodeOptions) {
        self.ready.take_if(|ready| !ready.is_for(latent_size, options));
    }

    /// Decodes image `index` of `latents`.
    ///
    /// # Errors
    /// See [`Self::decode_rows`].
    pub async fn decode(
        &mut self,
        latents: &Latents,
        index: u32,
        options: &DecodeOptions,
        control: &mut Control<'_>,
    ) -> Result<Decoded> {
        if options.output.stays() {
            return Err(Error::Input {
                what: "output".to_owned(),
                expected: "rgba8 or raw (a picture stays on the device: see decode_picture)".to_owned(),
                found: "picture".to_owned(),
            });
        }
        let mut pixels = None;
        let mut place = |rows: Rows<'_>| {
            pixels.get_or_insert_with(|| Pixels::empty(rows.image, options.output)).place(&rows);
            Ok(())
        };
        let DecodedRows { size, run, fallback } =
            self.decode_rows(latents, index, options, control, &mut place).await?;
        let pixels = pixels.unwrap_or_else(|| Pixels::empty(size, options.output));
        Ok(Decoded { size, pixels, run, fallback })
    }

    /// Decodes image `index` of `latents` and hands its rows to `sink` as they are ready, in order: the whole image is never in host
    /// memory. An error of `sink` stops the decode.
    ///
    /// # Errors
    /// [`Error::Input`] when the channels do not fit the model or there is no such image, [`Error::Cancelled`],
    /// [`Error::TooLarge`], [`Error::NotFinite`], [`Error::Device`], [`Error::HostMemory`], or what `sink` returned.
    pub async fn decode_rows(
        &mut self,
        latents: &Latents,
        index: u32,
        options: &DecodeOptions,
        control: &mut Control<'_>,
        sink: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<DecodedRows> {
        latents.check(self.config().latent_channels, index)?;
        self.expect_latents(self.planner.unscaled || latents.are_unscaled()).await?;
        if let Some(grid) = options.tiling.grid(latents.size()) {
            return self.decode_tiles(latents, index, &grid, options, control, sink).await;
        }
        let input = latents.input(index, options.tiling.measured_size(latents.size()))?;
        let size = self.prepare(latents.size(), options).await?.image;
        let mut next_row = 0;
        let mut run = self.run(&input, control, &mut next_row, sink).await;
        if let Err(error) = run.as_mut()
            && is_out_of_memory(error)
            && let Some(ready) = self.ready.take_if(|ready| ready.fallback.is_none())
        {
            let error = std::mem::replace(error, Error::Cancelled);
            self.ready = Some(self.fall_back_from(ready, error).await?);
            run = self.run(&input, control, &mut next_row, sink).await;
        }
        if matches!(run, Err(Error::Device(_))) {
            // Whatever state its buffers are in: the next decode makes new ones.
            self.ready = None;
        }
        let fallback = self.ready.as_ref().and_then(|ready| ready.fallback.clone());
        Ok(DecodedRows { size, run: run?, fallback })
    }

    /// Decodes image `index` of `latents` to a picture that stays on the device, for a canvas or to be read with [`Self::read_picture`]. It is there until
    /// something else is prepared or decoded. In place of `options.output`, `order` says how it lies.
    ///
    /// # Errors
    /// See [`Self::decode_rows`]. [`Error::Input`] for tiles, which are blended on the host.
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

    /// The picture that [`Self::decode_picture`] left on the device, and the bytes from one row to the next.
    pub fn picture(&self) -> Option<(&GpuBuffer, Bytes)> {
        let Some(Ready { prepared, complete: true, .. }) = &self.ready else { return None };
        Some((prepared.picture()?, prepared.plan().row_bytes()))
    }

    /// Reads the picture that [`Self::decode_picture`] left on the device, RGBA8 `[h, w, 4]`.
    ///
    /// # Errors
    /// [`Error::Input`] when there is none, [`Error::Device`].
    pub async fn read_picture(&mut self) -> Result<Pixels> {
        let Some(Ready { prepared, complete: true, .. }) = &mut self.ready else { return Err(no_picture()) };
        let (size, row, output) = (prepared.plan().image, prepared.plan().row_bytes().0, prepared.plan().output);
        let padded = prepared.read_picture().await?.ok_or_else(no_picture)?;
        let rows = padded.chunks_exact(usize::try_from(row).unwrap_or(usize::MAX));
        let mut bytes: Vec<u8> = rows.flat_map(|row| &row[..size.width as usize * 4]).copied().collect();
        if output == Output::Picture(ChannelOrder::Bgra) {
            bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|pixel| pixel.swap(0, 2));
        }
        Ok(Pixels::Rgba8(bytes))
    }

    /// Makes the decodes that follow undo the diffusion model's scaling, or not.
    async fn expect_latents(&mut self, unscaled: bool) -> Result<()> {
        if self.weights.expect_unscaled() == unscaled {
            return Ok(());
        }
        // What is prepared holds the factors of before.
        self.ready = None;
        self.weights.expect_latents(&self.gpu, unscaled).await
    }

    /// Runs the plan that is ready. Rows before `next_row`, which follows those handed out, were handed out by a run before.
    async fn run(
        &mut self,
        latents: &Input<'_>,
        control: &mut Control<'_>,
        next_row: &mut u32,
        sink: &mut dyn FnMut(Rows<'_>) -> Result<()>,
    ) -> Result<RunReport> {
        let Some(Ready { prepared, complete, .. }) = &mut self.ready else { return Err(Error::Cancelled) };
        *complete = false;
        let (image, output) = (prepared.plan().image, prepared.plan().output);
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
        let report = prepared.run(latents, control, &mut deliver).await?;
        *complete = true;
        Ok(report)
    }

    /// Predicted peak of the plan that was prepared last, all GPU memory included.
    pub fn predicted_peak(&self) -> Option<Bytes> {
        self.ready.as_ref().map(|ready| ready.prepared.plan().memory.peak())
    }
}

fn no_picture() -> Error {
    Error::Input {
        what: "picture".to_owned(),
        expected: "one that was decoded and is still on the device".to_owned(),
        found: "none".to_owned(),
    }
}
