//! What a schedule needs to know of each fused stage: how its output is cut, what it reads, and what it takes while it runs.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::kernels::WORKGROUP;
use crate::kernels::choice::{Choice, Conv3x3};
use crate::kernels::group_norm::MOMENTS_VEC4_BYTES;
use crate::limits::DeviceLimits;
use crate::model::graph::{Shape, TensorId};
use crate::plan::fuse::{Conv, Fused, Residual, Role, Stage};
use crate::plan::partition::{Partition, filter_reach};
use crate::plan::schedule::{Node, Read};
use crate::plan::tiles::TileGrid;
use crate::plan::{PlanOptions, bounds};
use crate::tensor::{Bytes, Storage};

/// Memory that a stage takes while it runs, bytes of each kind. Stages of one pass share the largest of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scratch {
    /// Transformed input of a Winograd convolution.
    pub v: u64,
    /// Its products with the filters.
    pub m: u64,
    /// Input rows of several chunks in one buffer.
    pub gathered: u64,
    /// Input rows after a group norm.
    pub normed: u64,
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
            v: self.v.max(other.v),
            m: self.m.max(other.m),
            gathered: self.gathered.max(other.gathered),
            normed: self.normed.max(other.normed),
            filters: self.filters.max(other.filters),
            filter_part: self.filter_part.max(other.filter_part),
            attention: self.attention.max(other.attention),
        }
    }

    /// All of it but the filters.
    pub fn without_filters(self) -> u64 {
        self.v + self.m + self.gathered + self.normed + self.attention
    }
}

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
    /// One row more on either side; with `upsample`, of a tensor of half the height.
    Filter { upsample: bool },
    /// All rows.
    All,
}

/// What chunks of a tensor cut like `reader` read of one cut like `source`, which stage `stage` produces.
fn read(reader: &Partition, source: &Partition, stage: usize, reach: Reach) -> Read {
    let span = |chunk: usize| match reach {
        Reach::Same => source.holding(reader.chunk(chunk)),
        Reach::Filter { upsample } => source.holding(filter_reach(reader.chunk(chunk), source.height, upsample)),
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
            Stage::Latents { output, .. } => {
                let partition = self.partition(*output, None)?;
                Ok(self.with_output(*output, partition, Vec::new()))
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
                node.scratch.attention = crate::plan::lower::attention_scratch(shape, partitions, self.options.storage);
                Ok(node)
            }
            Stage::Image { input } => {
                let source = self.stages[input];
                let width = u64::from(self.fused.shape(*input).width);
                let partition = before[source].partition.clone();
                let reads = vec![read(&partition, &partition, source, Reach::Same)];
                Ok(Node {
                    partition,
                    row_bytes: self.options.output.row_bytes(width),
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
            None => self.partition(conv.output, Some((&before[input].partition, conv.input)))?,
        };
        let filter = conv.filter == 3;
        let reach = if filter { Reach::Filter { upsample: conv.prologue.upsample } } else { Reach::Same };
        let mut reads = vec![read(&partition, &before[input].partition, input, reach)];
        let mut taps = u64::from(conv.filter * conv.filter) * u64::from(input_shape.channels4());
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
        if filter && self.choice.way(conv, input_shape, shape) == Conv3x3::Winograd && node.moments > 0 {
            let grid = TileGrid::new(input_shape, shape, &self.choice, self.limits);
            node.moments = grid.runs() * u64::from(shape.channels4()) * MOMENTS_VEC4_BYTES;
        }
        Ok(node)
    }

    /// A node that produces `output`. Its multiply-adds are so far those of one per pixel.
    fn with_output(&self, output: TensorId, partition: Partition, reads: Vec<Read>) -> Node {
        let shape = self.fused.shape(output);
        let measured = self.fused.norm_of(output).is_some();
        let runs = if measured { crate::plan::lower::stats_runs(shape, &partition) } else { 0 };
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
        let row_bytes = self.row_bytes(conv.input);
        let mut scratch = Scratch::default();
        if conv.filter == 3 {
            let way = self.choice.way(conv, input_shape, shape);
            let most = match way {
                Conv3x3::Winograd => {
                    let grid = TileGrid::new(input_shape, shape, &self.choice, self.limits);
                    let tiles = u64::from(grid.most_tiles(output.rows));
                    scratch.v = tiles * grid.tile_bytes(input_shape.channels4());
                    scratch.m = tiles * grid.tile_bytes(shape.channels4());
                    scratch.filters = grid.filter_bytes();
                    scratch.filter_part = scratch.filters.min(grid.block_bytes() * u64::from(grid.filter_blocks));
                    grid.band_rows
                }
                Conv3x3::Direct => self.choice.direct_rows(row_bytes),
            };
            let bands = (0..output.count()).flat_map(|chunk| output.chunk(chunk).bands(most));
            let reached = bands.map(|band| filter_reach(band, input.height, conv.prologue.upsample));
            let (mut all, mut straddling) = (0, 0);
            for rows in reached {
                all = all.max(rows.count());
                if input.holding(rows).len() > 1 {
                    straddling = straddling.max(rows.count());
                }
            }
            scratch.gathered = u64::from(straddling) * row_bytes;
            if way == Conv3x3::Direct && conv.prologue.norm.is_some() {
                scratch.normed = u64::from(all) * row_bytes;
            }
        } else if conv.prologue.norm.is_some() {
            let rows = crate::plan::lower::product_rows(input_shape, shape, self.options);
            scratch.normed = u64::from(rows.min(output.rows).min(input.rows)) * row_bytes;
        }
        scratch
    }

    fn row_bytes(&self, tensor: TensorId) -> u64 {
        let shape = self.fused.shape(tensor);
        let storage = self.fused.storage_of(tensor, self.options.storage);
        u64::from(shape.width) * u64::from(shape.channels4()) * storage.vec4_bytes()
    }

    /// Cuts `tensor`, which is made of another tensor that is cut already.
    fn partition(&self, tensor: TensorId, input: Option<(&Partition, TensorId)>) -> Result<Partition> {
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
                let rows = u64::from(partition.rows) * u64::from(shape.height / source.height);
                wanted = wanted.min(Bytes(row_bytes * rows));
            }
        }
        let reachable = Bytes(row_bytes * (most_invocations / per_row));
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

impl Fused {
    /// How `tensor` is stored: the image in f32, everything else as `storage` says.
    pub fn storage_of(&self, tensor: TensorId, storage: Storage) -> Storage {
        let is_image = self.stages.iter().any(|stage| matches!(stage, Stage::Image { input } if *input == tensor));
        if is_image { Storage::F32 } else { storage }
    }
}

impl Choice {
    /// The way of `conv`, whose filter is 3x3. Only Winograd adds a residual.
    pub(super) fn way(&self, conv: &Conv, input: Shape, output: Shape) -> Conv3x3 {
        if conv.residual.is_some() { Conv3x3::Winograd } else { self.conv3x3(input.channels, output.channels) }
    }

    /// Rows of a band of a direct convolution that reads rows of `row_bytes`.
    pub(super) fn direct_rows(&self, row_bytes: u64) -> u32 {
        u32::try_from(self.winograd_scratch_bytes * 2 / row_bytes).unwrap_or(u32::MAX)
    }
}
