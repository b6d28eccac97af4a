//! The types that a plan consists of.

use std::ops::Range;

use arrayvec::ArrayVec;
use serde::{Serialize, Serializer};

use crate::kernels::weights::WeightLayout;
use crate::limits::DeviceLimits;
use crate::model::graph::{Weight, WeightSlice, delay};
use crate::plan::turns::{Turn, Turns};
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

/// A resource that a binding of a launch refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// A whole buffer.
    Buffer(BufferId),
    /// A whole weight.
    Weight(WeightId),
    /// A binding that the variant does not use.
    Unused,
}

/// A piece of memory that lives for some steps of the plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BufferUse {
    /// Name of the content, for people.
    pub name: String,
    /// Size of the buffer.
    pub bytes: Bytes,
    /// First step that writes and last step that uses it, by index into [`super::Plan::steps`].
    /// Filled by [`super::liveness`].
    pub live: Range<usize>,
    /// Slot that holds the buffer. Filled by [`super::memory`] or [`super::spill`].
    pub slot: SlotId,
    /// First byte in its slot. Filled by [`super::memory`] or [`super::spill`].
    pub offset: Bytes,
}

/// Extents of an input or result of a plan, planar `[frames, c, h, w]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlaneExtents {
    /// Width and height in pixels; of latents, in elements.
    pub size: Size,
    /// Channels of each frame, not padded.
    pub channels: u32,
    /// Number of frames; 1 for an image.
    pub frames: u32,
    /// Frame of the clip that is the first of these in the first part. Negative if the result lags
    /// behind the latents.
    #[serde(skip_serializing_if = "is_zero")]
    pub first: i32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

impl PlaneExtents {
    /// Extents of a plan that has no input or result yet.
    pub const NONE: Self = Self { size: Size { width: 0, height: 0 }, channels: 0, frames: 1, first: 0 };

    /// Returns the channels of all frames together.
    pub fn planes(self) -> u32 {
        self.channels * self.frames
    }

    /// Returns the number of parts of a clip after that of the last latent.
    pub fn parts_after(self) -> u32 {
        delay(self.first, self.frames)
    }

    /// Returns which of the frames exist in this part of a clip: those from the first frame of the
    /// clip to the last.
    pub fn existing(self, turn: Turn) -> Range<usize> {
        let first = u64::from(self.first.unsigned_abs());
        let frames = u64::from(self.frames);
        let start = first.saturating_sub(turn.part * frames).min(frames);
        let end = match turn.latents {
            // The last latent stands for a part's frames, and the first for one.
            Some(latents) if first > 0 => {
                (latents.saturating_sub(1) * frames + 1 + first).saturating_sub(turn.part * frames)
            }
            _ => frames,
        };
        let index = |frame: u64| usize::try_from(frame).unwrap_or(usize::MAX);
        index(start)..index(end.clamp(start, frames.max(start)))
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

/// Everything that decides the bytes of a packed weight. Uses with equal keys share one weight.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WeightKey {
    weight: Weight,
    layout: WeightLayout,
    storage: Storage,
    factor_bits: u32,
}

/// A weight that the plan needs on the GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WeightUse {
    /// Name of the tensor in diffusers' spelling; a description where no file has the tensor.
    pub name: String,
    /// Slice of the file's tensor that is used.
    pub take: WeightSlice,
    /// Layout on the GPU.
    pub layout: WeightLayout,
    /// Element type on the GPU; vectors are always f32.
    pub storage: Storage,
    /// Factor that packing applies.
    pub factor: f32,
    /// Size on the GPU.
    pub bytes: Bytes,
}

impl WeightUse {
    /// Returns the key by which equal uses of a weight are found.
    pub fn key(&self) -> WeightKey {
        let weight = Weight { name: self.name.clone(), take: self.take };
        WeightKey { weight, layout: self.layout, storage: self.storage, factor_bits: self.factor.to_bits() }
    }
}

/// A copy of a buffer in host memory, by index into [`super::Plan::parked`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ParkedId(pub usize);

/// A state that one part of a clip leaves for the next, by index into [`super::Plan::states`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct StateId(pub usize);

/// Memory that outlives a run of a plan: the last frames of the input of a convolution, or the keys
/// or values of attention for all earlier frames, as they are stored. If a group norm is applied to
/// the frames, the state also has the norm's table of factors and summands. Plans of one clip share
/// states.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateUse {
    /// Name of the convolution that reads the frames, or that makes keys or values, in diffusers'
    /// spelling.
    pub name: String,
    /// Rows of the convolution's input. Of keys and values, chunks of all frames that are kept.
    pub rows: u32,
    /// Bytes of one row of the frames that are kept.
    pub row_bytes: Bytes,
    /// Bytes of the norm's factors and summands; 0 without a group norm.
    pub table: Bytes,
    /// Factor at which the frames are stored.
    pub factor: f32,
    /// Place of the frames between two runs.
    pub home: Home,
}

impl StateUse {
    /// Returns the bytes of one buffer of frames on a device with `limits`. A buffer holds whole
    /// rows.
    pub fn piece_bytes(&self, limits: &DeviceLimits) -> Bytes {
        let rows = (limits.max_buffer_size.0 / self.row_bytes.0.max(1)).max(1);
        Bytes((self.row_bytes.0 * rows).min(self.bytes().0).max(1))
    }

    /// Returns the bytes of the frames, without the table.
    pub fn bytes(&self) -> Bytes {
        Bytes(self.row_bytes.0 * u64::from(self.rows))
    }
}

/// The place of a state between two runs. Tables of norms, a few kilobytes each, always stay on the
/// device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Home {
    /// GPU memory.
    Device,
    /// Host memory.
    Host,
}

/// A part of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum StatePart {
    /// The frames, from this byte on.
    Frames(u64),
    /// The table of factors and summands of a group norm.
    Table,
}

/// The source of a transfer from host memory to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostSource {
    /// A packed weight, by index into [`super::Plan::weights`].
    Weight(usize),
    /// A buffer's content that was parked before.
    Parked(ParkedId),
    /// Rows of an input of the plan, one channel after the other.
    Input(InputRows),
}

/// The resources that a launch binds. They lie in the step itself, without an allocation, because a
/// plan has up to a million launches. WebGPU lets a kernel have eight storage buffers by default.
pub type Bindings = ArrayVec<Resource, 8>;

fn as_list<S: Serializer>(bindings: &Bindings, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    bindings.as_slice().serialize(serializer)
}

/// The command that a step executes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Launches a kernel.
    Dispatch {
        /// Index into [`super::Plan::variants`].
        variant: usize,
        /// Workgroups along x, y, z.
        workgroups: [u32; 3],
        /// Bytes of its `Params` in [`super::Plan::params`].
        params: Range<usize>,
        /// Resources for bindings 1, 2, and so on.
        #[serde(serialize_with = "as_list")]
        bindings: Bindings,
    },
    /// Copies bytes between two buffers.
    Copy {
        /// Source and first byte.
        from: (BufferId, u64),
        /// Target and first byte.
        to: (BufferId, u64),
        /// Number of bytes.
        bytes: u64,
    },
    /// Fills a whole buffer from host memory.
    Fetch {
        /// Source in host memory.
        from: HostSource,
        /// Target.
        to: BufferId,
    },
    /// Moves a buffer's content to host memory.
    Park {
        /// Source.
        from: BufferId,
        /// Target in host memory.
        to: ParkedId,
    },
    /// Fills a whole buffer with a state that an earlier part of the clip left.
    Recall {
        /// The state.
        state: StateId,
        /// Part of the state to read.
        part: StatePart,
        /// Target.
        to: BufferId,
    },
    /// Copies a buffer's content to a state, for the next part of the clip.
    Keep {
        /// Source, from its first byte on.
        from: BufferId,
        /// The state.
        state: StateId,
        /// Part of the state to write.
        part: StatePart,
        /// Number of bytes.
        bytes: u64,
    },
    /// Hands rows of the result to the caller. A plan outputs rows in order.
    Output {
        /// Buffer that holds exactly these rows.
        from: BufferId,
        /// First image row and row after the last.
        rows: (u32, u32),
    },
}

impl Action {
    /// Returns the variant and the bindings of a launch, by index into [`super::Plan::variants`].
    pub fn dispatch(&self) -> Option<(usize, &Bindings)> {
        match self {
            Self::Dispatch { variant, bindings, .. } => Some((*variant, bindings)),
            _ => None,
        }
    }
}

/// One command of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Index into [`super::Plan::stages`].
    pub stage: usize,
    /// The command.
    pub action: Action,
    /// Multiply-adds, counted as a direct convolution or product.
    pub macs: u64,
    /// Parts of a clip in which it runs; `None` for all. See [`super::turns`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<Turns>,
}

impl Step {
    /// True if the step runs in this part of a clip.
    pub fn runs(&self, turn: Turn) -> bool {
        self.turns.is_none_or(|turns| turns.contain(turn))
    }
}

/// GPU memory that a plan takes. It counts every buffer that this crate creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Memory {
    /// Packed weights.
    pub weights: Bytes,
    /// Slots: activations and scratch.
    pub slots: Bytes,
    /// Parameters of all steps, and the buffer bound where a variant uses none.
    pub params: Bytes,
    /// States, as far as they are on the device.
    pub states: Bytes,
    /// Staging buffers for host writes and reads during the plan, see [`super::memory::Staging`].
    pub staging: Bytes,
    /// Timestamps of each stage, if profiling is requested.
    pub timestamps: Bytes,
    /// The whole picture, if it stays on the device.
    pub picture: Bytes,
}

impl Memory {
    /// Returns the sum of all fields: the predicted peak.
    pub fn peak(self) -> Bytes {
        self.weights + self.slots + self.params + self.states + self.staging + self.timestamps + self.picture
    }
}

impl std::fmt::Display for PlaneExtents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.size, self.channels)?;
        if self.frames > 1 { write!(f, "x{} frames", self.frames) } else { Ok(()) }
    }
}
