//! The facade: loads a VAE, plans, decodes, encodes. The only module that uses all layers.

mod batch;
mod check;
mod clip;
mod encode;
mod every_kernel;
mod images;
mod latents;
mod manifest;
mod noise;
mod options;
mod pixels;
mod planner;
mod plans;
mod posterior;
mod reduced;
mod request;
mod run;
mod scaling;
mod tiled;
mod weights;

use web_time::Instant;

pub use self::batch::At;
#[cfg(target_arch = "wasm32")]
pub(crate) use self::clip::ClipState;
pub use self::clip::{ClipDecoder, ClipEncoder};
pub use self::encode::Encoded;
pub use self::every_kernel::{every_variant, odd_network, variants_for};
pub use self::images::Images;
pub use self::latents::Latents;
pub use self::options::{DecodeOptions, EncodeOptions, LoadOptions, Parking, Precision};
pub use self::pixels::{FrameSink, PixelFormat, Pixels, RowPixels, RowSink, Rows};
pub use self::planner::{Planner, plan};
pub use self::plans::Plans;
pub use self::posterior::Posterior;
pub(crate) use self::reduced::reduced_size;
pub use self::request::{Frames, Request};
pub use self::run::Fallback;
pub use self::scaling::scale_latents;

use self::pixels::{Frame, check_finite, place};
use self::request::Job;
use self::run::{ClipPart, Ready};
use self::tiled::{DeliverRows, Mosaic};
use self::weights::VaeWeights;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::execution::{Control, RunReport};
use crate::gpu::GpuBuffer;
use crate::io::Checkpoint;
use crate::model::config::AutoencoderConfig;
use crate::plan::{ChannelOrder, Output, Plan, PlaneExtents};
use crate::tensor::{Bytes, Size, Storage};

/// A decoded image and the times of its decode.
#[derive(Debug, Clone)]
pub struct Decoded<P = Vec<u8>> {
    /// The image's size in pixels.
    pub size: Size,
    /// The image: RGBA bytes `[h, w, 4]`, clamped (see [`PixelFormat::Rgba8`]); or floats
    /// `[c, h, w]` as the network gives them; or `()`, if a sink took the rows or the picture stays
    /// on the device.
    pub pixels: P,
    /// The times of the run.
    pub run: RunReport,
    /// The smaller plan that was used, if the device had too little memory for the first.
    pub fallback: Option<Fallback>,
}

/// A VAE whose weights are loaded for a device.
#[derive(Debug)]
pub struct Vae {
    device: Device,
    planner: Planner,
    weights: VaeWeights,
    ready: Option<Ready>,
    load_seconds: f64,
}

impl Vae {
    /// Reads the weights that `options` ask for, one tensor at a time, and uploads or keeps them.
    /// `device` is a reference to a [`Gpu`](crate::Gpu), a [`Cpu`](crate::device::Cpu) or a
    /// [`Device`].
    ///
    /// # Errors
    /// [`Error::MissingTensors`]; [`Error::Tensor`] for a tensor of a wrong shape, type or content;
    /// [`Error::Input`] for a file that has only the other half of the model; [`Error::Io`];
    /// [`Error::Device`]; [`Error::HostMemory`].
    pub async fn load(device: impl Into<Device>, checkpoint: &Checkpoint, options: LoadOptions) -> Result<Self> {
        let start = Instant::now();
        let device = device.into();
        let planner = Planner::new(&device, checkpoint, options)?;
        let weights = VaeWeights::load(&device, checkpoint, &planner).await;
        // Until then there are copies of the last weights, and buffers of a load that failed.
        device.idle().await?;
        let weights = weights?;
        Ok(Self { device, planner, weights, ready: None, load_seconds: start.elapsed().as_secs_f64() })
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
        self.config().image_size(latents.size(), latents.space(self.config()))
    }

    /// Allocates buffers and compiles kernels for `request`, unless that was the last one. Decoding
    /// and encoding do this themselves. In tiles, prepares the plan of the tiles that take the most
    /// memory. The request's output must be that of the decode, or the decode prepares again:
    /// `Rgba8` for [`Self::decode`], `Raw` for [`Self::decode_raw`], `Picture` for
    /// [`Self::decode_picture`].
    ///
    /// If the device has too little memory for the plan, a smaller one replaces it and is returned;
    /// see [`Fallback`].
    ///
    /// # Errors
    /// See [`Planner::plan`]; [`Error::Input`] for a clip, whose states come with its beginning;
    /// [`Error::Device`], and [`Error::HostMemory`].
    pub async fn prepare(&mut self, request: &Request) -> Result<&Plan> {
        if request.frames == Frames::Clip {
            return Err(Error::input("request to prepare", "one for an image", "one for a clip"));
        }
        let job = self.largest_job(request)?;
        self.prepare_job(&job).await.map(|ready| ready.prepared.plan())
    }

    /// Frees the prepared plan, unless it is the one that `request` needs, or that of one of its
    /// tiles. Preparing does this itself.
    pub fn free_unless(&mut self, request: &Request) {
        let sizes = request.tiling.grid(request.size).map(|grid| grid.sizes()).unwrap_or_default();
        let is_of = |ready: &Ready| {
            let ready = &ready.job.request;
            ready == request || sizes.iter().any(|(size, _)| *ready == request.of_tile(*size))
        };
        self.ready.take_if(|ready| !is_of(ready));
    }

    /// Frees the prepared plan. The weights stay, and the next decode or encode prepares again.
    pub fn free(&mut self) {
        self.ready = None;
    }

    /// Returns the largest job that runs at once: the whole image, or the tile that takes the most
    /// memory.
    fn largest_job(&self, request: &Request) -> Result<Job> {
        self.planner.check(request)?;
        if request.tiling.grid(request.size).is_some() {
            return Ok(self.planner.plan(request)?.largest().job(0));
        }
        Ok(Job::of_image(*request))
    }

    /// Decodes an image to RGBA bytes `[h, w, 4]`, with default options. `latents` are those of one
    /// image, or [`Latents::at`] of several.
    ///
    /// # Errors
    /// See [`Self::decode_rows`].
    pub async fn decode(&mut self, latents: impl Into<At<'_, Latents>>) -> Result<Decoded> {
        self.decode_with(latents, &DecodeOptions::default(), &mut Control::default()).await
    }

    /// Decodes an image to RGBA bytes `[h, w, 4]`. See [`Self::decode`].
    ///
    /// # Errors
    /// See [`Self::decode_rows`].
    pub async fn decode_with(
        &mut self,
        latents: impl Into<At<'_, Latents>>,
        options: &DecodeOptions,
        control: &mut Control<'_>,
    ) -> Result<Decoded> {
        self.decode_frame(latents.into(), options, control).await
    }

    /// Decodes an image to floats `[c, h, w]`, as the network gives them, about -1 to 1: some
    /// networks clamp them, most do not. See [`Self::decode`].
    ///
    /// # Errors
    /// See [`Self::decode_rows`].
    pub async fn decode_raw(
        &mut self,
        latents: impl Into<At<'_, Latents>>,
        options: &DecodeOptions,
        control: &mut Control<'_>,
    ) -> Result<Decoded<Vec<f32>>> {
        self.decode_frame(latents.into(), options, control).await
    }

    /// Decodes an image to a whole frame.
    async fn decode_frame<F: Frame>(
        &mut self,
        latents: At<'_, Latents>,
        options: &DecodeOptions,
        control: &mut Control<'_>,
    ) -> Result<Decoded<F>> {
        let mut pixels = F::default();
        let mut add = |size: Size, rows: (u32, u32), data: &[u8]| {
            place(&mut pixels, size, rows, data);
            Ok(())
        };
        let Decoded { size, run, fallback, .. } =
            self.decode_bytes(latents, F::FORMAT.into(), options, control, &mut add).await?;
        Ok(Decoded { size, pixels, run, fallback })
    }

    /// Decodes an image and hands its rows to `sink` as they are ready, in order. The whole image
    /// is never in host memory. An error of `sink` stops the decode. `latents` are those of one
    /// image, or [`Latents::at`] of several.
    ///
    /// # Errors
    /// [`Error::Input`] if the channels do not fit the model, or there is no such image; the errors
    /// of [`Planner::plan`]; [`Error::Cancelled`], [`Error::TooLarge`], [`Error::NotFinite`],
    /// [`Error::Device`], [`Error::HostMemory`], or an error of `sink`.
    pub async fn decode_rows(
        &mut self,
        latents: impl Into<At<'_, Latents>>,
        format: PixelFormat,
        options: &DecodeOptions,
        control: &mut Control<'_>,
        sink: &mut RowSink<'_>,
    ) -> Result<Decoded<()>> {
        let mut next_row = 0;
        let mut deliver = |size: Size, rows: (u32, u32), data: &[u8]| {
            // A smaller plan that begins again hands out rows that are there already.
            let Some(rows) = Rows::new(size, format, rows, data).after(next_row) else { return Ok(()) };
            let end = rows.rows.end;
            sink(rows)?;
            next_row = end;
            Ok(())
        };
        self.decode_bytes(latents.into(), format.into(), options, control, &mut deliver).await
    }

    /// Decodes an image to a picture that stays on the device, for a canvas or for
    /// [`Self::read_picture`]. The picture exists until the next prepare or decode. `order` is the
    /// order of its channels. `latents` are those of one image, or [`Latents::at`] of several.
    ///
    /// # Errors
    /// See [`Self::decode_rows`]; [`Error::Input`] for tiles, which are blended on the host.
    pub async fn decode_picture(
        &mut self,
        latents: impl Into<At<'_, Latents>>,
        order: ChannelOrder,
        options: &DecodeOptions,
        control: &mut Control<'_>,
    ) -> Result<Decoded<()>> {
        self.decode_bytes(latents.into(), Output::Picture(order), options, control, &mut |_, _, _| Ok(())).await
    }

    /// Decodes an image and hands its rows to `deliver`. If a smaller plan begins again, rows come
    /// again. For a picture that stays on the device, the data are the words of `image_check`, and
    /// not pixels. See [`Self::decode_rows`].
    ///
    /// # Errors
    /// See [`Self::decode_rows`].
    pub(crate) async fn decode_bytes(
        &mut self,
        latents: At<'_, Latents>,
        output: Output,
        options: &DecodeOptions,
        control: &mut Control<'_>,
        deliver: &mut DeliverRows<'_>,
    ) -> Result<Decoded<()>> {
        let (latents, index) = latents.checked(self.config())?;
        let request = options.request(latents.size(), latents.space(self.config()), output);
        if let Some(mosaic) = Mosaic::new(self.config(), &request) {
            return self.decode_tiles(&request, &mosaic, (latents, index), control, deliver).await;
        }
        self.planner.check(&request)?;
        let mut check = |result: PlaneExtents, rows: (u32, u32), data: &[u8]| {
            check_finite(result.size, output, rows, data)?;
            deliver(result.size, rows, data)
        };
        let inputs = |plan: &Plan| latents.input(index, &plan.inputs);
        let (run, fallback) =
            self.run_job(&Job::of_image(request), &inputs, &mut ClipPart::default(), control, &mut check).await?;
        Ok(Decoded { size: self.image_size(latents), pixels: (), run, fallback })
    }

    /// Returns the picture that [`Self::decode_picture`] left on the device, and the bytes from one
    /// row to the next. `None` if there is no picture.
    pub fn picture(&self) -> Option<(&GpuBuffer, Bytes)> {
        let Some(Ready { prepared, complete: true, .. }) = &self.ready else { return None };
        Some((prepared.picture()?, prepared.plan().row_bytes()))
    }

    /// Reads the picture that [`Self::decode_picture`] left on the device. Returns RGBA bytes `[h,
    /// w, 4]`.
    ///
    /// # Errors
    /// [`Error::Input`] if there is no picture, [`Error::Device`].
    pub async fn read_picture(&mut self) -> Result<Vec<u8>> {
        let Some(Ready { prepared, complete: true, .. }) = &mut self.ready else { return Err(no_picture()) };
        let (size, row, output) = (prepared.plan().result.size, prepared.plan().row_bytes().0, prepared.plan().output);
        let padded = prepared.read_picture().await?.ok_or_else(no_picture)?;
        let rows = padded.chunks_exact(usize::try_from(row).unwrap_or(usize::MAX));
        let mut bytes: Vec<u8> = rows.flat_map(|row| &row[..size.width as usize * 4]).copied().collect();
        if output == Output::Picture(ChannelOrder::Bgra) {
            bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|pixel| pixel.swap(0, 2));
        }
        Ok(bytes)
    }

    /// Returns the predicted peak of the plan that was prepared last, all GPU memory included.
    /// After a decode of an image in tiles, returns the largest peak of the tiles' plans.
    pub fn predicted_peak(&self) -> Option<Bytes> {
        let ready = self.ready.as_ref()?;
        Some(ready.peak_of_tiles.unwrap_or_else(|| ready.prepared.plan().memory.peak()))
    }
}

fn no_picture() -> Error {
    Error::input("picture", "one that was decoded and is still on the device", "none")
}
