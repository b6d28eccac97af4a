//! Options of calls, parsed from Python's values.

use pyo3::prelude::*;
use wgvae::config::AutoencoderConfig;
use wgvae::device::{CpuOptions, DeviceChoice, DeviceOptions};
use wgvae::images::PixelFormat;
use wgvae::tiling::TilingKind;
use wgvae::{Bytes, DecodeOptions, Device, EncodeOptions, Error, GpuOptions, LatentSpace, Named, Parking, Precision};

/// Wanted form of an encoder's output.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    /// Mode of the distribution.
    Mode,
    /// Sample from the distribution, by a seed.
    Sample(u64),
    /// The distribution itself.
    Moments,
}

/// Options of a decode or an encode.
#[derive(Debug, Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    /// True if latents are the VAE's own.
    unscaled: bool,
    /// True if a decode returns floats before clamping.
    pub(crate) floats: bool,
    memory_budget: Option<u64>,
    /// True to prefer less memory to speed.
    least_memory: bool,
    parking: String,
    /// The most latents of a clip.
    clip_latents: Option<u32>,
    /// True if an encode returns the distribution itself.
    pub(crate) moments: bool,
    /// Seed with which an encode samples from the distribution.
    seed: Option<u64>,
    /// Most pixels a side of a decoded picture: more latents than that are averaged.
    pub(crate) max_side: Option<u32>,
    tiling: String,
    /// Side of a tile, pixels.
    tile_size: Option<u32>,
    /// Overlap of tiles, pixels.
    tile_overlap: Option<u32>,
}

impl Options {
    /// True if there is a memory budget.
    pub(crate) fn has_budget(&self) -> bool {
        self.memory_budget.is_some()
    }

    /// Returns the wanted form of an encode's output.
    pub(crate) fn wanted(&self) -> Wanted {
        match (self.moments, self.seed) {
            (true, _) => Wanted::Moments,
            (false, Some(seed)) => Wanted::Sample(seed),
            (false, None) => Wanted::Mode,
        }
    }

    /// Returns the space of the latents to decode, or that an encode gives.
    pub(crate) fn space(&self) -> LatentSpace {
        LatentSpace::from_unscaled(self.unscaled)
    }

    /// Returns the space of an encode's output. Moments are in the VAE's own.
    pub(crate) fn encoded_space(&self) -> LatentSpace {
        LatentSpace::from_unscaled(self.unscaled || self.moments)
    }

    /// Returns the kind of decoded pixels.
    pub(crate) fn format(&self) -> PixelFormat {
        if self.floats { PixelFormat::Raw } else { PixelFormat::Rgba8 }
    }

    /// Converts them to options of a decode by a model of `config`.
    ///
    /// # Errors
    /// [`Error::Input`] for unknown words; see [`TilingKind::for_model`]. Names are Python's.
    pub(crate) fn decode(&self, config: &AutoencoderConfig) -> Result<DecodeOptions, Error> {
        let kind = TilingKind::named(&self.tiling)?;
        Ok(DecodeOptions {
            profile: false,
            memory_budget: self.memory_budget.map(Bytes),
            least_memory: self.least_memory,
            parking: Parking::named(&self.parking)?,
            tiling: kind
                .for_model(config, self.tile_size, self.tile_overlap)
                .map_err(|error| error.renamed(|what| what.replace(' ', "_")))?,
            clip_latents: self.clip_latents,
        })
    }

    /// Converts them to options of an encode.
    ///
    /// # Errors
    /// [`Error::Input`] for unknown words.
    pub(crate) fn encode(&self) -> Result<EncodeOptions, Error> {
        let (memory_budget, parking) = (self.memory_budget.map(Bytes), Parking::named(&self.parking)?);
        let (least_memory, clip_latents) = (self.least_memory, self.clip_latents);
        Ok(EncodeOptions { profile: false, memory_budget, least_memory, parking, clip_latents })
    }
}

/// Options that choose the device, and the precision of the model on it.
#[derive(Debug, Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Place {
    /// Kind of the device.
    device: String,
    /// Part of the adapter's name, or its index.
    adapter: Option<String>,
    /// Threads that compute, if the device is the machine's own cores.
    threads: Option<usize>,
    precision: String,
}

impl Place {
    /// Returns the precision of the model.
    ///
    /// # Errors
    /// [`Error::Input`] for an unknown name.
    pub(crate) fn precision(&self) -> Result<Precision, Error> {
        Precision::named(&self.precision)
    }

    /// Opens the device.
    ///
    /// # Errors
    /// [`Error::Input`] for an unknown name; see [`Device::open`].
    pub(crate) fn open(&self) -> Result<Device, Error> {
        let choice = DeviceChoice::named(&self.device)?;
        let shaders = (self.precision()? == Precision::Fast).then_some("precision fast");
        let gpu = GpuOptions { adapter: self.adapter.clone(), ..GpuOptions::default() };
        let cpu = CpuOptions { threads: self.threads, ..CpuOptions::default() };
        pollster::block_on(Device::open(&DeviceOptions { choice, shaders, gpu, cpu }))
    }
}
