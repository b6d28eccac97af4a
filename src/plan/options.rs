//! Options of a plan, besides the graph and the device.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::kernels::choice::KernelChoice;
use crate::limits::DeviceLimits;
use crate::plan::parts::Home;
use crate::tensor::{Bytes, Storage};

/// Form of the result that the host wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Output {
    /// RGBA8, clamped: a picture.
    #[default]
    Rgba8,
    /// f32 `[c, h, w]`, as the network gives it: some networks clamp it, most do not.
    Raw,
    /// f32 `[c, h, w]`, before the clamp that some networks end with. Used for tiles, which are
    /// blended first.
    Tile,
    /// 8 bits for each channel, clamped, in one buffer that stays on the device for a canvas. Rows
    /// are padded as textures require, see [`Self::row_bytes`].
    Picture(ChannelOrder),
}

/// Order in memory of the channels of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum ChannelOrder {
    /// WebGPU's `rgba8unorm`.
    #[default]
    #[serde(rename = "rgba8unorm")]
    Rgba,
    /// WebGPU's `bgra8unorm`, which canvases on most desktops prefer.
    #[serde(rename = "bgra8unorm")]
    Bgra,
}

impl Output {
    /// True if the result stays on the device.
    pub fn stays(self) -> bool {
        matches!(self, Self::Picture(_))
    }

    /// Returns the bytes of one row of a result with `width` pixels and `channels` channels, in the
    /// form of [`super::Action::Output`].
    pub fn row_bytes(self, width: u32, channels: u32) -> u64 {
        // WebGPU: alignment of bytesPerRow in a copy to a texture.
        const TEXTURE_ROW_ALIGNMENT: u64 = 256;
        let width = u64::from(width);
        match self {
            Self::Rgba8 => width * 4,
            Self::Raw | Self::Tile => width * 4 * u64::from(channels),
            Self::Picture(_) => (width * 4).next_multiple_of(TEXTURE_ROW_ALIGNMENT),
        }
    }
}

/// Options of a plan, besides the graph and the device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PlanOptions {
    /// Storage type of activations and weights.
    pub storage: Storage,
    /// Form of the result that the host wants.
    pub output: Output,
    /// Largest chunk of a tensor. Smaller chunks are freed sooner and cost more halo copies.
    pub chunk_limit: Bytes,
    /// Most bytes of transformed filters that a pass keeps, or those of one stage if they are more;
    /// `None` for two chunks. Filters that are not kept are transformed again for each chunk.
    pub filter_limit: Option<Bytes>,
    /// Most bytes of one buffer of transformed filters, in intermediates of a band.
    pub filter_part: u64,
    /// Largest chunk of the keys and values of attention, and of queries that see many frames. It
    /// is separate from `chunk_limit` because keys decide the order in which attention adds: an
    /// equal value gives the same bits.
    pub keys_limit: Bytes,
    /// True to measure the GPU time of each stage. Ignored if the device has no timestamps, or if
    /// stages take turns too often.
    pub profile: bool,
    /// Kernels and tiles to use; `None` for the choice of [`KernelChoice::for_device`].
    pub choice: Option<KernelChoice>,
    /// Limit of all GPU memory that the plan takes. The plan recomputes what does not fit, or moves
    /// it to host memory as far as `parking` and `weights` allow.
    pub memory_budget: Option<Bytes>,
    /// True to prefer less memory to speed where the plan has the choice without computing anything
    /// twice.
    pub least_memory: bool,
    /// True if activations may wait in host memory.
    pub parking: bool,
    /// Place of the weights before the plan runs.
    pub weights: Weights,
    /// States that are kept in host memory between runs.
    pub host_states: HostStates,
    /// The most latents of the clip, for networks that keep something of every one.
    pub clip_latents: u32,
    /// Bytes of weights on the device besides the plan's own. These are the weights of the other
    /// direction, if a model is loaded for both.
    pub other_weights: Bytes,
}

/// States that wait in host memory from one run to the next. The others stay on the device.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum HostStates {
    /// No state.
    #[default]
    None,
    /// All states.
    All,
    /// The states with these names, see [`StateUse`](super::StateUse).
    Of(Arc<[String]>),
}

impl HostStates {
    /// Returns the place of the state `name` between two runs.
    pub(super) fn home(&self, name: &str) -> Home {
        let on_host = match self {
            Self::None => false,
            Self::All => true,
            Self::Of(names) => names.iter().any(|known| known == name),
        };
        if on_host { Home::Host } else { Home::Device }
    }
}

/// Place of the weights before a plan runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weights {
    /// GPU memory: all weights stay there.
    #[default]
    Device,
    /// Host memory: a plan with a budget may fetch weights when it needs them.
    Host,
}

/// False in a module that computes on the CPU. There, no plan moves anything to host memory, and
/// plans are made without [`super::least::Least`], so the compiler drops the code for both.
pub(super) const MAY_MOVE: bool = cfg!(not(all(target_arch = "wasm32", feature = "cores")));

impl PlanOptions {
    /// True if activations may wait in host memory.
    pub(super) fn parks(&self) -> bool {
        self.parking && MAY_MOVE
    }

    /// True if weights are read from host memory when they are needed.
    pub(super) fn fetches_weights(&self) -> bool {
        self.weights == Weights::Host && MAY_MOVE
    }

    /// Returns the defaults for `storage` and `output`.
    pub fn new(storage: Storage, output: Output) -> Self {
        Self {
            storage,
            output,
            chunk_limit: Bytes(64 << 20),
            filter_limit: None,
            filter_part: 4,
            keys_limit: Bytes(16 << 20),
            profile: false,
            choice: None,
            memory_budget: None,
            least_memory: false,
            parking: false,
            weights: Weights::Device,
            host_states: HostStates::None,
            clip_latents: 1,
            other_weights: Bytes(0),
        }
    }

    /// Returns the kernels and tiles to use on a device with `limits`.
    pub(super) fn choice(&self, limits: &DeviceLimits) -> KernelChoice {
        self.choice.unwrap_or_else(|| KernelChoice::for_device(limits))
    }
}
