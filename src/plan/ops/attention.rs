//! Attention by blocks of queries and keys. Each pair of blocks takes two products and one step of
//! a streaming softmax.
//!
//! The n x n matrix of scores never exists, only one block of it. A block has at most
//! [`most_queries`] queries, and keys within `KEYS`. The number of queries in a block changes no
//! bit of the result; the number of keys does.

use crate::kernels::attention::{FinishParams, SoftmaxParams, finish, softmax};
use crate::kernels::choice::{KernelChoice, SHARED_TILE};
use crate::kernels::matmul::{Epilogue, Matmul, MatmulParams};
use crate::limits::{DeviceKind, DeviceLimits};
use crate::model::graph::{Shape, Sight, TensorId};
use crate::plan::node::{Node, Scratch};
use crate::plan::partition::Partition;
use crate::plan::turns::Turns;
use crate::plan::{Action, BufferId, PlanOptions, Resource, StateId, StatePart};
use crate::tensor::{Bytes, Storage};

use super::lowering::Lowering;
use super::pass::Block;
use super::sizing::{Reach, Sizing};

/// Range of the queries of one block. With fewer, a launch has too few workgroups; with more, no
/// core gets busier.
const QUERIES: std::ops::RangeInclusive<u32> = 1024..=4096;
/// Range of the keys of one block. A block has a 64th of all keys within this range, which bounds
/// the number of blocks.
const KEYS: std::ops::RangeInclusive<u32> = 2048..=16_384;

/// The keys and values of some pixels.
#[derive(Debug, Clone, Copy)]
struct KeyChunk {
    key: BufferId,
    value: BufferId,
    pixels: u32,
}

/// Some pixels of a chunk of queries, keys or values.
#[derive(Debug, Clone, Copy)]
struct PixelRange {
    chunk: BufferId,
    first: u32,
    count: u32,
}

/// The inputs that decide the size of a block.
type BlockInputs<'a> = (&'a DeviceLimits, &'a KernelChoice, &'a PlanOptions);

/// Returns the most queries of a block of `keys` keys.
///
/// A workgroup of the second product computes 64 by 64 numbers on a GPU. 1024 queries of 512
/// channels make 128 workgroups: one for each core of a large GPU. So scores and probabilities may
/// take as much as the intermediates of a band of a convolution. A budget makes chunks small, and
/// then they may take no more than a few chunks, unless attention sees many frames and takes much
/// of the time. CPU drivers have few cores and take the fewest queries.
fn most_queries((limits, choice, options): BlockInputs<'_>, sight: Sight, keys: u32) -> u32 {
    if limits.kind != DeviceKind::Gpu {
        return *QUERIES.start();
    }
    let chunk = if sight == Sight::Own { options.chunk_limit } else { options.keys_limit };
    let most = chunk.0.saturating_mul(4).min(limits.largest_bound_buffer().0);
    let bytes = (choice.winograd_scratch_bytes * 2).min(most);
    let queries = u32::try_from(bytes / (u64::from(keys) * 4)).unwrap_or(u32::MAX);
    queries.clamp(*QUERIES.start(), *QUERIES.end())
}

/// Returns the queries and keys of one block, at most those of the largest chunk. Blocks of queries
/// have about the same size.
fn block_size(
    shape: Shape,
    facts: BlockInputs<'_>,
    sight: Sight,
    (queries, keys): (&Partition, &Partition),
) -> (u32, u32) {
    let chunk = |partition: &Partition| partition.rows * shape.width;
    let wanted = (shape.width * shape.height / 64).next_multiple_of(4).clamp(*KEYS.start(), *KEYS.end());
    let keys = chunk(keys).min(wanted);
    let blocks = chunk(queries).div_ceil(most_queries(facts, sight, keys));
    (chunk(queries).div_ceil(blocks).next_multiple_of(SHARED_TILE).min(chunk(queries)), keys)
}

/// Returns the node of attention.
pub(super) fn node(sizing: &Sizing<'_>, [query, key, value]: [TensorId; 3], sight: Sight, output: TensorId) -> Node {
    let shape = sizing.fused.shape(output);
    let partition = sizing.partition(query).clone();
    let inputs = [(query, Reach::Same), (key, Reach::All), (value, Reach::All)];
    let reads = inputs.map(|(input, reach)| sizing.read(&partition, input, reach)).to_vec();
    let (width, height, channels) = (u64::from(shape.width), u64::from(shape.height), u64::from(shape.channels));
    let facts = (sizing.limits, &sizing.choice, sizing.options);
    let attention = block_bytes(shape, facts, sight, (&partition, sizing.partition(key)));
    let (earlier, frames) = match sight {
        Sight::UpToOwn => (earlier_bytes(sizing, key), u64::from(sizing.options.clip_latents)),
        Sight::Own | Sight::First => (0, 1),
    };
    Node {
        // Multiply-adds of the scores, and of the products with the values.
        row_macs: [width, height, channels, 2, frames].into_iter().fold(width, u64::saturating_mul),
        scratch: Scratch { attention: attention + earlier, ..Scratch::default() },
        ..sizing.storing(output, partition, reads)
    }
}

/// Returns the bytes of the scratch memory of one block, as [`Lowering::block`] makes it.
fn block_bytes(shape: Shape, facts: BlockInputs<'_>, sight: Sight, partitions: (&Partition, &Partition)) -> u64 {
    let (queries, keys) = block_size(shape, facts, sight, partitions);
    let row = u64::from(keys.div_ceil(4));
    u64::from(queries) * (row * 16 + row * facts.2.storage.vec4_bytes() + u64::from(shape.channels4()) * 16 + 8 + 4)
}

/// Returns the bytes of the buffers for keys and values of earlier frames, as [`Lowering::earlier`]
/// makes them: for a chunk, and for the last chunk if it is smaller.
fn earlier_bytes(sizing: &Sizing<'_>, key: TensorId) -> u64 {
    let (partition, width) = (sizing.partition(key), sizing.fused.shape(key).width);
    let bytes = |chunk| partition.chunk_bytes(chunk, sizing.row_bytes(key), width);
    let (first, last) = (bytes(0), bytes(partition.count() - 1));
    (first + if last == first { 0 } else { last }) * 2
}

impl Lowering<'_> {
    /// Computes one chunk of queries, over all keys.
    pub(super) fn attention(
        &mut self,
        [query, key, value]: [TensorId; 3],
        sight: Sight,
        output: TensorId,
        chunk: usize,
    ) {
        let shape = self.fused.shape(output);
        let (query, keys) = (self.tensor(query).clone(), self.tensor(key).partition.clone());
        let target = self.place(output, chunk);
        let block = self.pass.attention.unwrap_or_else(|| self.block(shape, sight, (&query.partition, &keys)));
        self.pass.attention = Some(block);
        let own: Vec<KeyChunk> = (0..keys.count())
            .map(|index| KeyChunk {
                key: self.tensor(key).chunk(index),
                value: self.tensor(value).chunk(index),
                pixels: keys.chunk(index).count() * shape.width,
            })
            .collect();
        if chunk == 0 && sight != Sight::Own {
            self.keep_frame([key, value], sight, &own);
        }
        let chunk_pixels = query.partition.chunk(chunk).count() * shape.width;
        for first in (0..chunk_pixels).step_by(block.queries as usize) {
            let queries = block.queries.min(chunk_pixels - first);
            let pixels = PixelRange { chunk: query.chunk(chunk), first, count: queries };
            if sight == Sight::UpToOwn {
                self.attend_earlier(shape, &block, pixels, [key, value], &own);
            }
            self.attend(shape, &block, pixels, &own, sight != Sight::UpToOwn);
            let params = FinishParams { queries, channels4: shape.channels4(), y_offset: first * shape.channels4() };
            let bindings = [block.accumulated, block.state, target].map(Resource::Buffer);
            self.launch(finish(self.options.storage, params), &bindings);
        }
    }

    /// Adds the scratch memory of one block.
    fn block(&mut self, shape: Shape, sight: Sight, partitions: (&Partition, &Partition)) -> Block {
        let (queries, keys) = block_size(shape, (self.limits, &self.choice, self.options), sight, partitions);
        let row = keys.div_ceil(4);
        let scores = u64::from(queries) * u64::from(row);
        Block {
            queries,
            row,
            scores: self.scratch("scores", scores * 16),
            probabilities: self.scratch("probabilities", scores * self.options.storage.vec4_bytes()),
            accumulated: self.scratch("accumulated", u64::from(queries) * u64::from(shape.channels4()) * 16),
            state: self.scratch("state", u64::from(queries) * 8),
            row_factors: self.scratch("row_factors", u64::from(queries) * 4),
        }
    }

    /// Returns the states with the keys and the values of all frames of a clip but the last. A row
    /// is a chunk of one frame.
    fn states_of_keys(&mut self, tensors: [TensorId; 2]) -> [StateId; 2] {
        tensors.map(|tensor| {
            let partition = &self.tensor(tensor).partition;
            let row_bytes = self.fused.row_bytes(tensor, self.options.storage);
            let row_bytes = Bytes(partition.chunk_bytes(0, row_bytes, self.fused.shape(tensor).width));
            let chunks = u32::try_from(partition.count()).unwrap_or(u32::MAX);
            let rows = (self.options.clip_latents - 1).saturating_mul(chunks);
            self.state_of_rows(tensor, self.producer(tensor).name(), (rows, row_bytes), Bytes(0))
        })
    }

    /// Returns the place of chunk `chunk` of frame `frame` in a state of keys or values.
    fn place_of_keys(&self, state: StateId, frame: u32, (chunk, chunks): (usize, usize)) -> StatePart {
        let row = u64::from(frame) * chunks as u64 + chunk as u64;
        StatePart::Frames(row * self.plan.states[state.0].row_bytes.0)
    }

    /// Keeps the chunks `own` of keys and values for later parts. Each part has steps for every
    /// frame that it may be, of which one frame's run. The last frame is not kept.
    fn keep_frame(&mut self, tensors: [TensorId; 2], sight: Sight, own: &[KeyChunk]) {
        let last = self.options.clip_latents - 1;
        let frames = if sight == Sight::First { 0..last.min(1) } else { 1..last };
        let turns = self.turns;
        for frame in frames {
            if self.is_full() {
                break;
            }
            let states = self.states_of_keys(tensors);
            self.turns = if sight == Sight::First { turns } else { Some(Turns::at(frame)) };
            for (chunk, kept) in own.iter().enumerate() {
                for (state, from) in states.into_iter().zip([kept.key, kept.value]) {
                    let part = self.place_of_keys(state, frame, (chunk, own.len()));
                    let bytes = self.plan.buffers[from.0].bytes.0;
                    self.step(Action::Keep { from, state, part, bytes }, 0);
                }
            }
        }
        self.turns = turns;
    }

    /// Accumulates the keys of all earlier frames for one block of queries. Their chunks are like
    /// `own`.
    fn attend_earlier(
        &mut self,
        shape: Shape,
        block: &Block,
        queries: PixelRange,
        tensors: [TensorId; 2],
        own: &[KeyChunk],
    ) {
        let turns = self.turns;
        for frame in 0..self.options.clip_latents - 1 {
            if self.is_full() {
                break;
            }
            let states = self.states_of_keys(tensors);
            self.turns = Some(Turns::after(frame));
            for (chunk, like) in own.iter().enumerate() {
                let [key, value] = self.earlier(self.plan.buffers[like.key.0].bytes);
                for (state, to) in states.into_iter().zip([key, value]) {
                    let part = self.place_of_keys(state, frame, (chunk, own.len()));
                    self.step(Action::Recall { state, part, to }, 0);
                }
                let is_first = frame == 0 && chunk == 0;
                self.attend(shape, block, queries, &[KeyChunk { key, value, ..*like }], is_first);
            }
        }
        self.turns = turns;
    }

    /// Returns the buffers for a chunk of keys and of values of earlier frames, of `bytes` each.
    fn earlier(&mut self, bytes: Bytes) -> [BufferId; 2] {
        if let Some(buffers) = self.pass.earlier.get(&bytes.0) {
            return *buffers;
        }
        let buffers = ["earlier_keys", "earlier_values"].map(|what| self.scratch(what, bytes.0));
        self.pass.earlier.insert(bytes.0, buffers);
        buffers
    }

    /// Accumulates the keys of `chunks` for one block of queries. If `first_block`, no keys have
    /// been accumulated before.
    fn attend(&mut self, shape: Shape, block: &Block, queries: PixelRange, chunks: &[KeyChunk], mut first_block: bool) {
        for chunk in chunks {
            for first in (0..chunk.pixels).step_by((block.row * 4) as usize) {
                let keys = (block.row * 4).min(chunk.pixels - first);
                let key = PixelRange { chunk: chunk.key, first, count: keys };
                self.scores(shape, block, queries, key, chunk.pixels.div_ceil(4));
                #[expect(clippy::cast_precision_loss, reason = "channel counts are small")]
                let scale = 1.0 / (shape.channels as f32).sqrt();
                let params = SoftmaxParams { keys, row: block.row, scale, first: u32::from(first_block) };
                let bindings =
                    [block.scores, block.probabilities, block.state, block.row_factors].map(Resource::Buffer);
                self.launch(softmax(self.options.storage, queries.count, params), &bindings);
                self.weigh(shape, block, queries.count, PixelRange { chunk: chunk.value, first, count: keys });
                first_block = false;
            }
        }
    }

    /// Launches `scores = queries keys^T`. `key_row` is the number of vec4 in a row of the
    /// transposed keys.
    fn scores(&mut self, shape: Shape, block: &Block, queries: PixelRange, keys: PixelRange, key_row: u32) {
        let products = self.products(keys.count.div_ceil(4));
        let launch = Matmul {
            input: self.options.storage,
            output: Storage::F32,
            epilogue: Epilogue::None,
            products,
            frames: 1,
            params: MatmulParams {
                a_offset: queries.first * shape.channels4(),
                b_offset: keys.first / 4,
                b_row: key_row,
                c_row: block.row,
                ..MatmulParams::rows(products, queries.count, keys.count.div_ceil(4), shape.channels4())
            },
        }
        .launch();
        let (query, key) = (Resource::Buffer(queries.chunk), Resource::Buffer(keys.chunk));
        self.launch(launch, &[query, key, Resource::Unused, Resource::Unused, Resource::Buffer(block.scores)]);
    }

    /// Launches `accumulated = row_factors * accumulated + probabilities values`.
    fn weigh(&mut self, shape: Shape, block: &Block, queries: u32, values: PixelRange) {
        let products = self.products(shape.channels4());
        let launch = Matmul {
            input: self.options.storage,
            output: Storage::F32,
            epilogue: Epilogue::RowFactors,
            products,
            frames: 1,
            params: MatmulParams {
                a_row: block.row,
                b_offset: values.first * shape.channels4(),
                ..MatmulParams::rows(products, queries, shape.channels4(), values.count.div_ceil(4))
            },
        }
        .launch();
        let bindings = [
            Resource::Buffer(block.probabilities),
            Resource::Buffer(values.chunk),
            Resource::Unused,
            Resource::Buffer(block.row_factors),
            Resource::Buffer(block.accumulated),
        ];
        self.launch(launch, &bindings);
    }
}
