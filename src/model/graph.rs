//! A graph of operations on NHWC tensors with batch 1, in execution order. Shapes are inferred as
//! nodes are added.
//!
//! What a network is made of: builders (`model/{kl,tiny,wan,seedvr}.rs`) write graphs down, `plan`
//! runs them, and nothing else knows a family.

use super::config::Packing;

/// A tensor of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId(pub usize);

/// Extents of a tensor `[h, w, frames, c]`. An image has one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Frames.
    pub frames: u32,
    /// Rows, pixels.
    pub height: u32,
    /// Columns, pixels.
    pub width: u32,
    /// Channels, not padded.
    pub channels: u32,
}

impl Shape {
    /// Of one frame.
    pub const fn image(height: u32, width: u32, channels: u32) -> Self {
        Self { frames: 1, height, width, channels }
    }

    /// Channels of one frame in groups of four, rounded up: how they lie in memory.
    pub fn channels4(self) -> u32 {
        self.channels.div_ceil(4)
    }

    /// Groups of four channels of all frames: what one pixel holds.
    pub fn pixel4(self) -> u32 {
        self.frames * self.channels4()
    }
}

/// What is done to the model's input before all else, in this order: `factor[c] * x + offset[c]`,
/// then [`Self::squash`], then [`Self::patch`].
#[derive(Debug, Clone, PartialEq)]
pub struct Transform {
    /// One factor for each channel of the input.
    pub factor: Vec<f32>,
    /// One summand for each channel of the input.
    pub offset: Vec<f32>,
    /// Then `3 tanh(x / 3)`, as the tiny autoencoders' decoders begin.
    pub squash: bool,
    /// Side of the squares of pixels that the input's channels hold, 1 for none: channel `c *
    /// patch^2 + patch * py + px` of pixel `[i, j]` becomes channel `c` of pixel `[patch * i + py,
    /// patch * j + px]`.
    pub patch: u32,
    /// How the squares lie in the input, of which [`Self::patch`] says the usual way.
    pub packing: Packing,
}

impl Transform {
    /// Leaves an input of `channels` as it is.
    pub fn none(channels: u32) -> Self {
        Self::uniform(channels, 1.0, 0.0)
    }

    /// One factor and one summand for all `channels`.
    pub fn uniform(channels: u32, factor: f32, offset: f32) -> Self {
        Self {
            factor: vec![factor; channels as usize],
            offset: vec![offset; channels as usize],
            squash: false,
            patch: 1,
            packing: Packing::ByChannel,
        }
    }
}

/// What is done to the model's output: `factor * x + offset`, then perhaps a clamp to -1..1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ending {
    /// Factor of every channel.
    pub factor: f32,
    /// Summand of every channel.
    pub offset: f32,
    /// Whether what lies beyond -1..1 is cut off.
    pub clamp: bool,
}

impl Ending {
    /// Leaves the output as it is.
    pub const NONE: Self = Self { factor: 1.0, offset: 0.0, clamp: false };
}

/// How a filter moves over its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// Side of the filter: 1 or 3, pixels.
    pub side: u32,
    /// Pixels from one output to the next: 1 or 2.
    pub stride: u32,
    /// Where there are zeros beyond the input.
    pub border: Border,
}

impl Window {
    /// A filter of `side` that leaves the size as it is.
    pub const fn same(side: u32) -> Self {
        Self { side, stride: 1, border: Border::Around }
    }

    /// A 3x3 filter that halves the size, with `border`.
    pub const fn halving(border: Border) -> Self {
        Self { side: 3, stride: 2, border }
    }

    /// Rows or columns of zeros before the first.
    pub fn before(self) -> u32 {
        match self.border {
            Border::Around => self.side / 2,
            Border::After => 0,
        }
    }

    /// Extent of the output for an input of `extent`.
    pub fn output(self, extent: u32) -> u32 {
        let zeros = match self.border {
            Border::Around => self.side / 2 * 2,
            Border::After => 1,
        };
        (extent + zeros - self.side) / self.stride + 1
    }
}

/// Where a filter's input has zeros beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Border {
    /// Half a filter on all four sides.
    Around,
    /// One row below and one column to the right, and none above and to the left.
    After,
}

/// How a filter moves over frames. Its output has the frames that it can be put on, those of the
/// past in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Time {
    /// Frames that it sees.
    pub taps: u32,
    /// Frames from one output to the next.
    pub stride: u32,
    /// What comes before the first frame.
    pub past: Past,
}

/// What comes before the first frame of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Past {
    /// The last [`Time::kept`] frames of what it read in the block before: zeros before the first
    /// block.
    Kept,
    /// The first frame again, as often as the filter needs to be put on it.
    Copies,
}

impl Time {
    /// Frames of the past that it sees.
    pub fn before(self) -> u32 {
        match self.past {
            Past::Kept => self.kept(),
            Past::Copies => self.taps - 1,
        }
    }

    /// Frames of its input that it wants to see again with the next block.
    pub fn kept(self) -> u32 {
        self.taps - self.stride
    }

    /// Frames of the output for so many of the input.
    pub fn output(self, frames: u32) -> u32 {
        (self.before() + frames - self.taps) / self.stride + 1
    }
}

/// Weights as a network wants them: a tensor of the file, and what is taken of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight {
    /// The tensor's name in diffusers' spelling. Empty where there is none ([`Take::Zeros`]).
    pub name: String,
    /// What is taken.
    pub take: Take,
}

impl Weight {
    /// All of the tensor `name`.
    pub fn all(name: impl Into<String>) -> Self {
        Self { name: name.into(), take: Take::All }
    }
}

/// What is taken of a tensor of a file. In files the output channels come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Take {
    /// All of it.
    All,
    /// One tap in time of a filter `[c_out, c_in, taps, h, w]`.
    Tap {
        /// Taps in time that the filter has.
        taps: u32,
        /// The one that is taken.
        index: u32,
    },
    /// The sum of the taps in time of a filter `[c_out, c_in, taps, h, w]`, in f32.
    SumOfTaps {
        /// Taps in time that the filter has.
        taps: u32,
    },
    /// Some output channels: `block` of them from `start` on, then `block` from `start + step` on,
    /// and so on.
    Rows {
        /// The first.
        start: u32,
        /// So many that follow one another.
        block: u32,
        /// From the first of one block to the first of the next.
        step: u32,
        /// All that the file has.
        of: u32,
    },
    /// All output channels, brought from the order part, frame, channel to the order frame, part,
    /// channel.
    Frames {
        /// Frames.
        frames: u32,
        /// Parts of each frame.
        parts: u32,
        /// Channels of each part.
        block: u32,
    },
    /// Nothing of any file: zeros, for a bias that the network does not have.
    Zeros,
    /// Nothing of any file: factors and summands of the input, which the configuration gives
    /// ([`Transform`]).
    Transform,
}

/// The weights of a convolution, and how it moves.
#[derive(Debug, Clone, PartialEq)]
pub struct Conv2d {
    /// The filter.
    pub window: Window,
    /// `[c_out, c_in, side, side]`.
    pub weight: Weight,
    /// `[c_out]`.
    pub bias: Weight,
    /// How it moves over frames; each frame by itself where it is none. With it the weights are
    /// `[c_out, c_in, taps, side, side]`.
    pub time: Option<Time>,
    /// Frames that come of one: the output channels are first those of the first, and so on.
    pub phases: u32,
}

impl Conv2d {
    /// Of a module `name`: all of `NAME.weight` and `NAME.bias`.
    pub fn of(name: &str, window: Window) -> Self {
        let part = |part: &str| Weight::all(format!("{name}.{part}"));
        Self { window, weight: part("weight"), bias: part("bias"), time: None, phases: 1 }
    }

    /// The same, moving over frames.
    #[must_use]
    pub fn over(self, time: Time) -> Self {
        Self { time: Some(time), ..self }
    }

    /// The same without a bias.
    #[must_use]
    pub fn without_bias(self) -> Self {
        Self { bias: Weight { name: String::new(), take: Take::Zeros }, ..self }
    }

    /// The same, with `take` of the weight.
    #[must_use]
    pub fn taking(mut self, take: Take) -> Self {
        self.weight.take = take;
        self
    }
}

/// A function of single numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activation {
    /// `x * sigmoid(x)`.
    Silu,
    /// `max(x, 0)`.
    Relu,
}

/// How the size is doubled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Doubling {
    /// Each pixel four times.
    Nearest,
    /// A quarter of the channels each: channel `(2 * py + px) * c_out + c` of pixel `[i, j]`
    /// becomes channel `c` of pixel `[2 * i + py, 2 * j + px]`.
    Shuffle,
}

/// What a node computes from its inputs.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// The model's input.
    Input(Transform),
    /// A convolution with bias.
    Conv2d(Conv2d),
    /// Group normalisation with affine weights `NAME.weight`, `NAME.bias` `[c]`.
    GroupNorm {
        /// Number of groups.
        groups: u32,
        /// Added to the variance.
        eps: f32,
    },
    /// Each pixel by itself: `x / max(|x|, 1e-12) * sqrt(c) * gamma[c]`, `|x|` over channels.
    /// Weights: `NAME.gamma` `[c]`.
    PixelNorm,
    /// A function of each number.
    Activate(Activation),
    /// The same; its last frames are kept for a convolution of the block after this one, as if that
    /// had read them here.
    Keep {
        /// The convolution.
        by: String,
        /// How many frames.
        frames: u32,
    },
    /// Twice the size.
    Double(Doubling),
    /// Inputs: residual, branch. Their sum.
    Add,
    /// Inputs: query, key, value. `softmax(q k^T / sqrt(c)) v` over all pixels of a frame, one
    /// head.
    Attention,
    /// The model's output.
    Output(Ending),
}

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// diffusers' name of the module: `decoder.up_blocks.1.resnets.0.conv1`.
    pub name: String,
    /// What it computes.
    pub op: Op,
    /// What it reads.
    pub inputs: Vec<TensorId>,
    /// What it produces.
    pub output: TensorId,
}

/// Operations in execution order. Every tensor is produced by exactly one node, before it is read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Graph {
    /// In execution order.
    pub nodes: Vec<Node>,
    /// Shape of each tensor, by [`TensorId`].
    pub shapes: Vec<Shape>,
}

impl Graph {
    /// Shape of `tensor`.
    pub fn shape(&self, tensor: TensorId) -> Shape {
        self.shapes[tensor.0]
    }

    fn push(&mut self, name: String, op: Op, inputs: &[TensorId], shape: Shape) -> TensorId {
        let output = TensorId(self.shapes.len());
        self.shapes.push(shape);
        self.nodes.push(Node { name, op, inputs: inputs.to_vec(), output });
        output
    }

    /// Adds the input. `shape` is that after `transform`.
    ///
    /// # Panics
    /// When `transform` is for another number of channels.
    pub fn input(&mut self, shape: Shape, transform: Transform) -> TensorId {
        let channels = (shape.channels * transform.patch * transform.patch) as usize;
        assert_eq!(
            [transform.factor.len(), transform.offset.len()],
            [channels; 2],
            "factors of another number of channels"
        );
        self.push("input".to_owned(), Op::Input(transform), &[], shape)
    }

    /// Adds a convolution to `channels` output channels that leaves the size as it is, with all of
    /// `NAME.weight` and `NAME.bias`.
    pub fn conv2d(&mut self, name: &str, input: TensorId, channels: u32, side: u32) -> TensorId {
        self.convolution(name, input, channels, Conv2d::of(name, Window::same(side)))
    }

    /// Adds a convolution to `channels` output channels of each frame.
    pub fn convolution(&mut self, name: &str, input: TensorId, channels: u32, conv: Conv2d) -> TensorId {
        let shape = self.shape(input);
        let [height, width] = [shape.height, shape.width].map(|extent| conv.window.output(extent));
        let frames = conv.phases * conv.time.map_or(shape.frames, |time| time.output(shape.frames));
        self.push(name.to_owned(), Op::Conv2d(conv), &[input], Shape { frames, height, width, channels })
    }

    /// Adds a group norm.
    pub fn group_norm(&mut self, name: &str, input: TensorId, groups: u32, eps: f32) -> TensorId {
        self.push(name.to_owned(), Op::GroupNorm { groups, eps }, &[input], self.shape(input))
    }

    /// Adds a norm of each pixel.
    pub fn pixel_norm(&mut self, name: &str, input: TensorId) -> TensorId {
        self.push(name.to_owned(), Op::PixelNorm, &[input], self.shape(input))
    }

    /// Adds a SiLU.
    pub fn silu(&mut self, input: TensorId) -> TensorId {
        self.push("silu".to_owned(), Op::Activate(Activation::Silu), &[input], self.shape(input))
    }

    /// Adds a `ReLU`.
    pub fn relu(&mut self, input: TensorId) -> TensorId {
        self.push("relu".to_owned(), Op::Activate(Activation::Relu), &[input], self.shape(input))
    }

    /// Keeps the last `frames` frames for the convolution `by` of the block after this one.
    pub fn keep(&mut self, input: TensorId, by: String, frames: u32) -> TensorId {
        self.push("keep".to_owned(), Op::Keep { by, frames }, &[input], self.shape(input))
    }

    /// Adds a doubling of height and width by nearest neighbour.
    pub fn upsample(&mut self, input: TensorId) -> TensorId {
        let shape = self.shape(input);
        let doubled = Shape { height: shape.height * 2, width: shape.width * 2, ..shape };
        self.push("upsample".to_owned(), Op::Double(Doubling::Nearest), &[input], doubled)
    }

    /// Adds a doubling of height and width that takes a quarter of the channels for each pixel.
    ///
    /// # Panics
    /// When the channels are no multiple of 16: groups of four would straddle pixels.
    pub fn shuffle(&mut self, input: TensorId) -> TensorId {
        let shape = self.shape(input);
        assert!(shape.channels.is_multiple_of(16), "a shuffle of {} channels", shape.channels);
        let doubled = Shape { height: shape.height * 2, width: shape.width * 2, channels: shape.channels / 4, ..shape };
        self.push("shuffle".to_owned(), Op::Double(Doubling::Shuffle), &[input], doubled)
    }

    /// Adds a sum of two tensors of one shape.
    ///
    /// # Panics
    /// When the shapes differ.
    pub fn add(&mut self, residual: TensorId, branch: TensorId) -> TensorId {
        assert_eq!(self.shape(residual), self.shape(branch), "a sum of two shapes");
        self.push("add".to_owned(), Op::Add, &[residual, branch], self.shape(residual))
    }

    /// Adds single-head attention over all pixels of each frame.
    pub fn attention(&mut self, name: &str, query: TensorId, key: TensorId, value: TensorId) -> TensorId {
        self.push(name.to_owned(), Op::Attention, &[query, key, value], self.shape(value))
    }

    /// Adds the output.
    pub fn output(&mut self, input: TensorId, ending: Ending) -> TensorId {
        self.push("output".to_owned(), Op::Output(ending), &[input], self.shape(input))
    }
}
