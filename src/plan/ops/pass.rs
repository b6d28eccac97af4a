//! The scratch memory of a pass. A buffer is made when a stage first needs it, as large as the
//! largest need of any stage of the pass.

use std::ops::Range;

use crate::ordered::Map;
use crate::plan::node::{Node, Scratch, pass_scratch};
use crate::plan::{BufferId, PlanOptions, Resource};

/// Scratch memory that the stages of a pass use in turn.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shared {
    Planes,
    V,
    M,
    Gathered,
    GatheredPast,
    Normed,
    Kept,
}

impl Shared {
    const COUNT: usize = 7;

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Planes => "planes",
            Self::V => "v",
            Self::M => "m",
            Self::Gathered => "gathered",
            Self::GatheredPast => "gathered_past",
            Self::Kept => "kept",
            Self::Normed => "normed",
        }
    }

    fn bytes(self, sizes: &Scratch) -> u64 {
        match self {
            Self::Planes => sizes.planes,
            Self::V => sizes.v,
            Self::M => sizes.m,
            Self::Gathered => sizes.gathered,
            Self::GatheredPast => sizes.gathered_past,
            Self::Kept => sizes.kept,
            Self::Normed => sizes.normed,
        }
    }
}

/// The transformed filters of some output channels.
#[derive(Debug, Clone)]
pub(super) struct FilterPart {
    /// Filters before the transform.
    pub(super) weight: Resource,
    /// All output channels / 4 of that weight.
    pub(super) of_weight: Range<u32>,
    pub(super) buffer: BufferId,
    /// First output channel / 4.
    pub(super) column0: u32,
    /// Output channels / 4.
    pub(super) columns4: u32,
    /// Blocks of columns, see [`crate::kernels::choice::Products::block_columns4`].
    pub(super) blocks: u32,
}

/// The scratch memory of one block of attention.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    /// Most queries.
    pub(super) queries: u32,
    /// Most keys / 4.
    pub(super) row: u32,
    pub(super) scores: BufferId,
    pub(super) probabilities: BufferId,
    pub(super) accumulated: BufferId,
    pub(super) state: BufferId,
    pub(super) row_factors: BufferId,
}

/// The scratch memory of a pass that was made so far.
#[derive(Debug, Default)]
pub(super) struct PassScratch {
    sizes: Scratch,
    pub(super) shared: [Option<BufferId>; Shared::COUNT],
    /// True if each stage has filters of its own. Otherwise the stages use one memory in turn.
    pub(super) own_filters: bool,
    /// Transformed filters of each stage; if the memory is shared, only those of the last stage.
    pub(super) filters: Map<usize, Vec<FilterPart>>,
    /// Buffers of transformed filters that stages use in turn.
    pub(super) shared_filters: Vec<BufferId>,
    pub(super) attention: Option<Block>,
    /// Buffers for keys and values of earlier frames, by bytes of a chunk.
    pub(super) earlier: Map<u64, [BufferId; 2]>,
    /// Moments of the goal, and number of runs.
    pub(super) moments: Option<(BufferId, u64)>,
}

impl PassScratch {
    /// Begins a pass over `stages`.
    pub(super) fn new(nodes: &[Node], stages: &[usize], options: &PlanOptions) -> Self {
        let (sizes, own_filters) = pass_scratch(nodes, stages, options);
        Self { sizes, own_filters, ..Self::default() }
    }

    /// Returns the bytes of the scratch buffer `kind`.
    pub(super) fn shared_bytes(&self, kind: Shared) -> u64 {
        kind.bytes(&self.sizes)
    }

    /// Returns the bytes of a buffer of transformed filters that stages use in turn.
    pub(super) fn filter_part_bytes(&self) -> u64 {
        self.sizes.filter_part
    }
}
