//! Makes the nodes of a schedule from fused stages.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::kernels::WORKGROUP;
use crate::kernels::choice::{Choice, Way};
use crate::kernels::group_norm::MOMENTS_VEC4_BYTES;
use crate::limits::DeviceLimits;
use crate::model::graph::{TensorId, Transform, Window};
use crate::plan::fused::{Conv, Fused, Residual, Role, Stage};
use crate::plan::node::{Node, Read, Scratch};
use crate::plan::partition::{self, Partition, Rows};
use crate::plan::tiles::TileGrid;
use crate::plan::unfolding::Unfolding;
use crate::plan::ways::normalises_before;
use crate::plan::{PlanOptions, bounds, lower};
use crate::tensor::Bytes;

/// The nodes of `fused`, one for each stage, in their order.
///
/// # Errors
/// [`crate::Error::TooLarge`] when four rows of a tensor exceed a binding; [`crate::Error::Input`] when there would be too much of anything.
pub fn nodes(fused: &Fused, limits: &DeviceLimits, options: &PlanOptions) -> Result<Vec<Node>> {
    let mut making = Making { fused, limits, options, choice: options.choice(limits), stages: BTreeMap::new() };
    let mut nodes: Vec<Node> = Vec::new();
    for (index, stage) in fused.stages.iter().enumerate() {
        let node = making.node(stage, &nodes)?;
        nodes.push(node);
        // Early: what a stage reads of a tensor in a million chunks would take more memory than the plan.
        bounds::check(&nodes)?;
        if let Some(output) = stage.output() {
            making.stages.insert(output, index);
        }
    }
    Ok(nodes)
}

/// How far a stage reads beyond the rows it writes.
#[derive(Debug, Clone, Copy)]
enum Reach {
    /// The same rows.
    Same,
    /// What a filter reads; with `doubled`, of a tensor of half the height.
    Filter { window: Window, doubled: bool },
    /// All rows.
    All,
}

/// What chunks of a tensor cut like `reader` read of one cut like `source`, which stage `stage` produces.
fn read(reader: &Partition, source: &Partition, stage: usize, reach: Reach) -> Read {
    let span = |chunk: usize| match reach {
        Reach::Same => source.holding(reader.chunk(chunk)),
        Reach::Filter { window, doubled } => {
            source.holding(partition::reach(reader.chunk(chunk), source.height, window, doubled))
        }
        Reach::All => 0..source.count(),
    };
    Read { stage, spans: (0..reader.count()).map(span).collect() }
}

struct Making<'a> {
    fused: &'a Fused,
    limits: &'a DeviceLimits,
    options: &'a PlanOptions,
    choice: Choice,
    /// The stage that produces each tensor.
    stages: BTreeMap<TensorId, usize>,
}

impl Making<'_> {
    fn node(&self, stage: &Stage, before: &[Node]) -> Result<Node> {
        match stage {
            Stage::Input { transform, output } => {
                let partition = self.partition(*output, None, self.planes_row_bytes(transform, *output))?;
                let mut node = self.with_output(*output, partition, Vec::new());
                let largest = node.partition.chunk(0).count();
                node.scratch.planes = lower::planes_bytes(self.fused.shape(*output), transform, largest);
                Ok(node)
            }
            Stage::Conv(conv) => self.conv(conv, before),
            Stage::Attention { inputs: [query, key, value], output, .. } => {
                let [query, key, value] = [query, key, value].map(|tensor| self.stages[tensor]);
                let partition = before[query].partition.clone();
                let inputs = [(query, Reach::Same), (key, Reach::All), (value, Reach::All)];
                let reads =
                    inputs.map(|(input, reach)| read(&partition, &before[input].partition, input, reach)).to_vec();
                let mut node = self.with_output(*output, partition, reads);
                let shape = self.fused.shape(*output);
                node.row_macs *= u64::from(shape.width) * u64::from(shape.height) * u64::from(shape.channels) * 2;
                let partitions = (&before[query].partition, &before[key].partition);
                node.scratch.attention = lower::attention_scratch(shape, partitions, self.options.storage);
                Ok(node)
            }
            Stage::Output { input, .. } => {
                let source = self.stages[input];
                let shape = self.fused.shape(*input);
                let partition = before[source].partition.clone();
                let reads = vec![read(&partition, &partition, source, Reach::Same)];
                Ok(Node {
                    partition,
                    row_bytes: self.options.output.row_bytes(shape.width, shape.channels),
                    row_macs: 0,
                    reads,
                    replaces: None,
                    barrier: false,
                    scratch: Scratch::default(),
                    moments: 0,
                    weights: 0,
                })
            }
        }
    }

    fn conv(&self, conv: &Conv, before: &[Node]) -> Result<Node> {
        let input = self.stages[&conv.input];
        let (input_shape, shape) = (self.fused.shape(conv.input), self.fused.shape(conv.output));
        let replaces = match conv.residual {
            Some(Residual::InPlace(residual)) => Some(self.stages[&residual]),
            Some(Residual::Shortcut { .. }) | None => None,
        };
        let partition = match replaces {
            Some(replaced) => before[replaced].partition.clone(),
            None => self.partition(conv.output, Some((&before[input].partition, conv.input)), 0)?,
        };
        let reach = Reach::Filter { window: conv.window, doubled: conv.prologue.doubling.is_some() };
        let mut reads = vec![read(&partition, &before[input].partition, input, reach)];
        let read_shape = conv.read_shape(input_shape);
        let mut taps = u64::from(conv.window.side * conv.window.side) * u64::from(read_shape.channels4());
        if let Some(Residual::Shortcut { input, .. }) = conv.residual {
            let stage = self.stages[&input];
            reads.push(read(&partition, &before[stage].partition, stage, Reach::Same));
            taps += u64::from(self.fused.shape(input).channels4());
        }
        let mut node = Node { replaces, ..self.with_output(conv.output, partition, reads) };
        node.row_macs *= taps * u64::from(shape.channels4()) * 16;
        // Bias and the like are not worth counting.
        let weight_bytes = taps * u64::from(shape.channels4()) * 4 * self.options.storage.vec4_bytes();
        node.weights = weight_bytes;
        node.scratch = self.conv_scratch(conv, &node.partition, &before[input].partition);
        if self.choice.way_of(conv, read_shape, shape) == Way::Winograd && node.moments > 0 {
            let grid = TileGrid::new(read_shape, shape, &self.choice, self.limits);
            node.moments = grid.runs() * u64::from(shape.channels4()) * MOMENTS_VEC4_BYTES;
        }
        Ok(node)
    }

    /// A node that produces `output`. Its multiply-adds are so far those of one per pixel.
    fn with_output(&self, output: TensorId, partition: Partition, reads: Vec<Read>) -> Node {
        let shape = self.fused.shape(output);
        let measured = self.fused.norm_of(output).is_some();
        let runs = if measured { lower::stats_runs(shape, &partition) } else { 0 };
        Node {
            partition,
            row_bytes: self.row_bytes(output),
            row_macs: if reads.is_empty() { 0 } else { u64::from(shape.width) },
            reads,
            replaces: None,
            barrier: measured,
            scratch: Scratch::default(),
            moments: runs * u64::from(shape.channels4()) * MOMENTS_VEC4_BYTES,
            weights: 0,
        }
    }

    fn conv_scratch(&self, conv: &Conv, output: &Partition, input: &Partition) -> Scratch {
        let (input_shape, shape) = (self.fused.shape(conv.input), self.fused.shape(conv.output));
        let read_shape = conv.read_shape(input_shape);
        let row_bytes = self.row_bytes(conv.input);
        let chunks = (0..output.count()).map(|chunk| output.chunk(chunk));
        let mut scratch = Scratch::default();
        let way = self.choice.way_of(conv, read_shape, shape);
        let bands: Vec<Rows> = match way {
            Way::Winograd => {
                let grid = TileGrid::new(read_shape, shape, &self.choice, self.limits);
                let tiles = u64::from(grid.most_tiles(output.rows));
                scratch.v = tiles * grid.tile_bytes(read_shape.channels4());
                scratch.m = tiles * grid.tile_bytes(shape.channels4());
                scratch.filters = grid.filter_bytes();
                scratch.filter_part = scratch.filters.min(grid.block_bytes() * u64::from(grid.filter_blocks));
                chunks.flat_map(|chunk| chunk.bands(grid.band_rows)).collect()
            }
            Way::Direct => chunks.flat_map(|chunk| chunk.bands(self.choice.direct_rows(row_bytes))).collect(),
            Way::Unfold => {
                let unfolding = Unfolding::new(input_shape, shape, self.options.storage, &self.choice, self.limits);
                scratch.v = unfolding.most_pixels(output.rows) * unfolding.pixel_bytes;
                chunks.flat_map(|chunk| unfolding.bands(chunk)).collect()
            }
            Way::Product => {
                if conv.prologue.norm.is_some() {
                    let rows = lower::product_rows(input_shape, shape, self.options);
                    scratch.normed = u64::from(rows.min(output.rows).min(input.rows)) * row_bytes;
                }
                return scratch;
            }
        };
        let doubled = conv.prologue.doubling.is_some();
        let (mut all, mut straddling) = (0, 0);
        for rows in bands.into_iter().map(|band| partition::reach(band, input.height, conv.window, doubled)) {
            all = all.max(rows.count());
            if input.holding(rows).len() > 1 {
                straddling = straddling.max(rows.count());
            }
        }
        scratch.gathered = u64::from(straddling) * row_bytes;
        if normalises_before(way, conv) {
            scratch.normed = u64::from(all) * row_bytes;
        }
        scratch
    }

    /// Bytes of the input that one row of `output` is made from.
    fn planes_row_bytes(&self, transform: &Transform, output: TensorId) -> u64 {
        let rows = lower::planes_bytes(self.fused.shape(output), transform, transform.patch);
        rows / u64::from(transform.patch)
    }

    fn row_bytes(&self, tensor: TensorId) -> u64 {
        let shape = self.fused.shape(tensor);
        let storage = self.fused.storage_of(tensor, self.options.storage);
        u64::from(shape.width) * u64::from(shape.channels4()) * storage.vec4_bytes()
    }

    /// Cuts `tensor`, which is made of another tensor that is cut already, or of what the host gives: `given` bytes a row.
    fn partition(&self, tensor: TensorId, input: Option<(&Partition, TensorId)>, given: u64) -> Result<Partition> {
        let shape = self.fused.shape(tensor);
        let hard_limit = self.limits.largest_bound_buffer();
        let most_invocations = u64::from(self.limits.max_compute_workgroups_per_dimension) * u64::from(WORKGROUP);
        let per_row = u64::from(shape.width) * if input.is_none() { u64::from(shape.channels4()) } else { 1 };
        let row_bytes = self.row_bytes(tensor);
        let keys = matches!(self.fused.attention_role(tensor), Some(Role::Key | Role::Value));
        let mut wanted = if keys { self.options.keys_limit } else { self.options.chunk_limit };
        if let Some((partition, source)) = input {
            let source = self.fused.shape(source);
            // A tensor of few channels is cut like what it is made of, or one chunk of it would want many at once.
            if shape.channels * 4 < source.channels {
                let rows = u64::from(partition.rows) * u64::from(shape.height) / u64::from(source.height);
                wanted = wanted.min(Bytes(row_bytes * rows));
            }
        }
        let mut reachable = Bytes(row_bytes * (most_invocations / per_row));
        if given > 0 {
            // The host's rows may be wider than the stored ones.
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
