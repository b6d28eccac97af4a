//! What calls are told, by Python's words.

use pyo3::prelude::*;
use wgvae::{Bytes, DecodeOptions, EncodeOptions, Error, Output, Parking, Precision, Tiling};

use crate::errors::wrong;

/// What is wanted of an encoder's output.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    /// The middle of the distribution.
    Mode,
    /// Drawn from it, by a seed.
    Sample(u64),
    /// The distribution.
    Moments,
}

/// How a decode or an encode runs.
#[derive(Debug, Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    /// Latents are the VAE's own.
    pub(crate) unscaled: bool,
    /// Of a decode: floats before clamping.
    floats: bool,
    memory_budget: Option<u64>,
    parking: String,
    /// Of an encode: the distribution itself.
    moments: bool,
    /// Of an encode: draws from it.
    seed: Option<u64>,
}

impl Options {
    /// Whether a decode gives floats.
    pub(crate) fn floats(&self) -> bool {
        self.floats
    }

    /// Whether there is a budget.
    pub(crate) fn has_budget(&self) -> bool {
        self.memory_budget.is_some()
    }

    /// What is wanted of an encode.
    pub(crate) fn wanted(&self) -> Wanted {
        match (self.moments, self.seed) {
            (true, _) => Wanted::Moments,
            (false, Some(seed)) => Wanted::Sample(seed),
            (false, None) => Wanted::Mode,
        }
    }

    /// True if the distribution itself is wanted.
    pub(crate) fn has_moments(&self) -> bool {
        self.moments
    }

    /// Whether what goes in or comes out has the diffusion model's scale.
    pub(crate) fn is_scaled(&self) -> bool {
        !self.unscaled && !self.moments
    }

    /// For a decode.
    ///
    /// # Errors
    /// [`Error::Input`] for words that mean nothing.
    pub(crate) fn decode(&self) -> Result<DecodeOptions, Error> {
        Ok(DecodeOptions {
            output: if self.floats { Output::Raw } else { Output::Rgba8 },
            profile: false,
            memory_budget: self.memory_budget.map(Bytes),
            parking: self.parking()?,
            tiling: Tiling::Exact,
        })
    }

    /// For an encode.
    ///
    /// # Errors
    /// [`Error::Input`] for words that mean nothing.
    pub(crate) fn encode(&self) -> Result<EncodeOptions, Error> {
        let (memory_budget, parking) = (self.memory_budget.map(Bytes), self.parking()?);
        Ok(EncodeOptions { profile: false, memory_budget, parking })
    }

    fn parking(&self) -> Result<Parking, Error> {
        match self.parking.as_str() {
            "auto" => Ok(Parking::Auto),
            "on" => Ok(Parking::On),
            "off" => Ok(Parking::Off),
            other => Err(wrong("parking", "\"auto\", \"on\" or \"off\"", format!("{other:?}"))),
        }
    }
}

/// The precision that `word` means.
///
/// # Errors
/// [`Error::Input`] where it means none.
pub(crate) fn precision(word: &str) -> Result<Precision, Error> {
    match word {
        "auto" => Ok(Precision::Auto),
        "f16" => Ok(Precision::F16),
        "f32" => Ok(Precision::F32),
        "fast" => Ok(Precision::Fast),
        other => Err(wrong("precision", "\"auto\", \"f16\", \"f32\" or \"fast\"", format!("{other:?}"))),
    }
}
