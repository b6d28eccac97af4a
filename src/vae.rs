//! The facade: load a VAE, plan a decode, decode. The only module that sees all layers.

mod tiled;

pub use self::tiled::TilePlans;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use web_time::Instant;

use crate::error::{Error, Result};
use crate::gpu::{Control, Gpu, GpuBuffer, Prepared, RunReport, Weights};
use crate::io::Checkpoint;
use crate::kernels::weights::{Layout, pack};
use crate::limits::{DeviceKind, DeviceLimits};
use crate::model::autoencoder_kl;
use crate::model::config::AutoencoderConfig;
use crate::plan::{Output, Plan, PlanOptions, WeightUse};
use crate::tensor::{Bytes, HostTensor, Size, Storage};
use crate::tiling::Tiling;

/// Precision of stored activations and weights. Arithmetic is f32 in every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// f16 on a GPU, f32 on a CPU driver, where halves only cost time.
    #[default]
    Auto,
    /// Half precision: half the memory. Packed halves where the device has no `shader-f16`.
    F16,
    /// Single precision.
    F32,
}

impl Precision {
    /// How a device with `limits` stores this precision.
    pub fn storage(self, limits: &DeviceLimits) -> Storage {
        let half = match self {
            Self::Auto => limits.kind == DeviceKind::Gpu,
            Self::F16 => true,
            Self::F32 => false,
        };
        match (half, limits.shader_f16) {
            (false, _) => Storage::F32,
            (true, true) => Storage::F16,
            (true, false) => Storage::PackedF16,
        }
    }
}

/// How a VAE is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoadOptions {
    /// Precision of weights and activations.
    pub precision: Precision,
    /// Latents are the VAE's own, already divided by the model's scaling factor, instead of as the diffusion model leaves them.
    pub unscaled: bool,
    /// Keep the packed weights in host memory, so that a plan with a budget can fetch them when they are needed.
    pub weights_on_host: bool,
}

/// How latents are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DecodeOptions {
    /// Picture or raw floats.
    pub output: Output,
    /// Measure the GPU time of each stage, where the device can.
    pub profile: bool,
    /// The most GPU memory that the decode may take, weights included. What does not fit waits in host memory; the result is
    /// that of the whole plan to rounding. Needs [`LoadOptions::weights_on_host`].
    pub memory_budget: Option<Bytes>,
    /// Whole, or in tiles to reproduce what another tool makes of the latents. In tiles, the submissions reported are those of all tiles,
    /// and count each tile's steps from 0.
    pub tiling: Tiling,
}

/// Latents of one or more images, `[n, c, h, w]`, planar f32.
#[derive(Debug, Clone, PartialEq)]
pub struct Latents {
    count: u32,
    channels: u32,
    size: Size,
    data: Vec<f32>,
}

impl Latents {
    /// Takes a tensor `[n, c, h, w]` or `[c, h, w]`.
    ///
    /// # Errors
    /// [`Error::Input`] for another rank, an empty or absurd extent, or a value that is not finite, with its place.
    pub fn new(tensor: HostTensor) -> Result<Self> {
        let found = format!("{:?}", tensor.shape);
        let wrong = |expected: &str| Error::Input {
            what: "latents".to_owned(),
            expected: expected.to_owned(),
            found: found.clone(),
        };
        let shape: Vec<u32> = tensor.shape.iter().filter_map(|&extent| u32::try_from(extent).ok()).collect();
        let (count, channels, height, width) = match *shape.as_slice() {
            [n, c, h, w] => (n, c, h, w),
            [c, h, w] => (1, c, h, w),
            _ => return Err(wrong("a shape [n, c, h, w] or [c, h, w]")),
        };
        if shape.contains(&0) {
            return Err(wrong("no axis of extent 0"));
        }
        check_size("latents", Size { width, height })?;
        if tensor.shape.iter().product::<usize>() != tensor.data.len() {
            return Err(wrong(&format!("a shape of {} elements", tensor.data.len())));
        }
        if let Some(index) = tensor.data.iter().position(|value| !value.is_finite()) {
            return Err(Error::Input {
                what: "latents".to_owned(),
                expected: "finite values".to_owned(),
                found: format!("{} at element {index}", tensor.data[index]),
            });
        }
        Ok(Self { count, channels, size: Size { width, height }, data: tensor.data })
    }

    /// Number of images.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Latent channels.
    pub fn channels(&self) -> u32 {
        self.channels
    }

    /// Width and height in latents.
    pub fn size(&self) -> Size {
        self.size
    }

    /// The latents of image `index`, `[c, h, w]`.
    fn image(&self, index: u32) -> &[f32] {
        let length = self.data.len() / self.count as usize;
        &self.data[index as usize * length..][..length]
    }
}

/// Latents beyond this many rows or columns are taken for a mistake: 16384 latents are 131072 pixels.
const MAX_LATENT_SIDE: u32 = 16_384;
/// And so are more than these altogether, twice those of an image of 8192x8192 pixels.
const MAX_LATENTS: u64 = 1 << 21;

/// Refuses sizes that nobody means.
fn check_size(what: &str, size: Size) -> Result<()> {
    let area = u64::from(size.width) * u64::from(size.height);
    if area == 0 || size.width.max(size.height) > MAX_LATENT_SIDE || area > MAX_LATENTS {
        return Err(Error::Input {
            what: what.to_owned(),
            expected: format!("1 to {MAX_LATENT_SIDE} latents each way, {MAX_LATENTS} altogether"),
            found: format!("{size} latents"),
        });
    }
    Ok(())
}

/// A decoded image.
#[derive(Debug, Clone, PartialEq)]
pub enum Pixels {
    /// `[h, w, 4]`, clamped; alpha is 255.
    Rgba8(Vec<u8>),
    /// `[3, h, w]`, about -1 to 1, not clamped.
    Raw(Vec<f32>),
}

/// One decoded image and what it took.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// Its size in pixels.
    pub size: Size,
    /// Its content.
    pub pixels: Pixels,
    /// Times.
    pub run: RunReport,
}

/// Plans a decode of latents of `latent_size`, without a device. In tiles: the plan of those that take the most memory.
///
/// # Errors
/// [`Error::TooLarge`] when something does not fit `limits`; [`Error::Input`] for an empty size.
pub fn plan_decode(
    config: &AutoencoderConfig,
    latent_size: Size,
    limits: &DeviceLimits,
    storage: Storage,
    unscaled: bool,
    options: &DecodeOptions,
) -> Result<Plan> {
    check_size("size", latent_size)?;
    if let Some(grid) = options.tiling.grid(latent_size) {
        let tile_options = tiled::tile_options(options);
        let plan = |size| plan_decode(config, size, limits, storage, unscaled, &tile_options);
        return TilePlans::new(&grid, plan).map(TilePlans::into_largest);
    }
    let graph = autoencoder_kl::decoder(config, latent_size, unscaled);
    let options = PlanOptions {
        profile: options.profile,
        memory_budget: options.memory_budget,
        ..PlanOptions::new(storage, options.output)
    };
    Plan::new(&graph, limits, &options)
}

/// Checks, from the headers of its files alone, that a model has all that a decode needs.
///
/// # Errors
/// [`Error::MissingTensors`] with all of them; [`Error::Tensor`] for the first of a wrong shape or type.
pub fn check_decoder(checkpoint: &Checkpoint) -> Result<()> {
    let wanted = weights_of(checkpoint.config(), &DeviceLimits::webgpu_default(), Storage::F32, true)?;
    let in_file = wanted.weights.iter().filter(|weight| !is_transform(weight));
    let shapes: Vec<(&str, Vec<u64>)> =
        in_file.map(|weight| (weight.name.as_str(), weight.layout.file_shape())).collect();
    checkpoint.check(shapes.iter().map(|(name, shape)| (*name, shape.as_slice())))
}

/// A VAE whose weights are on a GPU.
#[derive(Debug)]
pub struct Vae {
    gpu: Gpu,
    config: AutoencoderConfig,
    storage: Storage,
    unscaled: bool,
    /// On the GPU. With `host_weights`, only while a plan binds them.
    weights: BTreeMap<String, GpuBuffer>,
    host_weights: Option<BTreeMap<String, Arc<[u8]>>>,
    prepared: Option<(Size, DecodeOptions, Prepared)>,
    load_seconds: f64,
}

impl Vae {
    /// Reads the decoder's weights, one tensor at a time, and uploads them.
    ///
    /// # Errors
    /// [`Error::MissingTensors`], [`Error::Tensor`] naming a tensor of a wrong shape, type or content, [`Error::Io`], or
    /// [`Error::Config`] when the scaling factor cannot be told from the files and is needed.
    pub async fn load(gpu: &Gpu, checkpoint: &Checkpoint, options: LoadOptions) -> Result<Self> {
        let start = Instant::now();
        let config = if options.unscaled { checkpoint.config() } else { checkpoint.scaled_config()? }.clone();
        let storage = options.precision.storage(gpu.limits());
        let wanted = weights_of(&config, gpu.limits(), storage, options.unscaled)?;
        let in_file: Vec<(&WeightUse, Vec<u64>)> = wanted
            .weights
            .iter()
            .filter(|weight| !is_transform(weight))
            .map(|weight| (weight, weight.layout.file_shape()))
            .collect();
        checkpoint.check(in_file.iter().map(|(weight, shape)| (weight.name.as_str(), shape.as_slice())))?;
        let mut weights = BTreeMap::new();
        let mut host_weights = options.weights_on_host.then(BTreeMap::new);
        for weight in &wanted.weights {
            let packed = if is_transform(weight) {
                pack(&wanted.latent_transform, weight.layout, weight.storage, weight.factor)
            } else {
                let values = checkpoint.read_f32(&weight.name, &weight.layout.file_shape()).await?;
                check_half_range(weight, &values)?;
                pack(&values, weight.layout, weight.storage, weight.factor)
            };
            if let Some(kept) = &mut host_weights {
                kept.insert(weight.name.clone(), Arc::from(packed));
            } else {
                weights.insert(weight.name.clone(), GpuBuffer::with_data(gpu, &weight.name, &packed).await?);
            }
        }
        let load_seconds = start.elapsed().as_secs_f64();
        Ok(Self {
            gpu: gpu.clone(),
            config,
            storage,
            unscaled: options.unscaled,
            weights,
            host_weights,
            prepared: None,
            load_seconds,
        })
    }

    /// The model's configuration.
    pub fn config(&self) -> &AutoencoderConfig {
        &self.config
    }

    /// How its weights and activations are stored.
    pub fn storage(&self) -> Storage {
        self.storage
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
        if options.memory_budget.is_some() && self.host_weights.is_none() {
            return Err(Error::Input {
                what: "memory budget".to_owned(),
                expected: "a model loaded with its weights on the host".to_owned(),
                found: "one loaded without".to_owned(),
            });
        }
        plan_decode(&self.config, latent_size, self.gpu.limits(), self.storage, self.unscaled, options)
    }

    /// Allocates and compiles for latents of `latent_size`, unless the last decode was of that size. Decoding does this itself. In
    /// tiles: for those that take the most memory.
    ///
    /// # Errors
    /// See [`plan_decode`], and [`Error::Device`].
    pub async fn prepare(&mut self, latent_size: Size, options: &DecodeOptions) -> Result<&Plan> {
        let (latent_size, options) = &self.decoded_at_once(latent_size, options)?;
        let ready =
            self.prepared.as_ref().is_some_and(|(size, prepared, _)| size == latent_size && prepared == options);
        if !ready {
            let plan = Arc::new(self.plan(*latent_size, options)?);
            // Free the old size before the new one is allocated: the peak is that of one plan, not of two.
            self.prepared = None;
            self.place_weights(&plan).await?;
            let prepared = Prepared::new(&self.gpu, Arc::clone(&plan), self.weights_for(&plan)).await?;
            self.prepared = Some((*latent_size, *options, prepared));
        }
        self.prepared.as_ref().map(|(_, _, prepared)| prepared.plan()).ok_or(Error::Cancelled)
    }

    /// With weights on the host: uploads them for a plan that binds them, frees them for one that fetches them.
    async fn place_weights(&mut self, plan: &Plan) -> Result<()> {
        let Some(host) = &self.host_weights else { return Ok(()) };
        if plan.memory.weights.0 == 0 {
            self.weights.clear();
            return Ok(());
        }
        for weight in &plan.weights {
            if !self.weights.contains_key(&weight.name) {
                let buffer = GpuBuffer::with_data(&self.gpu, &weight.name, &host[&weight.name]).await?;
                self.weights.insert(weight.name.clone(), buffer);
            }
        }
        Ok(())
    }

    fn weights_for(&self, plan: &Plan) -> Weights<'_> {
        match &self.host_weights {
            Some(host) if plan.memory.weights.0 == 0 => {
                Weights::Host(plan.weights.iter().map(|weight| Arc::clone(&host[&weight.name])).collect())
            }
            _ => Weights::Gpu(plan.weights.iter().map(|weight| &self.weights[&weight.name]).collect()),
        }
    }

    /// Decodes image `index` of `latents`.
    ///
    /// # Errors
    /// [`Error::Input`] when the channels do not fit the model or there is no such image, [`Error::Cancelled`],
    /// [`Error::TooLarge`], [`Error::NotFinite`], [`Error::Device`].
    pub async fn decode(
        &mut self,
        latents: &Latents,
        index: u32,
        options: &DecodeOptions,
        control: &mut Control<'_>,
    ) -> Result<Decoded> {
        if latents.channels != self.config.latent_channels {
            return Err(Error::Input {
                what: "latents".to_owned(),
                expected: format!("{} channels, as the model has", self.config.latent_channels),
                found: format!("{} channels", latents.channels),
            });
        }
        if index >= latents.count {
            return Err(Error::Input {
                what: "image index".to_owned(),
                expected: format!("below {}", latents.count),
                found: index.to_string(),
            });
        }
        if let Some(grid) = options.tiling.grid(latents.size) {
            return self.decode_tiles(latents, index, &grid, options, control).await;
        }
        self.prepare(latents.size, options).await?;
        let Some((_, _, prepared)) = &mut self.prepared else { return Err(Error::Cancelled) };
        let size = prepared.plan().image;
        let mut pixels = empty_pixels(size, options.output);
        let mut sink = |rows: (u32, u32), data: &[u8]| place(&mut pixels, size, rows, data);
        let run = prepared.run(latents.image(index), control, &mut sink).await?;
        check_finite(&pixels, size)?;
        Ok(Decoded { size, pixels, run })
    }

    /// Predicted peak of the plan that was prepared last, all GPU memory included.
    pub fn predicted_peak(&self) -> Option<Bytes> {
        self.prepared.as_ref().map(|(_, _, prepared)| prepared.plan().memory.peak())
    }
}

/// The weights of a model do not depend on the image's size: those of a small plan are all.
fn weights_of(config: &AutoencoderConfig, limits: &DeviceLimits, storage: Storage, unscaled: bool) -> Result<Plan> {
    plan_decode(config, Size { width: 8, height: 8 }, limits, storage, unscaled, &DecodeOptions::default())
}

/// Whether a weight is made from the configuration instead of being read.
fn is_transform(weight: &WeightUse) -> bool {
    weight.name == "latents.factor_offset"
}

/// A filter beyond half precision's range would become infinite in silence.
fn check_half_range(weight: &WeightUse, values: &[f32]) -> Result<()> {
    const HALF_MAX: f32 = 65_504.0;
    let is_half = weight.storage != Storage::F32 && matches!(weight.layout, Layout::Filter { .. });
    match values.iter().position(|value| is_half && value.abs() > HALF_MAX) {
        None => Ok(()),
        Some(index) => Err(Error::Tensor {
            tensor: weight.name.clone(),
            expected: format!("values within +-{HALF_MAX} for f16; use f32"),
            found: format!("{} at element {index}", values[index]),
        }),
    }
}

fn empty_pixels(size: Size, output: Output) -> Pixels {
    let pixels = size.width as usize * size.height as usize;
    match output {
        Output::Rgba8 => Pixels::Rgba8(vec![0; pixels * 4]),
        Output::Raw => Pixels::Raw(vec![0.0; pixels * 3]),
    }
}

/// An overflow must not pass for a black picture. `image_out` leaves alpha 0 where a colour is not finite.
fn check_finite(pixels: &Pixels, size: Size) -> Result<()> {
    let plane = size.width as usize * size.height as usize;
    let first = match pixels {
        Pixels::Rgba8(bytes) => bytes.chunks_exact(4).position(|pixel| pixel[3] == 0),
        Pixels::Raw(values) => values.iter().position(|value| !value.is_finite()).map(|index| index % plane),
    };
    match first {
        None => Ok(()),
        Some(pixel) => Err(Error::NotFinite { column: pixel % size.width as usize, row: pixel / size.width as usize }),
    }
}

/// Puts one chunk of the result, `[rows, w, 4]` bytes or `[3, rows, w]` f32, into its place.
fn place(pixels: &mut Pixels, size: Size, (start, end): (u32, u32), data: &[u8]) {
    let (start, end, width) = (start as usize, end as usize, size.width as usize);
    match pixels {
        Pixels::Rgba8(bytes) => bytes[start * width * 4..end * width * 4].copy_from_slice(data),
        Pixels::Raw(values) => {
            let plane = size.height as usize * width;
            let part = (end - start) * width;
            for channel in 0..3 {
                let target = &mut values[channel * plane + start * width..][..part];
                bytemuck::cast_slice_mut::<f32, u8>(target).copy_from_slice(&data[channel * part * 4..][..part * 4]);
            }
        }
    }
}
