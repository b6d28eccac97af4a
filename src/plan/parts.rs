//! What a plan is made of.

use std::ops::Range;

use arrayvec::ArrayVec;
use serde::{Serialize, Serializer};

use crate::kernels::weights::Layout;
use crate::limits::DeviceLimits;
use crate::model::graph::{Take, Weight};
use crate::tensor::{Bytes, Size, Storage};

/// A buffer of a plan, by index into [`super::Plan::buffers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct BufferId(pub usize);

/// A weight of a plan, by index into [`super::Plan::weights`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct WeightId(pub usize);

/// A slot of a plan, by index into [`super::Plan::slots`]: one GPU buffer that several of the
/// plan's buffers use in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SlotId(pub usize);

/// What a binding of a launch refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// A buffer, from its start, as long as it is.
    Buffer(BufferId),
    /// A weight, whole.
    Weight(WeightId),
    /// The variant does not use this binding.
    Unused,
}

/// A piece of memory that lives for some steps of the plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BufferUse {
    /// What it holds, for people.
    pub name: String,
    /// How large it is.
    pub bytes: Bytes,
    /// First step that writes and last step that uses it, by index into [`super::Plan::steps`].
    /// Filled by [`super::liveness`].
    pub live: Range<usize>,
    /// Where it lies. Filled by [`super::memory`].
    pub slot: SlotId,
    /// First byte in its slot. Filled by [`super::memory`].
    pub offset: Bytes,
}

/// Extents of what goes into a plan or comes out of it, planar `[frames, c, h, w]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Planes {
    /// Pixels; of latents, elements.
    pub size: Size,
    /// Of each frame, not padded.
    pub channels: u32,
    /// One of an image.
    pub frames: u32,
}

impl Planes {
    /// Nothing yet.
    pub const NONE: Self = Self { size: Size { width: 0, height: 0 }, channels: 0, frames: 1 };

    /// Channels of all frames.
    pub fn planes(self) -> u32 {
        self.channels * self.frames
    }
}

/// Rows of one of a plan's inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct InputRows {
    /// Index into [`super::Plan::inputs`].
    pub input: usize,
    /// First row, and row after the last.
    pub rows: (u32, u32),
}

/// What two uses of a weight have to agree in to be one: everything that decides its bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WeightKey {
    weight: Weight,
    layout: Layout,
    storage: Storage,
    factor_bits: u32,
}

/// A weight that the plan needs on the GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WeightUse {
    /// Name in diffusers' spelling; of what no file has, what it is.
    pub name: String,
    /// What is taken of the file's tensor.
    pub take: Take,
    /// How it lies on the GPU.
    pub layout: Layout,
    /// Its elements' type; vectors are always f32.
    pub storage: Storage,
    /// Factor applied when it is packed.
    pub factor: f32,
    /// Its size on the GPU.
    pub bytes: Bytes,
}

impl WeightUse {
    /// See [`WeightKey`].
    pub fn key(&self) -> WeightKey {
        let weight = Weight { name: self.name.clone(), take: self.take };
        WeightKey { weight, layout: self.layout, storage: self.storage, factor_bits: self.factor.to_bits() }
    }
}

/// A copy of a buffer in host memory, by index into [`super::Plan::parked`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ParkedId(pub usize);

/// What a part of a clip keeps for the next one, by index into [`super::Plan::states`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct StateId(pub usize);

/// Memory that outlives a run of a plan: the last frames of what a convolution reads, as they are
/// stored, and where a group norm is applied to them, its factors and summands. Plans of one clip
/// share it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateUse {
    /// The convolution, in diffusers' spelling.
    pub name: String,
    /// Rows of its input.
    pub rows: u32,
    /// Bytes of one row of the frames that are kept.
    pub row_bytes: Bytes,
    /// Bytes of the factors and summands of the norm of those frames; none without one.
    pub table: Bytes,
    /// Factor that the frames are stored at.
    pub factor: f32,
    /// Where it is kept.
    pub home: Home,
}

impl StateUse {
    /// Bytes of each buffer that holds some of the frames on a device with `limits`: whole rows.
    pub fn piece_bytes(&self, limits: &DeviceLimits) -> Bytes {
        let rows = (limits.max_buffer_size.0 / self.row_bytes.0.max(1)).max(1);
        Bytes((self.row_bytes.0 * rows).min(self.bytes().0).max(1))
    }

    /// Bytes of the frames.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.row_bytes.0 * u64::from(self.rows))
    }
}

/// Where a state is between two runs. Norms' factors and summands, a few kilobytes each, always
/// stay on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Home {
    /// On the device.
    Device,
    /// In host memory.
    Host,
}

/// A part of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum StatePart {
    /// Bytes of the frames, from this one on.
    Frames(u64),
    /// What a norm makes of them.
    Table,
}

/// What comes from host memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostSource {
    /// A packed weight, by index into [`super::Plan::weights`].
    Weight(usize),
    /// What was parked.
    Parked(ParkedId),
    /// Rows of what the plan is run on, one channel after the other.
    Input(InputRows),
}

/// What a launch binds, in the step itself: a plan has up to a million of them. WebGPU lets a
/// kernel have eight storage buffers by default.
pub type Bindings = ArrayVec<Resource, 8>;

fn as_list<S: Serializer>(bindings: &Bindings, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    bindings.as_slice().serialize(serializer)
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Launches a kernel.
    Dispatch {
        /// Index into [`super::Plan::variants`].
        variant: usize,
        /// Workgroups along x, y, z.
        workgroups: [u32; 3],
        /// Where its `Params` lie in [`super::Plan::params`].
        params: Range<usize>,
        /// Bindings 1, 2, and so on.
        #[serde(serialize_with = "as_list")]
        bindings: Bindings,
    },
    /// Copies bytes between two buffers.
    Copy {
        /// Source and first byte.
        from: (BufferId, u64),
        /// Target and first byte.
        to: (BufferId, u64),
        /// How many bytes.
        bytes: u64,
    },
    /// Fills a buffer from host memory.
    Fetch {
        /// Where its content is.
        from: HostSource,
        /// The buffer, as long as it is.
        to: BufferId,
    },
    /// Keeps a buffer's content in host memory.
    Park {
        /// The buffer.
        from: BufferId,
        /// Where it goes.
        to: ParkedId,
    },
    /// Fills a buffer with what was kept by the part of the clip before.
    Recall {
        /// The state.
        state: StateId,
        /// What of it.
        part: StatePart,
        /// The buffer, as long as it is.
        to: BufferId,
    },
    /// Keeps what a buffer holds for the next part of the clip.
    Keep {
        /// The buffer, from its start.
        from: BufferId,
        /// The state.
        state: StateId,
        /// Which part of it.
        part: StatePart,
        /// How many bytes.
        bytes: u64,
    },
    /// Hands rows of the result to whoever asked for it. Plans do so in order of rows.
    Output {
        /// The buffer, as long as the rows are.
        from: BufferId,
        /// First image row and row after the last.
        rows: (u32, u32),
    },
}

/// One command of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Index into [`super::Plan::stages`].
    pub stage: usize,
    /// What it does.
    pub action: Action,
    /// Multiply-adds, as a direct convolution or product would count them.
    pub macs: u64,
}

/// GPU memory that a plan takes, all of it created by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Memory {
    /// Packed weights.
    pub weights: Bytes,
    /// Slots: activations and scratch.
    pub slots: Bytes,
    /// Parameters of all steps, and the buffer bound where a variant uses none.
    pub params: Bytes,
    /// What outlives a run, as far as it is on the device.
    pub states: Bytes,
    /// What the host writes to and reads from while the plan runs, see [`super::memory::Staging`].
    pub staging: Bytes,
    /// Timestamps of each stage, where asked for.
    pub timestamps: Bytes,
    /// The whole picture, where it stays on the device.
    pub picture: Bytes,
}

impl Memory {
    /// Everything together: the predicted peak.
    pub fn peak(self) -> Bytes {
        self.weights + self.slots + self.params + self.states + self.staging + self.timestamps + self.picture
    }
}

impl std::fmt::Display for Planes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.size, self.channels)?;
        if self.frames > 1 { write!(f, "x{} frames", self.frames) } else { Ok(()) }
    }
}
