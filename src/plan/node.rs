//! The view of a stage that scheduling needs: how its output is cut, which chunks it reads, and how
//! much memory it takes while it runs.

use std::ops::Range;

use crate::plan::PlanOptions;
use crate::plan::partition::Partition;

/// A buffer that the stages of a pass use in turn.
#[derive(Debug, Clone, Copy)]
pub enum Shared {
    /// Rows of the model's input, as the host gives them.
    Planes,
    /// Transformed input of a Winograd convolution; for an unfolded convolution, its unfolded
    /// input.
    V,
    /// The 36 Winograd products of input and filters.
    M,
    /// Input rows of several chunks, gathered in one buffer.
    Gathered,
    /// Rows of earlier frames of several chunks, gathered in one buffer.
    GatheredPast,
    /// Input rows after a norm, or past and input rows together in one buffer.
    Normed,
    /// Frames of a chunk that are kept for the next part of a clip.
    Kept,
}

impl Shared {
    /// Number of such buffers.
    pub const COUNT: usize = 7;

    /// Returns the end of the buffer's name.
    pub fn name(self) -> &'static str {
        ["planes", "v", "m", "gathered", "gathered_past", "normed", "kept"][self as usize]
    }
}

/// Scratch memory that a stage takes while it runs, in bytes. Stages of one pass share the largest
/// of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scratch {
    /// Buffers that stages use in turn, by [`Shared`].
    pub shared: [u64; Shared::COUNT],
    /// Transformed filters that are there at once.
    pub filters: u64,
    /// Largest of these filter buffers.
    pub filter_part: u64,
    /// One block of attention, and a chunk of keys and values of an earlier frame.
    pub attention: u64,
}

impl Scratch {
    /// Returns the same with `bytes` of `kind`.
    pub fn with(mut self, kind: Shared, bytes: u64) -> Self {
        self.shared[kind as usize] = bytes;
        self
    }

    /// Returns the bytes of `kind`.
    pub fn bytes(&self, kind: Shared) -> u64 {
        self.shared[kind as usize]
    }

    /// Returns the larger of each kind.
    pub fn max(self, other: Self) -> Self {
        Self {
            shared: std::array::from_fn(|kind| self.shared[kind].max(other.shared[kind])),
            filters: self.filters.max(other.filters),
            filter_part: self.filter_part.max(other.filter_part),
            attention: self.attention.max(other.attention),
        }
    }

    /// Returns the sum of all kinds except the filters.
    pub fn without_filters(self) -> u64 {
        self.shared.iter().sum::<u64>() + self.attention
    }

    /// Returns the bytes of the largest buffer that is bound as a whole.
    pub fn largest(self) -> u64 {
        self.shared.into_iter().fold(self.filter_part, u64::max)
    }
}

/// The chunks that a stage reads of another stage.
#[derive(Debug, Clone, PartialEq)]
pub struct StageRead {
    /// Stage that is read.
    pub stage: usize,
    /// Chunks that are read, for each chunk of the reader. Chunks from `count` on are the first
    /// again.
    pub spans: Vec<Range<usize>>,
    /// Number of chunks of that stage.
    pub count: usize,
}

impl StageRead {
    /// Returns the chunks that chunk `chunk` of the reader reads.
    pub fn chunks(&self, chunk: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.count;
        self.spans[chunk].clone().map(move |chunk| if chunk < count { chunk } else { chunk - count })
    }
}

/// A stage with everything that its schedule depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Chunks of its output.
    pub partition: Partition,
    /// Bytes of one row of its output.
    pub row_bytes: u64,
    /// Multiply-adds of one row of its output.
    pub row_macs: u64,
    /// Outputs that it reads.
    pub reads: Vec<StageRead>,
    /// Stage whose output it overwrites, chunk by chunk.
    pub replaces: Option<usize>,
    /// True if all chunks must be computed before any stage reads one.
    pub barrier: bool,
    /// Scratch memory that it takes while it runs.
    pub scratch: Scratch,
    /// Bytes of what is measured of its output; 0 if neither a norm nor linear attention reads it.
    pub moments: u64,
    /// Bytes of weights that it needs while it runs.
    pub weights: u64,
}

/// Returns the scratch memory of a pass over `stages`, and true if each stage has transformed
/// filters of its own. If these would take too much, the stages use one memory in turn and
/// transform their filters again for every chunk.
pub(super) fn pass_scratch(nodes: &[Node], stages: &[usize], options: &PlanOptions) -> (Scratch, bool) {
    let sizes = stages.iter().fold(Scratch::default(), |sizes, stage| sizes.max(nodes[*stage].scratch));
    let filters: u64 = stages.iter().map(|stage| nodes[*stage].scratch.filters).sum();
    let limit = options.filter_limit.map_or(options.chunk_limit.0.saturating_mul(2), |limit| limit.0);
    (sizes, filters <= sizes.filters.max(limit))
}
