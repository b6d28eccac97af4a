//! The scratch memory of a pass. A buffer is made when a stage first needs it, as large as the
//! largest need of any stage of the pass.

use std::ops::Range;

use crate::ordered::Map;
use crate::plan::node::{Node, Scratch, Shared, pass_scratch};
use crate::plan::{BufferId, PlanOptions, Resource};

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
    /// Most that any stage of the pass needs.
    pub(super) sizes: Scratch,
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
}
