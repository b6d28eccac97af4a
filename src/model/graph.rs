//! A graph of operations on NHWC tensors with batch 1, in execution order. Shapes are inferred as nodes are added.

/// A tensor of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TensorId(pub usize);

/// Extents of a tensor `[h, w, c]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Rows, pixels.
    pub height: u32,
    /// Columns, pixels.
    pub width: u32,
    /// Channels, not padded.
    pub channels: u32,
}

impl Shape {
    /// Channels in groups of four, rounded up: how they lie in memory.
    pub fn channels4(self) -> u32 {
        self.channels.div_ceil(4)
    }
}

/// What a node computes from its inputs.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// The model's input: latents times `factor[c]` plus `offset[c]`.
    Latents {
        /// One factor per channel.
        factor: Vec<f32>,
        /// One summand per channel.
        offset: Vec<f32>,
    },
    /// A convolution with bias, stride 1, zero padding `filter / 2`. Weights: `NAME.weight` `[c_out, c_in, filter, filter]`, `NAME.bias` `[c_out]`.
    Conv2d {
        /// Side of the filter: 1 or 3, pixels.
        filter: u32,
    },
    /// Group normalisation with affine weights `NAME.weight`, `NAME.bias` `[c]`.
    GroupNorm {
        /// Number of groups.
        groups: u32,
        /// Added to the variance.
        eps: f32,
    },
    /// `x * sigmoid(x)`.
    Silu,
    /// Nearest neighbour, twice the size.
    Upsample,
    /// Inputs: residual, branch. Their sum.
    Add,
    /// Inputs: query, key, value. `softmax(q k^T / sqrt(c)) v` over all pixels, one head.
    Attention,
    /// The model's output: RGB in -1..1, not clamped.
    Image,
}

/// One operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// diffusers' name of the module, the prefix of its weights: `decoder.up_blocks.1.resnets.0.conv1`.
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

    /// Adds the input, of `shape`.
    pub fn latents(&mut self, shape: Shape, factor: Vec<f32>, offset: Vec<f32>) -> TensorId {
        self.push("latents".to_owned(), Op::Latents { factor, offset }, &[], shape)
    }

    /// Adds a convolution to `channels` output channels.
    pub fn conv2d(&mut self, name: &str, input: TensorId, channels: u32, filter: u32) -> TensorId {
        let shape = Shape { channels, ..self.shape(input) };
        self.push(name.to_owned(), Op::Conv2d { filter }, &[input], shape)
    }

    /// Adds a group norm.
    pub fn group_norm(&mut self, name: &str, input: TensorId, groups: u32, eps: f32) -> TensorId {
        self.push(name.to_owned(), Op::GroupNorm { groups, eps }, &[input], self.shape(input))
    }

    /// Adds a SiLU.
    pub fn silu(&mut self, input: TensorId) -> TensorId {
        self.push("silu".to_owned(), Op::Silu, &[input], self.shape(input))
    }

    /// Adds a doubling of height and width.
    pub fn upsample(&mut self, input: TensorId) -> TensorId {
        let shape = self.shape(input);
        let doubled = Shape { height: shape.height * 2, width: shape.width * 2, ..shape };
        self.push("upsample".to_owned(), Op::Upsample, &[input], doubled)
    }

    /// Adds a sum of two tensors of one shape.
    pub fn add(&mut self, residual: TensorId, branch: TensorId) -> TensorId {
        assert_eq!(self.shape(residual), self.shape(branch), "a sum of two shapes");
        self.push("add".to_owned(), Op::Add, &[residual, branch], self.shape(residual))
    }

    /// Adds single-head attention over all pixels.
    pub fn attention(&mut self, name: &str, query: TensorId, key: TensorId, value: TensorId) -> TensorId {
        self.push(name.to_owned(), Op::Attention, &[query, key, value], self.shape(value))
    }

    /// Adds the output.
    pub fn image(&mut self, input: TensorId) -> TensorId {
        self.push("image".to_owned(), Op::Image, &[input], self.shape(input))
    }
}
