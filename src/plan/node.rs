//! What a schedule knows of a stage: how its output is cut, what it reads, and what it takes while
//! it runs.

use crate::plan::PlanOptions;
use crate::plan::partition::Partition;

/// Memory that a stage takes while it runs, bytes of each kind. Stages of one pass share the
/// largest of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scratch {
    /// Part of the model's input, as the host gives it.
    pub planes: u64,
    /// Transformed input of a Winograd convolution; or what each output pixel of another sees.
    pub v: u64,
    /// Its products with the filters.
    pub m: u64,
    /// Input rows of several chunks in one buffer.
    pub gathered: u64,
    /// The same of the frames before the input's.
    pub gathered_past: u64,
    /// Input rows after a norm, or the past's and those in one buffer.
    pub normed: u64,
    /// Frames of a chunk that are kept for the next block.
    pub kept: u64,
    /// Transformed filters.
    pub filters: u64,
    /// The largest buffer of those.
    pub filter_part: u64,
    /// Blocks of attention.
    pub attention: u64,
}

impl Scratch {
    /// The larger of each kind.
    pub fn max(self, other: Self) -> Self {
        Self {
            planes: self.planes.max(other.planes),
            v: self.v.max(other.v),
            m: self.m.max(other.m),
            gathered: self.gathered.max(other.gathered),
            gathered_past: self.gathered_past.max(other.gathered_past),
            kept: self.kept.max(other.kept),
            normed: self.normed.max(other.normed),
            filters: self.filters.max(other.filters),
            filter_part: self.filter_part.max(other.filter_part),
            attention: self.attention.max(other.attention),
        }
    }

    /// All of it but the filters.
    pub fn without_filters(self) -> u64 {
        let gathered = self.gathered + self.gathered_past;
        self.planes + self.v + self.m + gathered + self.normed + self.kept + self.attention
    }
}

/// What a stage reads of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The other stage.
    pub stage: usize,
    /// For each chunk of the reader, the chunks that it reads.
    pub spans: Vec<std::ops::Range<usize>>,
}

/// A stage, as far as its schedule depends on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// How its output is cut.
    pub partition: Partition,
    /// Bytes of one row of its output.
    pub row_bytes: u64,
    /// Multiply-adds of one row of its output.
    pub row_macs: u64,
    /// The outputs that it reads.
    pub reads: Vec<Read>,
    /// The stage whose output it replaces, chunk by chunk.
    pub replaces: Option<usize>,
    /// Whether all chunks must have been computed before anyone reads one.
    pub barrier: bool,
    /// Memory it takes while it runs.
    pub scratch: Scratch,
    /// Bytes of the moments of its output, where a norm reads it.
    pub moments: u64,
    /// Weights it needs while it runs, bytes.
    pub weights: u64,
}

/// The scratch memory of a pass over `stages`, and whether each has transformed filters of its own.
/// Where those would take too much, stages use the same memory in turn and transform their filters
/// for every chunk, which costs little.
pub(super) fn pass_scratch(nodes: &[Node], stages: &[usize], options: &PlanOptions) -> (Scratch, bool) {
    let sizes = stages.iter().fold(Scratch::default(), |sizes, stage| sizes.max(nodes[*stage].scratch));
    let filters: u64 = stages.iter().map(|stage| nodes[*stage].scratch.filters).sum();
    (sizes, filters <= sizes.filters.max(options.chunk_limit.0.saturating_mul(2)))
}
