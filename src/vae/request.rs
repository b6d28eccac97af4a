//! Requests: all facts of one decode or encode, as plain data.

use serde::{Deserialize, Serialize};

use super::options::{DecodeOptions, EncodeOptions, LoadOptions, Parking, Precision};
use crate::direction::Direction;
use crate::model::blocks::Part;
use crate::model::config::LatentSpace;
use crate::plan::{HostStates, Output};
use crate::tensor::{Bytes, Size};
use crate::tiling::Tiling;

/// The kind of the content: an image, or a clip. Only [`Request::clip_latents`] tells a clip's
/// length, and few models depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Frames {
    /// One image.
    #[default]
    Image,
    /// A clip, of any number of frames by most models.
    Clip,
}

/// A request to decode or to encode: everything that a plan depends on, besides the model and the
/// device. [`Request::decode`] and [`Request::encode`] make one with all defaults.
///
/// ```
/// use wgvae::config::Family;
/// use wgvae::device::DeviceLimits;
/// use wgvae::{Bytes, LatentSpace, Request, Size, Storage};
///
/// # fn run() -> wgvae::Result<()> {
/// let whole = Request::decode(Size { width: 64, height: 64 }, LatentSpace::Model);
/// let request = Request { memory_budget: Some(Bytes(200 << 20)), ..whole };
/// let config = Family::find("sd15")?.config();
/// let plans = wgvae::plan(&config, &request, &DeviceLimits::webgpu_default(), Storage::F32)?;
/// assert!(plans.peak() <= Bytes(200 << 20));
/// # Ok(())
/// # }
/// # run().unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub struct Request {
    /// Decode or encode.
    pub direction: Direction,
    /// The size of the input: of latents for a decode, in pixels for an encode.
    pub size: Size,
    /// An image or a clip.
    #[serde(default)]
    pub frames: Frames,
    /// The space of the latents that a decode takes. Ignored by an encode, whose result is moments
    /// in the VAE's own space.
    pub latents: LatentSpace,
    /// The form of the result. [`Output::Raw`] for an encode.
    pub output: Output,
    /// Whole, or in tiles.
    #[serde(default)]
    pub tiling: Tiling,
    /// The most GPU memory to take, weights included, bytes. See [`DecodeOptions::memory_budget`].
    pub memory_budget: Option<Bytes>,
    /// True to prefer less memory to speed; see [`DecodeOptions::least_memory`].
    #[serde(default)]
    pub least_memory: bool,
    /// The rule for activations that may wait in host memory under a budget.
    #[serde(default)]
    pub parking: Parking,
    /// True to measure the GPU time of each stage, if the device can.
    #[serde(default)]
    pub profile: bool,
    /// The most frames of latents that a clip has. HunyuanVideo 1.5 plans for them, 33 if `None`,
    /// as it keeps keys and values of each; more latents are an error then. A decode by `taecvx`
    /// needs the exact number, and `taeh3` has 5n + 2.
    #[serde(default)]
    pub clip_latents: Option<u32>,
}

/// The most latents of a clip, if a request does not tell: 129 frames at four a latent.
const CLIP_LATENTS: u32 = 33;

impl Request {
    /// Makes a request to decode latents of `latent_size`, in `space`, to one picture.
    pub fn decode(latent_size: Size, space: LatentSpace) -> Self {
        DecodeOptions::default().request(latent_size, space, Output::Rgba8)
    }

    /// Makes a request to encode one image of `image_size` pixels.
    pub fn encode(image_size: Size) -> Self {
        EncodeOptions::default().request(image_size)
    }

    /// Returns the same request for a clip.
    #[must_use]
    pub fn of_clip(self) -> Self {
        Self { frames: Frames::Clip, ..self }
    }

    /// Returns the most latents of the clip.
    pub(super) fn most_latents(&self) -> u32 {
        self.clip_latents.unwrap_or(CLIP_LATENTS)
    }

    /// Returns the request for one tile of `size` latents. Tiles are blended as floats, before any
    /// clamp.
    pub(super) fn of_tile(&self, size: Size) -> Self {
        Self { size, output: Output::Tile, tiling: Tiling::Exact, ..*self }
    }

    /// Returns the parts that the request has, each with a plan. Plans may be equal.
    pub(super) fn parts(&self) -> &'static [Part] {
        match self.frames {
            Frames::Image => &[Part::Image],
            Frames::Clip => &[Part::First, Part::Next],
        }
    }
}

impl LoadOptions {
    /// Returns the options that load what `request` needs, and no more.
    pub fn for_request(request: &Request, precision: Precision) -> Self {
        Self {
            directions: request.direction.into(),
            precision,
            weights_on_host: request.memory_budget.is_some(),
            clips: request.frames == Frames::Clip,
        }
    }
}

impl DecodeOptions {
    /// Makes a request to decode latents of `latent_size`, in `space`, to one image in the form
    /// `output`.
    pub fn request(&self, latent_size: Size, space: LatentSpace, output: impl Into<Output>) -> Request {
        let Self { profile, memory_budget, least_memory, parking, tiling, clip_latents } = *self;
        Request {
            direction: Direction::Decode,
            size: latent_size,
            frames: Frames::Image,
            latents: space,
            output: output.into(),
            tiling,
            memory_budget,
            least_memory,
            parking,
            profile,
            clip_latents,
        }
    }
}

impl EncodeOptions {
    /// Makes a request to encode one image of `image_size` pixels.
    pub fn request(&self, image_size: Size) -> Request {
        let Self { profile, memory_budget, least_memory, parking, clip_latents } = *self;
        Request {
            direction: Direction::Encode,
            size: image_size,
            frames: Frames::Image,
            latents: LatentSpace::Vae,
            output: Output::Raw,
            tiling: Tiling::Exact,
            memory_budget,
            least_memory,
            parking,
            profile,
            clip_latents,
        }
    }
}

/// The work of one plan: one part of a request. Equal jobs have equal plans.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Job {
    /// The request for the whole image, or for one tile of it.
    pub(super) request: Request,
    pub(super) part: Part,
    /// The states that the clip keeps in host memory.
    pub(super) host_states: HostStates,
}

impl Job {
    /// Returns the job of a `request` for an image that is decoded or encoded whole.
    pub(super) fn of_image(request: Request) -> Self {
        Self { request, part: Part::Image, host_states: HostStates::None }
    }

    /// Returns the same job with another `budget`.
    pub(super) fn within(&self, budget: Bytes) -> Self {
        Self { request: Request { memory_budget: Some(budget), ..self.request }, ..self.clone() }
    }
}
