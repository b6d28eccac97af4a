//! A graph of operations on NHWC tensors with batch 1, in execution order. Each new node infers the
//! shape of its output.
//!
//! Builders (`model/{kl,hunyuan_image,hunyuan_video,dc,tiny,wan,seedvr,ltx2}.rs`) write the graph
//! of a network, and `plan` runs it. Nothing else knows a family.

mod operations;

pub use self::operations::{
    Activation, Border, Conv2d, Doubling, Ending, Op, PastFrames, PixelNormKind, Regroup, Resize, Sight, Time,
    Transform, WINDOW, Weight, WeightSlice, Window,
};

/// Index of a tensor in a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId(pub usize);

/// Extents of a tensor `[h, w, frames, c]`. An image has one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Number of frames.
    pub frames: u32,
    /// Number of rows in pixels.
    pub height: u32,
    /// Number of columns in pixels.
    pub width: u32,
    /// Number of channels, without padding.
    pub channels: u32,
    /// Frame of the clip that is its first frame in the first part. Negative in a network that sees
    /// later frames: its tensors lag behind the latents, and begin with frames that do not exist.
    pub first: i32,
}

impl Shape {
    /// Returns the shape of one frame.
    pub const fn image(height: u32, width: u32, channels: u32) -> Self {
        Self { frames: 1, height, width, channels, first: 0 }
    }

    /// Returns the part in which its first frame that exists comes, counted from 0.
    pub fn delay(self) -> u32 {
        delay(self.first, self.frames)
    }

    /// Returns the number of groups of four channels in one frame, rounded up. Channels lie in
    /// memory in these groups.
    pub fn channels4(self) -> u32 {
        self.channels.div_ceil(4)
    }

    /// Returns the number of groups of four channels in one pixel, over all frames.
    pub fn pixel4(self) -> u32 {
        self.frames * self.channels4()
    }
}

/// Returns the number of parts before that with frame 0 of a clip, for tensors of `frames` frames
/// that begin with frame `first` in the first part.
pub(crate) fn delay(first: i32, frames: u32) -> u32 {
    first.unsigned_abs() / frames
}

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphNode {
    /// Name of the module in diffusers: `decoder.up_blocks.1.resnets.0.conv1`.
    pub name: String,
    /// The operation.
    pub op: Op,
    /// Tensors that it reads.
    pub inputs: Vec<TensorId>,
    /// Tensor that it produces.
    pub output: TensorId,
}

/// Operations in execution order. Exactly one node produces each tensor, before any node reads it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Graph {
    /// Nodes in execution order.
    pub nodes: Vec<GraphNode>,
    /// Shape of each tensor, by [`TensorId`].
    pub shapes: Vec<Shape>,
}

impl Graph {
    /// Returns the shape of `tensor`.
    pub fn shape(&self, tensor: TensorId) -> Shape {
        self.shapes[tensor.0]
    }

    fn push(&mut self, name: String, op: Op, inputs: &[TensorId], shape: Shape) -> TensorId {
        let output = TensorId(self.shapes.len());
        self.shapes.push(shape);
        self.nodes.push(GraphNode { name, op, inputs: inputs.to_vec(), output });
        output
    }

    /// Adds the input. `shape` is the shape after `transform`.
    ///
    /// # Panics
    /// If `transform` has another number of channels.
    pub fn input(&mut self, shape: Shape, transform: Transform) -> TensorId {
        let channels = (shape.channels * transform.patch * transform.patch) as usize;
        assert_eq!(
            [transform.factor.len(), transform.offset.len()],
            [channels; 2],
            "expected one factor and one summand for each channel"
        );
        self.push("input".to_owned(), Op::Input(transform), &[], shape)
    }

    /// Adds a convolution to `channels` output channels that keeps the size. It uses all of
    /// `NAME.weight` and `NAME.bias`.
    pub fn conv2d(&mut self, name: &str, input: TensorId, channels: u32, side: u32) -> TensorId {
        self.convolution(name, input, channels, Conv2d::of(name, Window::same(side)))
    }

    /// Adds a convolution to `channels` output channels of each frame.
    ///
    /// # Panics
    /// If it has groups that are neither single channels nor, in a 1x1 convolution, groups of four.
    pub fn convolution(&mut self, name: &str, input: TensorId, channels: u32, conv: Conv2d) -> TensorId {
        let shape = self.shape(input);
        let in_fours = |count: u32| count.is_multiple_of(4 * conv.groups);
        let fits = if conv.window.side == 1 {
            in_fours(channels) && in_fours(shape.channels)
        } else {
            [channels, shape.channels] == [conv.groups; 2]
        };
        assert!(conv.groups == 1 || fits, "{} groups of {} to {channels} channels", conv.groups, shape.channels);
        let [height, width] = [shape.height, shape.width].map(|extent| conv.window.output(extent));
        let frames = conv.phases * conv.time.map_or(shape.frames, |time| time.output(shape.frames));
        let first = shape.first + i32::from(conv.time.is_some_and(|time| time.past == PastFrames::Window));
        self.push(name.to_owned(), Op::Conv2d(conv), &[input], Shape { frames, height, width, channels, first })
    }

    /// Adds a group norm.
    pub fn group_norm(&mut self, name: &str, input: TensorId, groups: u32, eps: f32) -> TensorId {
        self.push(name.to_owned(), Op::GroupNorm { groups, eps }, &[input], self.shape(input))
    }

    /// Adds a norm of each pixel.
    pub fn pixel_norm(&mut self, name: &str, input: TensorId, kind: PixelNormKind) -> TensorId {
        self.push(name.to_owned(), Op::PixelNorm(kind), &[input], self.shape(input))
    }

    /// Adds a SiLU.
    pub fn silu(&mut self, input: TensorId) -> TensorId {
        self.push("silu".to_owned(), Op::Activate(Activation::Silu), &[input], self.shape(input))
    }

    /// Adds a `ReLU`.
    pub fn relu(&mut self, input: TensorId) -> TensorId {
        self.push("relu".to_owned(), Op::Activate(Activation::Relu), &[input], self.shape(input))
    }

    /// Keeps the last `frames` frames for the convolution `by` of the next part.
    pub fn keep(&mut self, input: TensorId, by: String, frames: u32) -> TensorId {
        self.push("keep".to_owned(), Op::Keep { by, frames }, &[input], self.shape(input))
    }

    /// Adds the frames before those of `input`. `name` is that of the frames that are kept.
    pub fn window(&mut self, name: &str, input: TensorId) -> TensorId {
        let shape = self.shape(input);
        let window = Shape { frames: shape.frames + WINDOW, first: shape.first - WINDOW.cast_signed(), ..shape };
        self.push(name.to_owned(), Op::Window, &[input], window)
    }

    /// Adds a doubling of height and width by nearest neighbour.
    pub fn upsample(&mut self, input: TensorId) -> TensorId {
        let shape = self.shape(input);
        let doubled = Shape { height: shape.height * 2, width: shape.width * 2, ..shape };
        self.push("upsample".to_owned(), Op::Double(Doubling::Nearest), &[input], doubled)
    }

    /// Adds a doubling of height and width that spreads the channels over four pixels.
    ///
    /// # Panics
    /// If the number of channels is no multiple of 16, because groups of four would cross pixels.
    pub fn shuffle(&mut self, input: TensorId) -> TensorId {
        let shape = self.shape(input);
        assert!(shape.channels.is_multiple_of(16), "a shuffle of {} channels", shape.channels);
        let doubled = Shape { height: shape.height * 2, width: shape.width * 2, channels: shape.channels / 4, ..shape };
        self.push("shuffle".to_owned(), Op::Double(Doubling::Shuffle), &[input], doubled)
    }

    /// Adds a gate, which halves the channels.
    ///
    /// # Panics
    /// If half of the channels is no multiple of 4, because a group of four would cross the middle.
    pub fn gate(&mut self, input: TensorId) -> TensorId {
        let shape = self.shape(input);
        assert!(shape.channels.is_multiple_of(8), "a gate of {} channels", shape.channels);
        self.push("gate".to_owned(), Op::Gate, &[input], Shape { channels: shape.channels / 2, ..shape })
    }

    /// Adds linear attention over all pixels, with heads of `head_dim` channels.
    ///
    /// # Panics
    /// If the channels of an input are not those of whole heads.
    pub fn linear_attention(&mut self, name: &str, inputs: &[TensorId], head_dim: u32) -> TensorId {
        let shape = self.shape(inputs[0]);
        let of = |input: &TensorId| {
            let channels = self.shape(*input).channels;
            assert!(channels.is_multiple_of(3 * head_dim), "{channels} channels in heads of {head_dim}");
            channels / 3
        };
        let channels = inputs.iter().map(of).sum();
        self.push(name.to_owned(), Op::LinearAttention { head_dim }, inputs, Shape { channels, ..shape })
    }

    /// Adds a sum of two tensors of the same shape.
    ///
    /// # Panics
    /// If the shapes differ.
    pub fn add(&mut self, residual: TensorId, branch: TensorId) -> TensorId {
        assert_eq!(self.shape(residual), self.shape(branch), "a sum of two shapes");
        self.push("add".to_owned(), Op::Add, &[residual, branch], self.shape(residual))
    }

    /// Adds a shortcut without weights to `channels` channels, and `sum` to its result.
    ///
    /// # Panics
    /// If the channels do not fit (see [`Regroup::count`]), or the frames. Also if one row of
    /// places is not copied once, to groups of four channels of a sum.
    pub fn regroup(
        &mut self,
        name: &str,
        input: TensorId,
        regroup: Regroup,
        channels: u32,
        sum: Option<TensorId>,
    ) -> TensorId {
        let Shape { frames, height, width, channels: from, first } = self.shape(input);
        let count = regroup.count(from, channels);
        let (skipped, frames) = regroup.read(frames);
        let fits = regroup.grows() || (frames + regroup.missing).is_multiple_of(regroup.frames);
        assert!(fits && count > 0, "{regroup:?} of {frames} frames and {from} to {channels} channels");
        if regroup.row.is_some() {
            let is_plain = regroup.resize == Resize::Double && regroup.by_place && regroup.frames == 1 && count == 1;
            let is_plain = is_plain && frames == 1 && !regroup.by_column;
            assert!(is_plain && channels.is_multiple_of(4) && sum.is_some(), "{regroup:?} to {channels} channels");
        }
        let side = regroup.side();
        let [height, width] = [height, width].map(|extent| if regroup.grows() { extent * side } else { extent / side });
        let inputs: Vec<TensorId> = std::iter::once(input).chain(sum).collect();
        let mut first = first + skipped.cast_signed();
        if regroup.grows() && first < 0 {
            // Frame 0 is the last of those that become of it.
            first = (first - 1) * regroup.frames.cast_signed() + 1;
        }
        let shape = Shape { frames: regroup.output(frames), height, width, channels, first };
        self.push(name.to_owned(), Op::Regroup(regroup), &inputs, shape)
    }

    /// Moves squares of pixels with `side` 1, 2 or 4 into channels, or back if `grow`, so that
    /// `channels` remain. If `by_column`, pixels of a column are neighbours in the channels.
    pub fn patches(&mut self, input: TensorId, side: u32, grow: bool, by_column: bool, channels: u32) -> TensorId {
        let resize = match (side, grow) {
            (2, true) => Resize::Double,
            (2, false) => Resize::Halve,
            (4, true) => Resize::Quadruple,
            (4, false) => Resize::Quarter,
            _ => return input,
        };
        self.regroup("patches", input, Regroup { resize, by_column, ..Regroup::COPY }, channels, None)
    }

    /// Adds single-head attention over all pixels of the frames in `sight`.
    pub fn attention(&mut self, name: &str, [query, key, value]: [TensorId; 3], sight: Sight) -> TensorId {
        self.push(name.to_owned(), Op::Attention(sight), &[query, key, value], self.shape(value))
    }

    /// Adds the output.
    pub fn output(&mut self, input: TensorId, ending: Ending) -> TensorId {
        self.push("output".to_owned(), Op::Output(ending), &[input], self.shape(input))
    }
}
