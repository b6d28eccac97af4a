//! What fusion leaves of a graph: stages, each producing one tensor that is really stored.
//!
//! Group norms are a table beside them: their statistics belong to the stage that produces the
//! tensor, their application to the stages that read it.

use crate::model::graph::{Activation, Doubling, Ending, Shape, TensorId, Time, Transform, Weight, Window};
use crate::tensor::Storage;

/// A group norm of a [`Fused`] graph, by index.
pub type NormId = usize;

/// A norm of pixels of a [`Fused`] graph, by index.
pub type PixelNormId = usize;

/// A group norm: statistics of one tensor, and the affine weights `NAME.weight`, `NAME.bias`.
#[derive(Debug, Clone, PartialEq)]
pub struct Norm {
    /// Prefix of its weights.
    pub name: String,
    /// The tensor it normalises.
    pub tensor: TensorId,
    /// Number of groups.
    pub groups: u32,
    /// Added to the variance, scaled like it.
    pub eps: f32,
}

/// A norm of each pixel, with the weights `NAME.gamma`.
#[derive(Debug, Clone, PartialEq)]
pub struct PixelNorm {
    /// Prefix of its weights.
    pub name: String,
    /// The least length that a pixel is divided by, scaled like the tensor it reads.
    pub least: f32,
}

/// How a convolution normalises what it reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Normalize {
    /// By statistics of the whole image.
    Group(NormId),
    /// Each pixel by itself.
    Pixel(PixelNormId),
}

/// How a convolution reads its input.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Prologue {
    /// Normalise first.
    pub norm: Option<Normalize>,
    /// Then this.
    pub activation: Option<Activation>,
    /// Double the size.
    pub doubling: Option<Doubling>,
}

/// What is added to a convolution's result.
#[derive(Debug, Clone, PartialEq)]
pub enum Residual {
    /// A tensor of the same shape, which nobody reads afterwards: the result takes its place.
    InPlace(TensorId),
    /// A 1x1 convolution of a tensor.
    Shortcut {
        /// `[c_out, c_in, 1, 1]`.
        weight: Weight,
        /// `[c_out]`.
        bias: Weight,
        /// What it reads.
        input: TensorId,
        /// Factor of the product.
        scale: f32,
    },
}

/// The last frames of what a convolution reads, as it is stored, those of the past in front: kept
/// for the next block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// The convolution that they are for.
    pub by: String,
    /// How many.
    pub frames: u32,
}

/// A convolution with everything around it.
#[derive(Debug, Clone, PartialEq)]
pub struct Conv {
    /// diffusers' name of the module.
    pub name: String,
    /// The filter.
    pub window: Window,
    /// `[c_out, c_in, side, side]`.
    pub weight: Weight,
    /// `[c_out]`.
    pub bias: Weight,
    /// What it reads.
    pub input: TensorId,
    /// How.
    pub prologue: Prologue,
    /// How it moves over frames, where it does.
    pub time: Option<Time>,
    /// Frames before the first of the input, read likewise: [`Stage::Past`]'s. None where they are
    /// copies of the first.
    pub past: Option<TensorId>,
    /// What is kept of the input for the next block.
    pub keeps: Vec<Keep>,
    /// Frames that come of one: the filter's output channels are first those of the first, and so
    /// on.
    pub phases: u32,
    /// What is added.
    pub residual: Option<Residual>,
    /// Whether everything below zero is cut off in the end.
    pub relu: bool,
    /// What it produces.
    pub output: TensorId,
    /// Factor of the product.
    pub scale: f32,
    /// Factor of the bias, and of the shortcut's bias.
    pub bias_scale: f32,
}

impl Conv {
    /// Frames of the past that its filter sees.
    pub(super) fn before(&self) -> u32 {
        self.time.map_or(0, Time::before)
    }

    /// Frames that its filter sees at once.
    pub(super) fn taps(&self) -> u32 {
        self.time.map_or(1, |time| time.taps)
    }

    /// Frames from one that it computes to the next.
    pub(super) fn step(&self) -> u32 {
        self.time.map_or(1, |time| time.stride)
    }

    /// What the filter sees of an input of `shape`: with a shuffle, a quarter of the channels.
    fn read_shape(&self, shape: Shape) -> Shape {
        match self.prologue.doubling {
            Some(Doubling::Shuffle) => Shape { channels: shape.channels / 4, ..shape },
            Some(Doubling::Nearest) | None => shape,
        }
    }
}

/// A step of the network that produces one stored tensor.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// The input.
    Input {
        /// What is done to it.
        transform: Transform,
        /// What it produces.
        output: TensorId,
    },
    /// What was kept of the block before.
    Past {
        /// The convolution that reads it.
        by: String,
        /// The tensor that its frames are like.
        like: TensorId,
        /// What it produces.
        output: TensorId,
    },
    /// A convolution or linear layer.
    Conv(Box<Conv>),
    /// Attention over all pixels.
    Attention {
        /// Name of the module.
        name: String,
        /// Query, key, value.
        inputs: [TensorId; 3],
        /// What it produces.
        output: TensorId,
    },
    /// The output.
    Output {
        /// What it reads.
        input: TensorId,
        /// What is done to it.
        ending: Ending,
    },
}

impl Stage {
    /// The module of the network that it is, in diffusers' spelling.
    pub fn name(&self) -> &str {
        match self {
            Self::Input { .. } => "input",
            Self::Past { by, .. } => by,
            Self::Conv(conv) => &conv.name,
            Self::Attention { name, .. } => name,
            Self::Output { .. } => "output",
        }
    }

    /// Gives all its tensors other names.
    fn rename_tensors(&mut self, rename: impl Fn(TensorId) -> TensorId) {
        match self {
            Self::Input { output, .. } => *output = rename(*output),
            Self::Past { like, output, .. } => (*like, *output) = (rename(*like), rename(*output)),
            Self::Conv(conv) => {
                (conv.input, conv.output) = (rename(conv.input), rename(conv.output));
                conv.past = conv.past.map(&rename);
                if let Some(Residual::InPlace(residual) | Residual::Shortcut { input: residual, .. }) =
                    &mut conv.residual
                {
                    *residual = rename(*residual);
                }
            }
            Self::Attention { inputs, output, .. } => {
                *inputs = inputs.map(&rename);
                *output = rename(*output);
            }
            Self::Output { input, .. } => *input = rename(*input),
        }
    }

    /// The tensor that it stores.
    pub fn output(&self) -> Option<TensorId> {
        match self {
            Self::Input { output, .. } | Self::Past { output, .. } | Self::Attention { output, .. } => Some(*output),
            Self::Conv(conv) => Some(conv.output),
            Self::Output { .. } => None,
        }
    }

    /// The tensors that it reads; of a sum in place also the residual.
    pub fn inputs(&self) -> Vec<TensorId> {
        match self {
            Self::Input { .. } | Self::Past { .. } => Vec::new(),
            Self::Conv(conv) => {
                let residual = conv.residual.as_ref().map(|residual| match residual {
                    Residual::InPlace(residual) | Residual::Shortcut { input: residual, .. } => *residual,
                });
                [Some(conv.input), conv.past, residual].into_iter().flatten().collect()
            }
            Self::Attention { inputs, .. } => inputs.to_vec(),
            Self::Output { input, .. } => vec![*input],
        }
    }
}

/// A fused graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Fused {
    /// In execution order.
    pub stages: Vec<Stage>,
    /// All group norms.
    pub norms: Vec<Norm>,
    /// All norms of pixels.
    pub pixel_norms: Vec<PixelNorm>,
    /// Shape of each tensor, by [`TensorId`]; those that are not stored keep theirs.
    pub shapes: Vec<Shape>,
    /// Factor that each tensor is stored at.
    pub factors: Vec<f32>,
    /// Stages at the beginning that only measure: a smaller image's, whose group norms the others
    /// use. None in an exact run.
    pub measuring: usize,
}

impl Fused {
    /// Shape of `tensor`.
    pub fn shape(&self, tensor: TensorId) -> Shape {
        self.shapes[tensor.0]
    }

    /// The same network for another image, with the group norms that `small` measures on its own.
    /// Both are of one model.
    ///
    /// `small` runs first and ends with the last tensor that a norm reads. What it measures is not
    /// what this image would give, so the result is an estimate; but nothing has to wait for a
    /// whole tensor any more, except attention. Without group norms nothing is measured, and
    /// nothing estimated.
    pub fn with_norms_of(mut self, mut small: Self) -> Self {
        let is_measured = |stage: &Stage| stage.output().is_some_and(|output| small.norm_of(output).is_some());
        let measuring = small.stages.iter().rposition(is_measured).map_or(0, |last| last + 1);
        small.stages.truncate(measuring);
        let first = small.shapes.len();
        for stage in &mut self.stages {
            stage.rename_tensors(|tensor| TensorId(tensor.0 + first));
        }
        small.stages.append(&mut self.stages);
        small.shapes.append(&mut self.shapes);
        small.factors.append(&mut self.factors);
        Self { measuring, ..small }
    }

    /// The norm that reads `tensor`, if any. A tensor has at most one.
    pub fn norm_of(&self, tensor: TensorId) -> Option<NormId> {
        self.norms.iter().position(|norm| norm.tensor == tensor)
    }

    /// The convolution of this name.
    pub(super) fn conv_named(&self, name: &str) -> Option<&Conv> {
        self.stages.iter().find_map(|stage| match stage {
            Stage::Conv(conv) if conv.name == name => Some(&**conv),
            _ => None,
        })
    }

    /// The tensor that the network hands out.
    pub fn result(&self) -> Option<TensorId> {
        self.stages.iter().rev().find_map(|stage| match stage {
            Stage::Output { input, .. } => Some(*input),
            Stage::Input { .. } | Stage::Past { .. } | Stage::Conv(_) | Stage::Attention { .. } => None,
        })
    }
    /// Shapes of what the filter of `conv` sees, and of its output. The first is as high and wide
    /// as the stored input.
    pub(super) fn shapes_of(&self, conv: &Conv) -> (Shape, Shape) {
        (conv.read_shape(self.shape(conv.input)), self.shape(conv.output))
    }

    /// How `tensor` is stored: the result in f32, everything else as `storage` says.
    pub fn storage_of(&self, tensor: TensorId, storage: Storage) -> Storage {
        if self.result() == Some(tensor) { Storage::F32 } else { storage }
    }

    /// Bytes of one row of `tensor`, of all its frames, where others are stored as `storage`.
    pub fn row_bytes(&self, tensor: TensorId, storage: Storage) -> u64 {
        let shape = self.shape(tensor);
        let storage = self.storage_of(tensor, storage);
        u64::from(shape.width) * u64::from(shape.pixel4()) * storage.vec4_bytes()
    }

    /// What attention takes `tensor` for.
    pub fn attention_role(&self, tensor: TensorId) -> Option<Role> {
        let position = self.stages.iter().find_map(|stage| match stage {
            Stage::Attention { inputs, .. } => inputs.iter().position(|input| *input == tensor),
            _ => None,
        })?;
        Some([Role::Query, Role::Key, Role::Value][position])
    }

    /// Whether `stage` is attention, or one of its inputs: their chunks are padded to a multiple of
    /// four pixels.
    pub fn feeds_or_is_attention(&self, stage: &Stage) -> bool {
        matches!(stage, Stage::Attention { .. })
            || stage.output().is_some_and(|output| self.attention_role(output).is_some())
    }
}

/// What attention takes a tensor for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Rows of the scores.
    Query,
    /// Columns of the scores.
    Key,
    /// What the scores weigh.
    Value,
}
