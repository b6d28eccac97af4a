//! What distinguishes one VAE from another: the fields of diffusers' config.json, from that file,
//! from a published family, or from the shapes of the weights. Never guesses a scale: shapes alone
//! cannot tell SD from SDXL.

mod check;
mod classes;
mod families;
mod fields;
mod json;
mod latents;
mod network;
mod shapes;

pub use self::families::{FAMILIES, Family};
pub use self::json::is_supported_class;
pub use self::latents::{OwnLatents, Packing};
pub(crate) use self::network::Halves;
pub use self::network::{Kl, Network, SeedVr, Tiny, Wan};
pub use self::shapes::Derived;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::tensor::Size;

/// The network of a VAE and what its latents mean. Field names are diffusers'.
///
/// Numbers are f64, so that callers see those of config.json. Kernels compute with f32.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AutoencoderConfig {
    /// The network.
    #[serde(flatten)]
    pub network: Network,
    /// Channels of the images that are encoded, 3 for RGB.
    pub in_channels: u32,
    /// Channels of the images that are decoded, 3 for RGB.
    pub out_channels: u32,
    /// Channels of the VAE's own latents.
    pub latent_channels: u32,
    /// Side of the squares of the VAE's own latents that are one latent of the diffusion model,
    /// with as many times the channels: 2 for FLUX.2, else 1.
    pub patch: u32,
    /// How such squares lie in the diffusion model's latents.
    pub packing: Packing,
    /// What the VAE's own latents are to the network.
    pub own_latents: OwnLatents,
    /// Diffusion models see `(latents - shift_factor) * scaling_factor`.
    pub scaling_factor: f64,
    /// See `scaling_factor`. `None` where config.json has none or null: the same as 0.
    pub shift_factor: Option<f64>,
    /// Mean of each of the diffusion model's channels, where it sees `(latents - mean) / std *
    /// scaling_factor`.
    pub latents_mean: Option<Vec<f64>>,
    /// Standard deviation of each of the diffusion model's channels; there if and only if
    /// `latents_mean` is.
    pub latents_std: Option<Vec<f64>>,
    /// Where mean and deviation are the statistics of a batch norm among the weights
    /// (`bn.running_mean`, `bn.running_var`): what is added to the variance. Then they are `None`
    /// until a checkpoint has read them.
    pub batch_norm_eps: Option<f64>,
    /// Whether diffusers runs the whole model in f32 where its pipeline runs in f16: a hint that
    /// activations may overflow f16. For an `AutoencoderKL` true unless config.json denies it.
    pub force_upcast: bool,
    /// Side in pixels of the images it was trained on, from which diffusers takes the size of its
    /// tiles; `None` where neither the files nor a family say.
    pub sample_size: Option<u32>,
}

impl AutoencoderConfig {
    /// RGB images, and latents that are not scaled.
    pub fn new(network: Network, latent_channels: u32) -> Self {
        Self {
            network,
            in_channels: 3,
            out_channels: 3,
            latent_channels,
            patch: 1,
            packing: Packing::ByChannel,
            own_latents: OwnLatents::OfNetwork,
            scaling_factor: 1.0,
            shift_factor: None,
            latents_mean: None,
            latents_std: None,
            batch_norm_eps: None,
            force_upcast: false,
            sample_size: None,
        }
    }

    /// Parses diffusers' config.json. Absent fields have the defaults of diffusers' class; what
    /// this crate cannot do is an error.
    ///
    /// # Errors
    /// [`Error::Config`] naming the field.
    pub fn from_json(json: &str) -> Result<Self> {
        let config = json::parse(json)?;
        config.validate()?;
        Ok(config)
    }

    /// Checks that the fields make sense together.
    ///
    /// # Errors
    /// [`Error::Config`] naming the first that does not.
    pub fn validate(&self) -> Result<()> {
        check::check(self)
    }

    /// Image pixels along one side of a pixel of the VAE's own latents: a level doubles the size,
    /// except the last.
    pub fn spatial_factor(&self) -> u32 {
        1 << self.network.levels().saturating_sub(1).min(31)
    }

    /// Image pixels along one side of a pixel of the diffusion model's latents, or of the VAE's own
    /// (`unscaled`).
    pub fn latent_factor(&self, unscaled: bool) -> u32 {
        self.spatial_factor().saturating_mul(self.patch_side(unscaled))
    }

    /// Channels of the diffusion model's latents: the VAE's own, times those of a patch.
    pub fn model_channels(&self) -> u32 {
        self.channels(false)
    }

    /// Channels of the diffusion model's latents, or of the VAE's own (`unscaled`).
    pub fn channels(&self, unscaled: bool) -> u32 {
        self.latent_channels.saturating_mul(self.patch_side(unscaled).saturating_pow(2))
    }

    /// Size in pixels of the image that latents of this size decode to: the diffusion model's, or
    /// the VAE's own (`unscaled`).
    pub fn image_size(&self, latents: Size, unscaled: bool) -> Size {
        let factor = self.latent_factor(unscaled);
        let pixels = |extent: u32| extent.saturating_mul(factor);
        Size { width: pixels(latents.width), height: pixels(latents.height) }
    }

    /// Size of the latents that an image of `image` pixels encodes to: the diffusion model's, or
    /// the VAE's own (`unscaled`). A side of none is one of an image that is too small. Of the
    /// VAE's own latents those that fill no patch are no part of the diffusion model's.
    pub fn latent_size(&self, image: Size, unscaled: bool) -> Size {
        let factor = self.spatial_factor();
        let own = |extent: u32| if self.network.rounds_up() { extent.div_ceil(factor) } else { extent / factor };
        let (held, step) = (self.patch_side(unscaled).max(1), self.latent_step(unscaled).max(1));
        let side = |extent: u32| own(extent) / held / step * step;
        Size { width: side(image.width), height: side(image.height) }
    }

    /// The sides of these latents are multiples of this many: of 2 where patches lie unpacked, else
    /// of 1.
    pub fn latent_step(&self, unscaled: bool) -> u32 {
        if unscaled { 1 } else { self.patch / self.patch_side(false).max(1) }
    }

    /// The sides of images that are encoded without loss to these latents, and decoded from them,
    /// are multiples of this many pixels.
    pub fn image_step(&self, unscaled: bool) -> u32 {
        self.latent_factor(unscaled).saturating_mul(self.latent_step(unscaled))
    }

    /// How many factors, summands and statistics there are: one for each channel of each place in a
    /// patch.
    pub(crate) fn statistics(&self) -> u32 {
        self.latent_channels.saturating_mul(self.patch.saturating_pow(2))
    }

    /// Factor and summand of each channel that turn the diffusion model's latents into what the
    /// network takes, still in patches: `z = latents / scaling_factor + shift_factor`, or `latents
    /// * std / scaling_factor + mean` where there are statistics of each channel.
    pub fn latent_scale(&self) -> (Vec<f32>, Vec<f32>) {
        let channels = self.statistics() as usize;
        let scaling = single(self.scaling_factor);
        let factor = match &self.latents_std {
            Some(std) => std.iter().map(|&std| single(std) / scaling).collect(),
            None => vec![1.0 / scaling; channels],
        };
        let offset = match &self.latents_mean {
            Some(mean) => mean.iter().copied().map(single).collect(),
            None => vec![single(self.shift()); channels],
        };
        (factor, offset)
    }

    /// The shift of the latents, 0 where there is none.
    pub fn shift(&self) -> f64 {
        self.shift_factor.unwrap_or(0.0)
    }

    /// True if the VAE's own latents go into the network as they are.
    pub fn takes_own_latents(&self) -> bool {
        self.own_latents == OwnLatents::OfNetwork
    }

    /// Checks that it is known what the VAE's own latents are to the network.
    ///
    /// # Errors
    /// [`Error::Input`] that lists the families it may be.
    pub fn check_own_latents(&self) -> Result<()> {
        if self.own_latents != OwnLatents::Unknown {
            return Ok(());
        }
        let kind = |config: &Self| (config.network.name(), config.latent_channels);
        let fits = |family: &&Family| kind(&family.config()) == kind(self);
        let names: Vec<&str> = FAMILIES.iter().filter(fits).map(|family| family.name).collect();
        let expected = if names.is_empty() {
            format!(
                "latents of the diffusion model: no published {} has {} latent channels, so nothing says how it scales the VAE's own",
                self.network.name(),
                self.latent_channels
            )
        } else {
            format!(
                "one of {}, which scale the VAE's own latents differently: name the family (--family, family), or the file after it",
                names.join(", ")
            )
        };
        Err(Error::Input { what: "family".to_owned(), expected, found: "none".to_owned() })
    }

    /// Side of the squares of pixels that one pixel of these latents holds in its channels.
    fn patch_side(&self, unscaled: bool) -> u32 {
        if unscaled { 1 } else { self.packing.held(self.patch) }
    }

    /// The first field in which the networks (not the scales) of `self` and `other` differ, as far
    /// as `halves` of them tell.
    pub(crate) fn network_difference(&self, other: &Self, halves: Halves) -> Option<&'static str> {
        let [mine, theirs] = [&self.network, &other.network].map(|network| network.clone().seen_in(halves));
        let same = [
            ("_class_name", mine.name() == theirs.name()),
            ("latent_channels", self.latent_channels == other.latent_channels),
        ];
        let common = same.into_iter().find(|(_, same)| !same).map(|(field, _)| field);
        common.or_else(|| mine.difference(&theirs))
    }

    /// Takes over what the latents of `other` mean, and its sample size if there is none. Leaves
    /// the network.
    pub(crate) fn take_scale_of(&mut self, other: &Self) {
        let Self { patch, packing, own_latents, scaling_factor, shift_factor, batch_norm_eps, .. } = *other;
        *self = Self {
            patch,
            packing,
            own_latents,
            scaling_factor,
            shift_factor,
            batch_norm_eps,
            latents_mean: other.latents_mean.clone(),
            latents_std: other.latents_std.clone(),
            sample_size: self.sample_size.or(other.sample_size),
            ..self.clone()
        };
    }

    /// True if the diffusion model's latents mean the same to both.
    pub(crate) fn same_scale(&self, other: &Self) -> bool {
        let scale = |config: &Self| {
            (config.patch, config.packing, config.scaling_factor, config.shift(), config.batch_norm_eps)
        };
        scale(self) == scale(other) && self.latents_mean == other.latents_mean && self.latents_std == other.latents_std
    }
}

/// Rounds to the precision that kernels compute with.
///
/// A number that f32 cannot hold becomes infinite: [`check`] returns an error for it.
#[expect(clippy::cast_possible_truncation, reason = "the caller wants f32")]
pub(crate) fn single(number: f64) -> f32 {
    number as f32
}

fn invalid(field: &str, expected: impl Into<String>, found: impl ToString) -> Error {
    Error::Config { field: field.to_owned(), expected: expected.into(), found: found.to_string() }
}
