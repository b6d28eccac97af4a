//! Graphs of diffusers' `AutoencoderTiny`: TAESD, TAESDXL, TAESD3, TAEF1, and of its relatives
//! without a class there. TAEF2 has norms in the middle, `taeqi2_1` and TAESANA levels of several
//! widths, and TAEHV's blocks remember the frame before.
//!
//! Layers are numbered throughout, including layers without weights, as in diffusers'
//! `encoder.layers` and `decoder.layers`. Inside the network, images are 0 to 1.
//!
//! TAEHV makes several frames of one latent. Of a single image, the decoder's last frame is the
//! result, and the encoder sees the image as often as there are frames in a latent. Each frame is a
//! tensor of its own here, and equal frames are one tensor. The decoder computes only frames that
//! the last one depends on.
//!
//! A clip of n latents decodes to the image of the first, and to all frames of the others. So its
//! first part is that of an image, which also keeps the last frame that each block sees. In other
//! parts, and in all parts of an encode, the frames of a part are one tensor. Its convolutions look
//! back in time, with zeros before the first frame. If other latents than the first may stand for
//! one frame, a decode has only such parts, and the frames to drop are dropped after it.

use super::blocks::Part;
use super::config::{Starts, Tiny};
use super::graph::{Border, Conv2d, Ending, Graph, PastFrames, Shape, TensorId, Time, Transform, WeightSlice, Window};

/// Groups and eps of the norm in a branch of TAEF2, and the factor by which the branch widens the
/// channels.
const POOL_GROUPS: u32 = 4;
const POOL_EPS: f32 = 1e-5;
const POOL_WIDTH: u32 = 4;

/// The frames that a block of TAEHV sees: its own and the one before.
const LOOK_BACK: Time = Time { taps: 2, stride: 1, past: PastFrames::Kept };

/// Builds the decoder for latents of `shape`.
pub(super) fn decoder(network: &Tiny, part: Part, shape: Shape, transform: Transform, out_channels: u32) -> Graph {
    let widths = &network.decoder_block_out_channels;
    let part = if part == Part::First && network.starts != Starts::First { Part::Next } else { part };
    let mut layers = Layers::new("decoder.layers", network, part);
    let mut x = layers.graph.input(shape, Transform { squash: true, ..transform });
    x = layers.conv(x, widths[0]);
    let mut frames = vec![layers.relu(x)];
    for (level, &count) in network.num_decoder_blocks.iter().enumerate() {
        frames = layers.blocks(frames, count, made(network, level), level == 0);
        let Some(&width) = widths.get(level + 1) else { continue };
        // The layer that doubles the size. It may follow the 1x1 convolutions of `grow`.
        layers.next += 1;
        if network.is_video() {
            frames = layers.grow(&frames, level);
        }
        frames = layers.resample(&frames, width, Window::same(3), false);
    }
    x = frames[frames.len() - 1];
    if network.is_video() {
        x = layers.relu(x);
    }
    x = layers.conv(x, out_channels * network.patch_size * network.patch_size);
    x = layers.patches(x, true, out_channels);
    layers.graph.output(x, Ending { factor: 2.0, offset: -1.0, clamp: network.is_video() });
    layers.graph
}

/// Builds the encoder for images of `shape`, with latents of `channels` channels.
pub(super) fn encoder(network: &Tiny, part: Part, shape: Shape, channels: u32) -> Graph {
    // The first part of a clip has as many frames as any other.
    let part = if part == Part::First { Part::Next } else { part };
    let mut layers = Layers::new("encoder.layers", network, part);
    let mut x = layers.graph.input(shape, Transform::uniform(shape.channels, 0.5, 0.5));
    x = layers.patches(x, false, shape.channels * network.patch_size * network.patch_size);
    // taeqi2_1 counts the layer that puts pixels into channels.
    layers.next += u32::from(network.patch_size > 1 && !network.is_video());
    if network.encoder_block_out_channels[0] > 0 {
        x = layers.conv(x, network.encoder_block_out_channels[0]);
        if network.begins_with_relu() {
            x = layers.relu(x);
        }
    }
    let copies = if part == Part::Image { network.frames() } else { 1 };
    let mut frames = vec![x; copies as usize];
    let last = network.num_encoder_blocks.len() - 1;
    for (level, &count) in network.num_encoder_blocks.iter().enumerate() {
        if level > 0 {
            if network.is_video() {
                frames = layers.pool_frames(&frames, network.times(level - 1));
            }
            let (width, stem) = (network.encoder_block_out_channels[level], network.is_in_stem(level));
            frames = layers.resample(&frames, width, Window::halving(Border::Around), stem);
            if stem {
                frames[0] = layers.relu(frames[0]);
            }
        }
        let all = frames.len();
        frames = layers.blocks(frames, count, all, level == last);
    }
    x = layers.conv(frames[frames.len() - 1], channels);
    layers.graph.output(x, Ending::NONE);
    layers.graph
}

/// Returns the number of frames that size change `level` of the decoder makes of one, lowest
/// resolution first.
fn times(network: &Tiny, level: usize) -> usize {
    network.times(network.num_decoder_blocks.len() - 2 - level) as usize
}

/// Returns the number of last frames of `level` of the decoder that the last image depends on.
fn made(network: &Tiny, level: usize) -> usize {
    if level + 1 == network.num_decoder_blocks.len() {
        return 1;
    }
    read(network, level + 1).div_ceil(times(network, level))
}

/// Returns the number of frames that the blocks of `level` of the decoder read for [`made`] frames.
/// Each block reads one frame before those that it makes.
fn read(network: &Tiny, level: usize) -> usize {
    let all = (0..level).map(|level| times(network, level)).product::<usize>();
    all.min(made(network, level) + network.num_decoder_blocks[level] as usize)
}

/// Cuts `frames` into groups of `count` frames.
fn chunks(frames: &[TensorId], count: usize) -> Vec<Vec<TensorId>> {
    frames.chunks(count).map(<[TensorId]>::to_vec).collect()
}

/// A graph under construction, to which layers are added one after another.
struct Layers<'a> {
    graph: Graph,
    name: &'static str,
    network: &'a Tiny,
    part: Part,
    next: u32,
}

/// The frames that a block sees besides its own.
#[derive(Debug, Clone, Copy)]
enum Memory {
    /// None.
    None,
    /// The frame before, a tensor of its own, if there is one.
    Tensor,
    /// The frame before, in the same tensor or in the part before.
    Time,
}

impl<'a> Layers<'a> {
    fn new(name: &'static str, network: &'a Tiny, part: Part) -> Self {
        Self { graph: Graph::default(), name, network, part, next: 0 }
    }

    /// Returns how blocks see the frame before.
    fn memory(&self) -> Memory {
        match self.part {
            _ if !self.network.is_video() => Memory::None,
            Part::Image | Part::First => Memory::Tensor,
            Part::Next => Memory::Time,
        }
    }

    /// Returns the name of the next layer.
    fn name(&mut self) -> String {
        let name = format!("{}.{}", self.name, self.next);
        self.next += 1;
        name
    }

    fn conv(&mut self, x: TensorId, channels: u32) -> TensorId {
        let name = self.name();
        self.graph.conv2d(&name, x, channels, 3)
    }

    fn relu(&mut self, x: TensorId) -> TensorId {
        self.next += 1;
        self.graph.relu(x)
    }

    /// Moves channels into squares of pixels if `grow`, else back, so that `channels` remain.
    fn patches(&mut self, x: TensorId, grow: bool, channels: u32) -> TensorId {
        self.graph.patches(x, self.network.patch_size, grow, false, channels)
    }

    /// Makes a frame of each of `sources`, and only one of equal neighbours. It begins with the
    /// last: a sum then overwrites a frame that no later source contains.
    fn each(&mut self, sources: &[Vec<TensorId>], make: &dyn Fn(&mut Graph, &[TensorId]) -> TensorId) -> Vec<TensorId> {
        let mut made: Vec<TensorId> = Vec::new();
        for (index, source) in sources.iter().enumerate().rev() {
            let frame = match made.last() {
                Some(frame) if sources[index + 1] == *source => *frame,
                _ => make(&mut self.graph, source),
            };
            made.push(frame);
        }
        made.reverse();
        made
    }

    /// Adds `count` blocks, and returns the last `made` frames. In the middle, TAEF2 has a branch
    /// before each block.
    fn blocks(&mut self, mut frames: Vec<TensorId>, count: u32, made: usize, middle: bool) -> Vec<TensorId> {
        for later in (0..count as usize).rev() {
            let name = self.name();
            if self.network.use_midblock_gn && middle {
                frames = self.each(&chunks(&frames, 1), &|graph, frame| pool(graph, &format!("{name}.pool"), frame[0]));
            }
            let (memory, name) = (self.memory(), format!("{name}.conv"));
            if let (Part::First, Some(last)) = (self.part, frames.last_mut()) {
                *last = self.graph.keep(*last, format!("{name}.0"), LOOK_BACK.kept());
            }
            // Zeros come before the first frame of all, which has no past here.
            let skipped = frames.len().saturating_sub(made + later);
            let first = |frame: usize| frame.saturating_sub(usize::from(matches!(memory, Memory::Tensor)));
            let sources: Vec<_> = (skipped..frames.len()).map(|last| frames[first(last)..=last].to_vec()).collect();
            frames = self.each(&sources, &|graph, frame| block(graph, &name, frame, memory));
        }
        frames
    }

    /// Adds a convolution of each frame to `channels` channels, which halves the size or follows a
    /// doubling. It has a bias in a `stem` only.
    fn resample(&mut self, frames: &[TensorId], channels: u32, window: Window, stem: bool) -> Vec<TensorId> {
        let name = self.name();
        self.each(&chunks(frames, 1), &|graph, frame| {
            let x = if window.stride == 1 { graph.upsample(frame[0]) } else { frame[0] };
            let conv = Conv2d::of(&name, window);
            graph.convolution(&name, x, channels, if stem { conv } else { conv.without_bias() })
        })
    }

    /// Adds a 1x1 convolution of `count` successive frames to one frame.
    fn pool_frames(&mut self, frames: &[TensorId], count: u32) -> Vec<TensorId> {
        let name = format!("{}.conv", self.name());
        if self.part == Part::Next && count > 1 {
            let time = Time { taps: count, stride: count, past: PastFrames::Kept };
            let take = WeightSlice::InputTaps { taps: count, latest_first: false };
            let conv = Conv2d::of(&name, Window::same(1)).without_bias().taking(take).over(time);
            return vec![self.graph.convolution(&name, frames[0], self.graph.shape(frames[0]).channels, conv)];
        }
        self.each(&chunks(frames, count as usize), &|graph, frames| {
            over_frames(graph, &name, Window::same(1), frames, count)
        })
    }

    /// Adds a 1x1 convolution of each frame to several, and returns those that the level after
    /// `level` reads. The weights may be for more frames, of which the last are used.
    fn grow(&mut self, frames: &[TensorId], level: usize) -> Vec<TensorId> {
        let name = format!("{}.conv", self.name());
        let (times, stored) = (times(self.network, level), self.network.grow_frames[level]);
        // Makes `count` frames, the first of them `later` frames before the end of all.
        let mut grow = |x, later: usize, count: u32| {
            let channels = self.graph.shape(x).channels;
            let later = u32::try_from(later).unwrap_or(u32::MAX);
            let (start, of) = ((stored - later) * channels, stored * channels);
            let rows = WeightSlice::Rows { start, block: count * channels, step: of, of, summed: 1 };
            let conv = Conv2d::of(&name, Window::same(1)).without_bias().taking(rows);
            self.graph.convolution(&name, x, channels, Conv2d { phases: count, ..conv })
        };
        if self.part == Part::Next {
            return vec![grow(frames[0], times, u32::try_from(times).unwrap_or(u32::MAX))];
        }
        let all = frames.len() * times;
        let read = all - read(self.network, level + 1)..all;
        read.map(|index| grow(frames[index / times], times - index % times, 1)).collect()
    }
}

/// Adds an `AutoencoderTinyBlock`: `relu(conv(relu(conv(relu(conv(x))))) + x)`, where `x` is the
/// last of `frames`. The first convolution also sees the frame in `memory`.
fn block(graph: &mut Graph, name: &str, frames: &[TensorId], memory: Memory) -> TensorId {
    let x = frames[frames.len() - 1];
    let channels = graph.shape(x).channels;
    let first = format!("{name}.0");
    // The file has the filters of the frame itself first.
    let mut hidden = match memory {
        Memory::None => graph.conv2d(&first, x, channels, 3),
        Memory::Tensor => {
            let seen: Vec<TensorId> = frames.iter().rev().copied().collect();
            over_frames(graph, &first, Window::same(3), &seen, 2)
        }
        Memory::Time => {
            let take = WeightSlice::InputTaps { taps: LOOK_BACK.taps, latest_first: true };
            let conv = Conv2d::of(&first, Window::same(3)).taking(take).over(LOOK_BACK);
            graph.convolution(&first, x, channels, conv)
        }
    };
    for part in [2, 4] {
        hidden = graph.relu(hidden);
        hidden = graph.conv2d(&format!("{name}.{part}"), hidden, channels, 3);
    }
    let sum = graph.add(x, hidden);
    graph.relu(sum)
}

/// Adds the convolution `name` of several frames that keeps the number of channels. It has a bias
/// unless it is 1x1. Its filters have input channels for `of` frames, of which the first are
/// `frames`; all others are zero.
fn over_frames(graph: &mut Graph, name: &str, window: Window, frames: &[TensorId], of: u32) -> TensorId {
    let channels = graph.shape(frames[0]).channels;
    // Equal frames need one convolution, with the sum of their filters.
    let equal = frames.iter().all(|frame| *frame == frames[0]);
    let shown = if equal { 1 } else { frames.len() };
    let count = u32::try_from(frames.len() / shown).unwrap_or(u32::MAX);
    let mut sum = None;
    for start in (0..shown).rev() {
        let take = WeightSlice::Inputs { start: u32::try_from(start).unwrap_or(u32::MAX), count, of };
        let mut conv = Conv2d::of(name, window).taking(take);
        if start > 0 || window.side == 1 {
            conv = conv.without_bias();
        }
        let seen = graph.convolution(name, frames[start], channels, conv);
        sum = Some(sum.map_or(seen, |sum| graph.add(sum, seen)));
    }
    sum.unwrap_or(frames[0])
}

/// Adds `x + conv(relu(group_norm(conv(x))))`, with 1x1 convolutions to four times the channels and
/// back.
fn pool(graph: &mut Graph, name: &str, x: TensorId) -> TensorId {
    let channels = graph.shape(x).channels;
    let [wide, narrow] = [0, 3].map(|part| format!("{name}.{part}"));
    let pointwise = |name: &str| Conv2d::of(name, Window::same(1)).without_bias();
    let mut hidden = graph.convolution(&wide, x, channels * POOL_WIDTH, pointwise(&wide));
    hidden = graph.group_norm(&format!("{name}.1"), hidden, POOL_GROUPS, POOL_EPS);
    hidden = graph.relu(hidden);
    hidden = graph.convolution(&narrow, hidden, channels, pointwise(&narrow));
    graph.add(x, hidden)
}
