//! The state from which nodes are made: the stages before, and the division of the next output into
//! chunks.

use crate::error::{Error, Result};
use crate::kernels::WORKGROUP;
use crate::kernels::choice::KernelChoice;
use crate::limits::DeviceLimits;
use crate::model::graph::{TensorId, Window};
use crate::ordered::Map;
use crate::plan::PlanOptions;
use crate::plan::fused::{Fused, Stage};
use crate::plan::node::{Node, Scratch, StageRead};
use crate::plan::partition::{self, Partition, RowRange};
use crate::tensor::Bytes;

use super::moments::Runs;

/// The rows that a stage reads for the rows that it writes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reach {
    /// Equal rows.
    Same,
    /// Rows that a filter reads. If `doubled`, the tensor that is read has half the height.
    Filter { window: Window, doubled: bool },
    /// Rows of a tensor whose height is smaller by this factor.
    Grown(u32),
    /// All rows.
    All,
}

/// The nodes of the stages so far, while nodes are made in order.
#[derive(Debug)]
pub(in crate::plan) struct Sizing<'a> {
    pub(super) fused: &'a Fused,
    pub(super) limits: &'a DeviceLimits,
    pub(super) options: &'a PlanOptions,
    pub(super) choice: KernelChoice,
    /// Nodes of the stages so far.
    nodes: Vec<Node>,
    /// Stage that produces each tensor.
    producers: Map<TensorId, usize>,
}

impl<'a> Sizing<'a> {
    pub(in crate::plan) fn new(fused: &'a Fused, limits: &'a DeviceLimits, options: &'a PlanOptions) -> Self {
        let choice = options.choice(limits);
        Self { fused, limits, options, choice, nodes: Vec::new(), producers: Map::new() }
    }

    /// Adds the node of `stage`, the next stage.
    pub(in crate::plan) fn push(&mut self, stage: &Stage, node: Node) {
        if let Some(output) = stage.output() {
            self.producers.insert(output, self.nodes.len());
        }
        self.nodes.push(node);
    }

    /// Returns the nodes so far.
    pub(in crate::plan) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(in crate::plan) fn into_nodes(self) -> Vec<Node> {
        self.nodes
    }

    /// Returns the stage that produces `tensor`.
    pub(super) fn producer(&self, tensor: TensorId) -> usize {
        self.producers[&tensor]
    }

    /// Returns the chunks of `tensor`.
    pub(super) fn partition(&self, tensor: TensorId) -> &Partition {
        &self.nodes[self.producer(tensor)].partition
    }

    /// Returns the bytes of one row of `tensor`.
    pub(super) fn row_bytes(&self, tensor: TensorId) -> u64 {
        self.fused.row_bytes(tensor, self.options.storage)
    }

    /// Returns the chunks of `tensor` that a stage reads whose output is cut like `reader`.
    pub(super) fn read(&self, reader: &Partition, tensor: TensorId, reach: Reach) -> StageRead {
        let source = self.partition(tensor);
        let span = |chunk: usize| match reach {
            Reach::Same => source.holding(reader.chunk(chunk)),
            Reach::Filter { window, doubled } => {
                source.holding(partition::reach(reader.chunk(chunk), source.height, window, doubled))
            }
            Reach::Grown(side) => {
                let RowRange { start, end } = reader.chunk(chunk);
                source.holding(RowRange { start: start / side, end: end.div_ceil(side) })
            }
            Reach::All => 0..source.count(),
        };
        let spans = (0..reader.count()).map(span).collect();
        StageRead { stage: self.producer(tensor), spans, count: source.count() }
    }

    /// Returns a node that stores `output` and has no work or scratch memory yet. If a norm or
    /// linear attention reads `output`, the node counts what launches of their own measure.
    pub(super) fn storing(&self, output: TensorId, partition: Partition, reads: Vec<StageRead>) -> Node {
        let shape = self.fused.shape(output);
        let runs = Runs::of(self.fused, output);
        let moments = runs.map_or(0, |runs| runs.bytes(shape.width, &partition));
        Node {
            partition,
            row_bytes: self.row_bytes(output),
            row_macs: 0,
            reads,
            replaces: None,
            barrier: runs.is_some(),
            scratch: Scratch::default(),
            moments,
            weights: 0,
        }
    }

    /// Cuts `tensor`, which is made of `input` or, if that is `None`, of the host's input. `given`
    /// is the bytes of the host's input for each row, or 0.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the fewest rows exceed a binding or a dispatch.
    pub(super) fn cut(&self, tensor: TensorId, input: Option<TensorId>, given: u64) -> Result<Partition> {
        let shape = self.fused.shape(tensor);
        let hard_limit = self.limits.largest_bound_buffer();
        let most_invocations = u64::from(self.limits.max_compute_workgroups_per_dimension) * u64::from(WORKGROUP);
        let per_row = u64::from(shape.width) * u64::from(if input.is_none() { shape.pixel4() } else { shape.frames });
        let row_bytes = self.row_bytes(tensor);
        let mut wanted =
            if self.fused.is_cut_as_keys(tensor) { self.options.keys_limit } else { self.options.chunk_limit };
        if let Some(input) = input {
            let source = self.fused.shape(input);
            // A tensor of few channels is cut like its input. Otherwise one chunk of it would need
            // many chunks of the input at once.
            if shape.channels * 4 < source.channels {
                let rows = u64::from(self.partition(input).rows) * u64::from(shape.height) / u64::from(source.height);
                wanted = wanted.min(Bytes(row_bytes * rows));
            }
        }
        let mut reachable = Bytes(row_bytes * (most_invocations / per_row));
        if given > 0 {
            // The host's rows may have more bytes than the stored rows.
            let stored = |bytes: Bytes| Bytes((bytes.0 / given).saturating_mul(row_bytes));
            (reachable, wanted) = (reachable.min(stored(hard_limit)), wanted.min(stored(wanted)));
        }
        // A chunk is padded by up to three pixels.
        let padding = row_bytes / u64::from(shape.width) * 3;
        let limit = Bytes(hard_limit.0.saturating_sub(padding)).min(reachable);
        Partition::new(shape.height, Bytes(row_bytes), wanted, limit).map_err(|error| match error {
            Error::TooLarge { what, needed, .. } => {
                Error::TooLarge { what, needed: Bytes(needed.0 + padding), limit: hard_limit.min(reachable) }
            }
            other => other,
        })
    }
}
