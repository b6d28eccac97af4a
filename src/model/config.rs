//! The configuration of a VAE: the fields of diffusers' config.json. They come from that file, from
//! a published family, or from the shapes of the weights. A scale is never guessed, because shapes
//! alone cannot tell SD from SDXL.

mod check;
mod classes;
mod dc;
mod difference;
mod families;
mod fields;
mod hunyuan_video;
mod json;
mod latents;
mod ltx2;
mod ltx2_metadata;
mod network;
mod padding;
mod shapes;
pub(crate) mod unsupported;

pub use self::dc::{Dc, DcBlock, DcLevel, DcNorm};
pub(crate) use self::difference::Difference;
use self::difference::{compared, compared_by};
pub use self::families::{FAMILIES, Family};
pub use self::hunyuan_video::HunyuanVideo;
pub use self::json::is_supported_class;
use self::latents::{H3_CHANNELS, LTX2_CHANNELS};
pub use self::latents::{LatentSpace, OwnLatents, Packing};
pub use self::ltx2::{Ltx2, Ltx2Level, SizeChange};
pub(crate) use self::network::Halves;
use self::network::NetworkFacts;
pub use self::network::{Kl, Network, SeedVr, Starts, Tiny, Wan};
pub use self::padding::PaddingMode;
pub use self::shapes::Derived;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::tensor::Size;

/// The network of a VAE and the scale of its latents. Field names are those of diffusers.
///
/// Numbers are f64, so that callers see the values of config.json. Kernels compute with f32.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AutoencoderConfig {
    /// The network.
    #[serde(flatten)]
    pub network: Network,
    /// Number of channels of the images to encode: 3 for RGB, 4 for RGB and straight opacity.
    pub in_channels: u32,
    /// Number of channels of the decoded images, as `in_channels`.
    pub out_channels: u32,
    /// Number of channels of the VAE's own latents.
    pub latent_channels: u32,
    /// Side of the square of own latent pixels that makes one latent pixel of the diffusion model,
    /// with `patch^2` times the channels. 2 for FLUX.2, TAEF2, Ideogram 4 and FIBO 2, else 1.
    pub patch: u32,
    /// Order in which such a square lies in the channels of the diffusion model's latents.
    pub packing: Packing,
    /// Relation between the VAE's own latents and the network.
    pub own_latents: OwnLatents,
    /// Factor of the latents: a diffusion model sees `(latents - shift_factor) * scaling_factor`.
    pub scaling_factor: f64,
    /// Shift of the latents, see `scaling_factor`. `None` means 0: config.json has no value, or
    /// null.
    pub shift_factor: Option<f64>,
    /// Mean of each channel of the diffusion model's latents. With it, the model sees
    /// `(latents - mean) / std * scaling_factor`.
    pub latents_mean: Option<Vec<f64>>,
    /// Standard deviation of each channel of the diffusion model's latents. Set if and only if
    /// `latents_mean` is.
    pub latents_std: Option<Vec<f64>>,
    /// Number to add to the variance, if mean and deviation come from a batch norm among the
    /// weights (`bn.running_mean`, `bn.running_var`). In that case they are `None` until a
    /// checkpoint has read them.
    pub batch_norm_eps: Option<f64>,
    /// True if diffusers runs the whole model in f32 in an f16 pipeline, a hint that activations
    /// may overflow f16. For an `AutoencoderKL` it is true unless config.json says otherwise.
    pub force_upcast: bool,
    /// Side in pixels of the training images, from which diffusers derives its tile size. `None` if
    /// neither the files nor a family tell.
    pub sample_size: Option<u32>,
}

impl AutoencoderConfig {
    /// Creates a config for RGB images, with unscaled latents.
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

    /// Parses diffusers' config.json. Absent fields get the defaults of diffusers' class.
    ///
    /// # Errors
    /// [`Error::Config`] that names the field, also for a feature that this crate does not support.
    pub fn from_json(json: &str) -> Result<Self> {
        let config = json::parse(json)?;
        config.validate()?;
        Ok(config)
    }

    /// Checks that the fields are consistent.
    ///
    /// # Errors
    /// [`Error::Config`] that names the first wrong field.
    pub fn validate(&self) -> Result<()> {
        check::check(self)
    }

    /// Lets a model of TAEHV's family decode a clip to one frame for each frame of latents. See
    /// [`crate::Checkpoint::at_preview_rate`].
    ///
    /// # Errors
    /// [`Error::Input`] for another network.
    pub fn set_preview_rate(&mut self) -> Result<()> {
        match &mut self.network {
            Network::Tiny(tiny) if tiny.is_video() => {
                tiny.temporal_downsample.fill(false);
                tiny.starts = Starts::First;
            }
            other => return Err(Error::input("preview rate", "a model of TAEHV's family", other.name())),
        }
        Ok(())
    }

    /// Sets what convolutions see beyond the borders of their input. See
    /// [`crate::Checkpoint::with_border`].
    ///
    /// # Errors
    /// [`Error::Input`] for a network that is no `AutoencoderKL`.
    pub fn set_border(&mut self, mode: PaddingMode) -> Result<()> {
        match &mut self.network {
            Network::Kl(kl) => kl.padding_mode = mode,
            other => return Err(Error::input("border", "a model of AutoencoderKL's kind", other.name())),
        }
        Ok(())
    }

    /// Returns the number of image pixels along one side of an own latent pixel. Each level except
    /// the last doubles it.
    pub fn spatial_factor(&self) -> u32 {
        1 << self.network.facts().levels.saturating_sub(1).min(31)
    }

    /// Returns the number of image pixels along one side of a latent pixel in `space`.
    pub fn latent_factor(&self, space: LatentSpace) -> u32 {
        self.spatial_factor().saturating_mul(self.patch_side(space))
    }

    /// Returns the number of pixels along one side of a latent pixel in `space` in a decode. It is
    /// twice [`Self::latent_factor`] for a decoder that doubles the size.
    pub fn decoded_factor(&self, space: LatentSpace) -> u32 {
        self.latent_factor(space).saturating_mul(self.network.facts().upscale)
    }

    /// Returns the number of channels of the diffusion model's latents: the VAE's own, times the
    /// pixels of a patch.
    pub fn model_channels(&self) -> u32 {
        self.channels(LatentSpace::Model)
    }

    /// Returns the number of channels of latents in `space`.
    pub fn channels(&self, space: LatentSpace) -> u32 {
        self.latent_channels.saturating_mul(self.patch_side(space).saturating_pow(2))
    }

    /// Returns the size in pixels of the image that latents of this size of `space`
    /// decode to.
    pub fn image_size(&self, latents: Size, space: LatentSpace) -> Size {
        let factor = self.decoded_factor(space);
        let pixels = |extent: u32| extent.saturating_mul(factor);
        Size { width: pixels(latents.width), height: pixels(latents.height) }
    }

    /// Returns the size of the latents that an image of `image` pixels encodes to, in `space`.
    /// A side is 0 if the image is too small. The diffusion model's latents
    /// leave out own latents that do not fill a patch.
    pub fn latent_size(&self, image: Size, space: LatentSpace) -> Size {
        let factor = self.spatial_factor();
        let NetworkFacts { rounds_up, image_patch, .. } = self.network.facts();
        let patch = image_patch.max(1);
        let own =
            |extent: u32| if rounds_up { (extent / patch).div_ceil((factor / patch).max(1)) } else { extent / factor };
        let (held, step) = (self.patch_side(space).max(1), self.latent_step(space).max(1));
        let side = |extent: u32| own(extent) / held / step * step;
        Size { width: side(image.width), height: side(image.height) }
    }

    /// Returns the number that the sides of latents in `space` are multiples of: 2 if patches lie
    /// unpacked, else 1.
    pub fn latent_step(&self, space: LatentSpace) -> u32 {
        if space == LatentSpace::Vae { 1 } else { self.patch / self.patch_side(LatentSpace::Model).max(1) }
    }

    /// Returns the number of pixels that the sides of decodes of these latents are multiples of.
    pub fn decoded_step(&self, space: LatentSpace) -> u32 {
        self.decoded_factor(space).saturating_mul(self.latent_step(space))
    }

    /// Returns the number of pixels that image sides are multiples of, if images encode to these
    /// latents without loss.
    pub fn image_step(&self, space: LatentSpace) -> u32 {
        self.latent_factor(space).saturating_mul(self.latent_step(space))
    }

    /// True if mean and deviation of the latents are stored among the weights.
    pub(crate) fn has_stored_statistics(&self) -> bool {
        self.batch_norm_eps.is_some() || matches!(self.network, Network::Ltx2(_))
    }

    /// Returns the number of factors, summands and statistics: one for each channel of each place
    /// in a patch.
    pub(crate) fn statistics(&self) -> u32 {
        self.latent_channels.saturating_mul(self.patch.saturating_pow(2))
    }

    /// Returns factor and summand of each channel that turn the diffusion model's latents, still in
    /// patches, into the network's input. This is `z = latents / scaling_factor + shift_factor`, or
    /// with statistics `latents * std / scaling_factor + mean`.
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

    /// Returns the shift of the latents, or 0 if there is none.
    pub fn shift(&self) -> f64 {
        self.shift_factor.unwrap_or(0.0)
    }

    /// True if the VAE's own latents are the network's input without a scale.
    pub fn takes_own_latents(&self) -> bool {
        self.own_latents == OwnLatents::OfNetwork
    }

    /// Checks that the relation between the VAE's own latents and the network is known.
    ///
    /// # Errors
    /// [`Error::Input`] that lists the families it may be.
    pub fn check_own_latents(&self) -> Result<()> {
        if self.own_latents != OwnLatents::Unknown {
            return Ok(());
        }
        let kind = |config: &Self| (config.network.name(), config.latent_channels);
        let fits = |family: &&Family| {
            kind(&family.config()) == kind(self) && family.config().own_latents != OwnLatents::Unknown
        };
        let names: Vec<&str> = FAMILIES.iter().filter(fits).map(|family| family.name).collect();
        let expected = if names.is_empty() {
            format!(
                "latents of the diffusion model, because the scale of the VAE's own latents is unknown for {} with {} latent channels",
                self.network.name(),
                self.latent_channels
            )
        } else {
            // "taehv" names a model and the repository of all, so names of files do not count.
            let is_video = matches!(&self.network, Network::Tiny(tiny) if tiny.is_video());
            let or_name = if is_video { "" } else { ", or use its name in the name of the file" };
            format!(
                "one of {}, which scale the VAE's own latents differently: state the family (--family, family){or_name}",
                names.join(", ")
            )
        };
        Err(Error::input("family", expected, "none"))
    }

    /// Returns the space of latents with `channels` channels in `ComfyUI`'s files for this model.
    /// They are the VAE's own, because the sampler has already undone the diffusion model's scale.
    /// Only latents of LTX-2, `MiniMax-H3` and `SeedVR2`, and packed ones, of FLUX.2 and its
    /// relatives, keep that scale: there, `ComfyUI`'s VAE undoes it.
    pub fn space_in_comfyui(&self, channels: u32) -> LatentSpace {
        let is_packed = self.patch_side(LatentSpace::Model) > 1 && channels == self.model_channels();
        let keeps_scale = match self.network {
            Network::Ltx2(_) | Network::SeedVr(_) => true,
            Network::Tiny(_) => [LTX2_CHANNELS, H3_CHANNELS].contains(&self.latent_channels),
            Network::Kl(_) | Network::Wan(_) | Network::HunyuanVideo(_) | Network::Dc(_) => false,
        };
        LatentSpace::from_unscaled(!is_packed && !keeps_scale)
    }

    /// True if the encoder gives a distribution, and not the latents themselves.
    pub fn has_distribution(&self) -> bool {
        self.network.facts().has_moments
    }

    /// Returns the side of the square of pixels that one latent pixel holds in its channels.
    pub(crate) fn patch_side(&self, space: LatentSpace) -> u32 {
        if space == LatentSpace::Vae { 1 } else { self.packing.held(self.patch) }
    }

    /// Returns the first field in which the networks (not the scales) of `self` and `other` differ.
    /// Compares only what `halves` of them show.
    pub(crate) fn network_difference(&self, other: &Self, halves: Halves) -> Option<Difference> {
        let [mine, theirs] = [&self.network, &other.network].map(|network| network.clone().seen_in(halves));
        let latents = [&self.latent_channels, &other.latent_channels];
        compared("_class_name", mine.name() == theirs.name(), [&mine.name(), &theirs.name()])
            .or_else(|| compared("latent_channels", latents[0] == latents[1], latents.map(|count| count as _)))
            .or_else(|| compared_by("in_channels", self.in_channels == other.in_channels || !halves.encoder))
            .or_else(|| compared_by("out_channels", self.out_channels == other.out_channels || !halves.decoder))
            .or_else(|| mine.difference(&theirs))
    }

    /// Takes over the latent scale of `other`, its starts of clips, and its sample size if none is
    /// set. Keeps the rest of the network.
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
        if let (Network::Tiny(tiny), Network::Tiny(other)) = (&mut self.network, &other.network) {
            tiny.starts = other.starts;
        }
    }

    /// Takes over from `stored` whether the filters have an axis of time. Weights of Wan 2.1's
    /// network exist with it and without it, and no config.json tells.
    pub(crate) fn take_time_of(&mut self, stored: &Self) {
        if let (Network::Wan(wan), Network::Wan(stored)) = (&mut self.network, &stored.network)
            && !wan.is_residual
            && wan.is_video != stored.is_video
        {
            wan.is_video = stored.is_video;
            wan.temperal_downsample.clone_from(&stored.temperal_downsample);
        }
    }

    /// True if both configs have the same scale of the diffusion model's latents.
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
