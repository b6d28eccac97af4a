//! What a plan is made for, besides the graph and the device.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::kernels::choice::Choice;
use crate::limits::DeviceLimits;
use crate::plan::parts::Home;
use crate::tensor::{Bytes, Storage};

/// What the host wants back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Output {
    /// RGBA8, clamped: a picture.
    #[default]
    Rgba8,
    /// f32 `[c, h, w]`, as the network gives it: some clamp it, most do not.
    Raw,
    /// f32 `[c, h, w]`, before the clamp that some networks end with: a tile, which is blended with
    /// others first.
    Tile,
    /// 8 bits a channel, clamped, in one buffer that stays on the device: for a canvas. Rows are
    /// padded as textures want it, see [`Self::row_bytes`].
    Picture(ChannelOrder),
}

/// In which order the channels of a picture lie in memory.
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
    /// Whether the result stays on the device.
    pub fn stays(self) -> bool {
        matches!(self, Self::Picture(_))
    }

    /// Bytes of a row of a result of `width` pixels and `channels`, as [`super::Action::Output`]
    /// hands it over.
    pub fn row_bytes(self, width: u32, channels: u32) -> u64 {
        // WebGPU: bytesPerRow of a copy to a texture.
        const TEXTURE_ROW_ALIGNMENT: u64 = 256;
        let width = u64::from(width);
        match self {
            Self::Rgba8 => width * 4,
            Self::Raw | Self::Tile => width * 4 * u64::from(channels),
            Self::Picture(_) => (width * 4).next_multiple_of(TEXTURE_ROW_ALIGNMENT),
        }
    }
}

/// What a plan is made for, besides the graph and the device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PlanOptions {
    /// How activations and weights are stored.
    pub storage: Storage,
    /// What the host wants back.
    pub output: Output,
    /// Largest chunk of a tensor. Smaller chunks are freed sooner and cost more halo copies.
    pub chunk_limit: Bytes,
    /// Largest chunk of the keys and values of attention. Of its own, because it decides in which
    /// order attention adds: with the same, the result is the same to the bit.
    pub keys_limit: Bytes,
    /// Measure the GPU time of each stage. Ignored where the device has no timestamps, or stages
    /// take turns too often.
    pub profile: bool,
    /// Which kernels and tiles to use; `None` for what measured best on devices of this kind.
    pub choice: Option<Choice>,
    /// The most GPU memory the plan may take, all of it. What does not fit is computed again, or
    /// waits in host memory as far as the next two allow.
    pub memory_budget: Option<Bytes>,
    /// Whether activations may wait in host memory.
    pub parking: bool,
    /// Where the weights are before the plan runs.
    pub weights: Weights,
    /// What of that which outlives a run is kept in host memory.
    pub host_states: HostStates,
    /// Weights that are on the device beside the plan's own: those of the other direction, where a
    /// model is loaded for both.
    pub other_weights: Bytes,
}

/// Which states wait in host memory from one run to the next. The others stay on the device.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum HostStates {
    /// None of them.
    #[default]
    None,
    /// All of them.
    All,
    /// Those of these names: see [`StateUse`](super::StateUse).
    Of(Arc<BTreeSet<String>>),
}

impl HostStates {
    /// Where the state `name` is kept.
    pub(super) fn home(&self, name: &str) -> Home {
        let on_host = match self {
            Self::None => false,
            Self::All => true,
            Self::Of(names) => names.contains(name),
        };
        if on_host { Home::Host } else { Home::Device }
    }
}

/// Where weights are before a plan runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weights {
    /// On the device, all of them, for good.
    #[default]
    Device,
    /// In host memory: a plan with a budget may fetch them when it needs them.
    Host,
}

impl PlanOptions {
    /// The defaults for `storage` and `output`.
    pub fn new(storage: Storage, output: Output) -> Self {
        Self {
            storage,
            output,
            chunk_limit: Bytes(64 << 20),
            keys_limit: Bytes(16 << 20),
            profile: false,
            choice: None,
            memory_budget: None,
            parking: false,
            weights: Weights::Device,
            host_states: HostStates::None,
            other_weights: Bytes(0),
        }
    }

    /// The kernels and tiles to use on a device with `limits`.
    pub(super) fn choice(&self, limits: &DeviceLimits) -> Choice {
        self.choice.unwrap_or_else(|| Choice::for_device(limits))
    }
}
