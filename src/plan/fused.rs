//! The fused graph: stages that each produce one stored tensor.
//!
//! Group norms are in a table of their own. The stage that produces a tensor measures it, and the
//! stages that read the tensor apply the norm.

use crate::model::graph::{
    Activation, Doubling, Ending, Regroup, Shape, Sight, TensorId, Time, Transform, Weight, Window,
};
use crate::plan::turns::Turns;
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
    /// Added to the variance; scaled like the variance.
    pub eps: f32,
}

/// A norm of each pixel: `x / max(sqrt(|x|^2 + c * eps), least) * sqrt(c) * gamma + beta`.
#[derive(Debug, Clone, PartialEq)]
pub struct PixelNorm {
    /// Factors, `[c]`.
    pub gamma: Weight,
    /// Summands, `[c]`, if it has any.
    pub beta: Option<Weight>,
    /// Tensor that it normalises.
    pub tensor: TensorId,
    /// Least length that a pixel is divided by; scaled like the tensor that the norm reads.
    pub least: f32,
    /// Number added to the mean of the squares; scaled like a square of that tensor.
    pub eps: f32,
}

/// The normalisation of a convolution's input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Normalize {
    /// Group norm, by statistics of the whole image.
    Group(NormId),
    /// Norm of each pixel by itself.
    Pixel(PixelNormId),
}

/// Operations that a convolution does as it reads its input.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Prologue {
    /// Norm, applied first.
    pub norm: Option<Normalize>,
    /// Activation, applied after the norm.
    pub activation: Option<Activation>,
    /// Doubling of the size.
    pub doubling: Option<Doubling>,
}

/// The summand of a convolution's result.
#[derive(Debug, Clone, PartialEq)]
pub enum Residual {
    /// A tensor of the same shape that no later stage reads: the result overwrites it.
    InPlace(TensorId),
    /// A 1x1 convolution of another tensor.
    Shortcut {
        /// Filter, `[c_out, c_in, 1, 1]`.
        weight: Weight,
        /// Bias, `[c_out]`.
        bias: Weight,
        /// Tensor that it reads.
        input: TensorId,
        /// Factor of the product.
        scale: f32,
    },
}

/// The last frames of a convolution's input as they are stored, after the frames of the past. They
/// are kept for the next part of a clip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFrames {
    /// Name of the convolution that reads them in the next part.
    pub by: String,
    /// Number of frames.
    pub frames: u32,
}

/// A convolution with its prologue, residual and activation.
#[derive(Debug, Clone, PartialEq)]
pub struct Conv {
    /// Name of the module in diffusers' spelling.
    pub name: String,
    /// Size, stride and border of the filter.
    pub window: Window,
    /// Filter, `[c_out, c_in, side, side]`.
    pub weight: Weight,
    /// Bias, `[c_out]`.
    pub bias: Weight,
    /// Tensor that it reads.
    pub input: TensorId,
    /// Operations that it does as it reads.
    pub prologue: Prologue,
    /// Movement over frames, for a convolution in time.
    pub time: Option<Time>,
    /// Frames before the first frame of the input, read with the same prologue: the output of a
    /// [`Stage::Past`]. `None` if these frames are copies of the first, or none are read.
    pub past: Option<TensorId>,
    /// Frames of the input that are kept for the next part of a clip.
    pub keeps: Vec<KeptFrames>,
    /// Output frames for each input frame. The filter's output channels are those of the first of
    /// these frames, then those of the second, and so on.
    pub phases: u32,
    /// Groups of channels.
    pub groups: u32,
    /// Summand.
    pub residual: Option<Residual>,
    /// True if the result is cut off below zero.
    pub relu: bool,
    /// True if a gate halves the channels of the result.
    pub gated: bool,
    /// Tensor that it produces.
    pub output: TensorId,
    /// Factor of what the gate returns.
    pub gate_scale: f32,
    /// Factor of the product.
    pub scale: f32,
    /// Factor of the bias, and of the shortcut's bias.
    pub bias_scale: f32,
}

impl Conv {
    /// Returns the number of past frames that the filter reads.
    pub(super) fn before(&self) -> u32 {
        self.time.map_or(0, Time::before)
    }

    /// Returns the number of frames that the filter reads at once.
    pub(super) fn taps(&self) -> u32 {
        self.time.map_or(1, |time| time.taps)
    }

    /// Returns the stride in frames.
    pub(super) fn step(&self) -> u32 {
        self.time.map_or(1, |time| time.stride)
    }

    /// Returns the residual that the result overwrites, if any.
    pub(super) fn replaced(&self) -> Option<TensorId> {
        match self.residual {
            Some(Residual::InPlace(residual)) => Some(residual),
            Some(Residual::Shortcut { .. }) | None => None,
        }
    }

    /// Returns the shape that the filter reads of an input of `shape`. A shuffle leaves a quarter
    /// of the channels.
    fn read_shape(&self, shape: Shape) -> Shape {
        match self.prologue.doubling {
            Some(Doubling::Shuffle) => Shape { channels: shape.channels / 4, ..shape },
            Some(Doubling::Nearest) | None => shape,
        }
    }
}

/// A shortcut without weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Shortcut {
    /// Name of the module in diffusers' spelling.
    pub name: String,
    /// Operation.
    pub regroup: Regroup,
    /// Tensor that it reads.
    pub input: TensorId,
    /// Summand, which no later stage reads: the result overwrites it.
    pub sum: Option<TensorId>,
    /// Tensor that it produces.
    pub output: TensorId,
    /// True if the result, without the summand, is cut off below zero.
    pub relu: bool,
    /// Factor of the result, without the summand.
    pub scale: f32,
    /// Frames of the input that are kept for the next part of a clip.
    pub keeps: Vec<KeptFrames>,
}

impl Shortcut {
    /// Returns a shortcut of this kind, and nothing more.
    pub(super) fn new(name: String, regroup: Regroup, input: TensorId, output: TensorId) -> Self {
        Self { name, regroup, input, sum: None, output, relu: false, scale: 1.0, keeps: Vec::new() }
    }
}

/// The sum of a tensor and of the norm of another.
#[derive(Debug, Clone, PartialEq)]
pub struct NormedSum {
    /// Name of the norm's module.
    pub name: String,
    /// Norm of the tensor that it reads.
    pub norm: PixelNormId,
    /// Tensor that it reads.
    pub input: TensorId,
    /// Summand, which no later stage reads: the result overwrites it.
    pub sum: TensorId,
    /// Tensor that it produces.
    pub output: TensorId,
    /// Factor of the norm.
    pub scale: f32,
}

/// Linear attention over all pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearAttention {
    /// Name of the module.
    pub name: String,
    /// Tensors with queries, keys and values. Each is measured as soon as all of it is there: sums
    /// over its pixels.
    pub inputs: Vec<TensorId>,
    /// Channels of a head.
    pub head_dim: u32,
    /// Tensor that it produces.
    pub output: TensorId,
    /// Number added to the divisor; scaled like a product of query and key.
    pub eps: f32,
}

/// The frames of a tensor, and before them the last frames of the part before.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameWindow {
    /// Name of the state that holds the frames of the part before.
    pub name: String,
    /// Tensor that it reads.
    pub input: TensorId,
    /// Tensor that it produces.
    pub output: TensorId,
    /// Its own last frames, which are kept for the next part.
    pub keeps: [KeptFrames; 1],
}

/// A step of the network that produces one stored tensor.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// The input.
    Input {
        /// Transform of the input.
        transform: Transform,
        /// Tensor that it produces.
        output: TensorId,
    },
    /// Frames that the part of the clip before kept.
    Past {
        /// Name of the convolution that reads it.
        by: String,
        /// Tensor whose frames these precede; same size, channels and factor.
        like: TensorId,
        /// Tensor that it produces.
        output: TensorId,
    },
    /// A tensor with past frames in front.
    Window(FrameWindow),
    /// A convolution or linear layer.
    Conv(Box<Conv>),
    /// A shortcut without weights.
    Shortcut(Shortcut),
    /// The sum of a tensor and of the norm of another.
    NormedSum(NormedSum),
    /// Linear attention over all pixels.
    LinearAttention(LinearAttention),
    /// Attention over all pixels of some frames.
    Attention {
        /// Name of the module.
        name: String,
        /// Query, key, value.
        inputs: [TensorId; 3],
        /// Frames whose keys and values it sees.
        sight: Sight,
        /// Tensor that it produces.
        output: TensorId,
    },
    /// The output.
    Output {
        /// Tensor that it reads.
        input: TensorId,
        /// Last operations before the result is handed out.
        ending: Ending,
    },
}

impl Stage {
    /// Returns the name of the stage's module, in diffusers' spelling.
    pub fn name(&self) -> &str {
        match self {
            Self::Input { .. } => "input",
            Self::Past { by, .. } => by,
            Self::Window(window) => &window.name,
            Self::Conv(conv) => &conv.name,
            Self::Shortcut(shortcut) => &shortcut.name,
            Self::NormedSum(sum) => &sum.name,
            Self::LinearAttention(attention) => &attention.name,
            Self::Attention { name, .. } => name,
            Self::Output { .. } => "output",
        }
    }

    /// Renames all tensors of the stage.
    fn rename_tensors(&mut self, rename: impl Fn(TensorId) -> TensorId) {
        match self {
            Self::Input { output, .. } => *output = rename(*output),
            Self::Past { like, output, .. } => (*like, *output) = (rename(*like), rename(*output)),
            Self::Window(FrameWindow { input, output, .. }) => (*input, *output) = (rename(*input), rename(*output)),
            Self::Conv(conv) => {
                (conv.input, conv.output) = (rename(conv.input), rename(conv.output));
                conv.past = conv.past.map(&rename);
                if let Some(Residual::InPlace(residual) | Residual::Shortcut { input: residual, .. }) =
                    &mut conv.residual
                {
                    *residual = rename(*residual);
                }
            }
            Self::Shortcut(Shortcut { input, sum, output, .. }) => {
                (*input, *output) = (rename(*input), rename(*output));
                *sum = sum.map(&rename);
            }
            Self::NormedSum(NormedSum { input, sum, output, .. }) => {
                (*input, *sum, *output) = (rename(*input), rename(*sum), rename(*output));
            }
            Self::LinearAttention(LinearAttention { inputs, output, .. }) => {
                inputs.iter_mut().for_each(|input| *input = rename(*input));
                *output = rename(*output);
            }
            Self::Attention { inputs, output, .. } => {
                *inputs = inputs.map(&rename);
                *output = rename(*output);
            }
            Self::Output { input, .. } => *input = rename(*input),
        }
    }

    /// Returns the tensor that the stage stores.
    pub fn output(&self) -> Option<TensorId> {
        match self {
            Self::Input { output, .. } | Self::Past { output, .. } | Self::Attention { output, .. } => Some(*output),
            Self::Window(window) => Some(window.output),
            Self::Conv(conv) => Some(conv.output),
            Self::Shortcut(shortcut) => Some(shortcut.output),
            Self::NormedSum(sum) => Some(sum.output),
            Self::LinearAttention(attention) => Some(attention.output),
            Self::Output { .. } => None,
        }
    }

    /// Returns the tensor that its output overwrites, if any.
    pub fn replaced(&self) -> Option<TensorId> {
        match self {
            Self::Conv(conv) => conv.replaced(),
            Self::Shortcut(shortcut) => shortcut.sum,
            Self::NormedSum(sum) => Some(sum.sum),
            Self::Input { .. }
            | Self::Past { .. }
            | Self::Window(_)
            | Self::LinearAttention(_)
            | Self::Attention { .. }
            | Self::Output { .. } => None,
        }
    }

    /// Returns the frames of its first input, or of a window, that are kept for the next part of a
    /// clip.
    pub fn keeps(&self) -> &[KeptFrames] {
        match self {
            Self::Conv(conv) => &conv.keeps,
            Self::Shortcut(shortcut) => &shortcut.keeps,
            Self::Window(window) => &window.keeps,
            Self::Input { .. }
            | Self::Past { .. }
            | Self::NormedSum(_)
            | Self::LinearAttention(_)
            | Self::Attention { .. }
            | Self::Output { .. } => &[],
        }
    }

    /// Returns the tensors that the stage reads, including the residual of a sum in place.
    pub fn inputs(&self) -> Vec<TensorId> {
        match self {
            Self::Input { .. } | Self::Past { .. } => Vec::new(),
            Self::Conv(conv) => {
                let residual = conv.residual.as_ref().map(|residual| match residual {
                    Residual::InPlace(residual) | Residual::Shortcut { input: residual, .. } => *residual,
                });
                [Some(conv.input), conv.past, residual].into_iter().flatten().collect()
            }
            Self::Shortcut(shortcut) => [Some(shortcut.input), shortcut.sum].into_iter().flatten().collect(),
            Self::NormedSum(sum) => vec![sum.input, sum.sum],
            Self::LinearAttention(attention) => attention.inputs.clone(),
            Self::Attention { inputs, .. } => inputs.to_vec(),
            Self::Window(FrameWindow { input, .. }) | Self::Output { input, .. } => vec![*input],
        }
    }
}

/// A fused graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Fused {
    /// Stages in execution order.
    pub stages: Vec<Stage>,
    /// All group norms.
    pub norms: Vec<Norm>,
    /// All norms of pixels.
    pub pixel_norms: Vec<PixelNorm>,
    /// Shape of each tensor, by [`TensorId`]; tensors that are not stored keep their shapes.
    pub shapes: Vec<Shape>,
    /// Factor at which each tensor is stored.
    pub factors: Vec<f32>,
    /// Number of stages at the beginning that only measure a smaller image, for the group norms of
    /// the other stages. 0 in an exact run.
    pub measuring: usize,
}

impl Fused {
    /// Returns the shape of `tensor`.
    pub fn shape(&self, tensor: TensorId) -> Shape {
        self.shapes[tensor.0]
    }

    /// Returns the same network for another image, with the group norms that `small` measures on
    /// its own image. Both belong to one model.
    ///
    /// `small` runs first and ends with the last tensor that a norm reads. Its statistics differ
    /// from those of this image, so the result is an estimate. In return, no stage but attention
    /// waits for a whole tensor. Without group norms there are no measuring stages, and the result
    /// is exact.
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

    /// Returns the parts of a clip in which `stage` runs: `None` for all, in a network that sees no
    /// later frames.
    pub(super) fn turns(&self, stage: &Stage) -> Option<Turns> {
        let result = self.result().filter(|result| self.shape(*result).first < 0)?;
        if let Stage::Window(FrameWindow { input, output, .. }) = stage {
            return Some(Turns::of(self.shape(*input)).and(self.readers(*output)));
        }
        Some(Turns::of(self.shape(stage.output().unwrap_or(result))))
    }

    /// Returns the parts of a clip in which stages run that read `tensor`.
    fn readers(&self, tensor: TensorId) -> Turns {
        let readers = self.stages.iter().filter(|stage| stage.inputs().contains(&tensor));
        let turns = readers.filter_map(Stage::output).map(|output| Turns::of(self.shape(output)));
        turns.reduce(Turns::and).unwrap_or(Turns::of(self.shape(tensor)))
    }

    /// Returns the norm that reads `tensor`, if any. A tensor has at most one.
    pub fn norm_of(&self, tensor: TensorId) -> Option<NormId> {
        self.norms.iter().position(|norm| norm.tensor == tensor)
    }

    /// Returns the linear attention that reads `tensor`, if any.
    pub(super) fn linear_attention_over(&self, tensor: TensorId) -> Option<&LinearAttention> {
        self.stages.iter().find_map(|stage| match stage {
            Stage::LinearAttention(attention) if attention.inputs.contains(&tensor) => Some(attention),
            _ => None,
        })
    }

    /// Returns the convolution called `name`.
    pub(super) fn conv_named(&self, name: &str) -> Option<&Conv> {
        self.stages.iter().find_map(|stage| match stage {
            Stage::Conv(conv) if conv.name == name => Some(&**conv),
            _ => None,
        })
    }

    /// Returns the tensor that the network hands out.
    pub fn result(&self) -> Option<TensorId> {
        self.stages.iter().rev().find_map(|stage| match stage {
            Stage::Output { input, .. } => Some(*input),
            Stage::Input { .. }
            | Stage::Past { .. }
            | Stage::Window(_)
            | Stage::Conv(_)
            | Stage::Shortcut(_)
            | Stage::NormedSum(_)
            | Stage::LinearAttention(_)
            | Stage::Attention { .. } => None,
        })
    }

    /// Returns the shape that the filter of `conv` reads, and the shape of its output before a
    /// gate. The first shape is as high and wide as the stored input.
    pub(super) fn shapes_of(&self, conv: &Conv) -> (Shape, Shape) {
        let output = self.shape(conv.output);
        let channels = if conv.gated { output.channels * 2 } else { output.channels };
        (conv.read_shape(self.shape(conv.input)), Shape { channels, ..output })
    }

    /// Returns the storage of `tensor`: f32 for the result and for what the result overwrites,
    /// `storage` for every other tensor.
    pub fn storage_of(&self, tensor: TensorId, storage: Storage) -> Storage {
        let mut held = self.result();
        while let Some(result) = held {
            if result == tensor {
                return Storage::F32;
            }
            let producer = self.stages.iter().rfind(|stage| stage.output() == held);
            held = producer.and_then(Stage::replaced);
        }
        storage
    }

    /// Returns the bytes of one row of `tensor`, of all its frames.
    pub fn row_bytes(&self, tensor: TensorId, storage: Storage) -> u64 {
        let shape = self.shape(tensor);
        let storage = self.storage_of(tensor, storage);
        u64::from(shape.width) * u64::from(shape.pixel4()) * storage.vec4_bytes()
    }

    /// Returns the role of `tensor` in attention, if any.
    pub fn attention_role(&self, tensor: TensorId) -> Option<Role> {
        let position = self.stages.iter().find_map(|stage| match stage {
            Stage::Attention { inputs, .. } => inputs.iter().position(|input| *input == tensor),
            _ => None,
        })?;
        Some([Role::Query, Role::Key, Role::Value][position])
    }

    /// True if `tensor` is cut by [`PlanOptions::keys_limit`](super::PlanOptions::keys_limit): keys
    /// and values, and the queries of attention that sees many frames.
    pub(super) fn is_cut_as_keys(&self, tensor: TensorId) -> bool {
        self.stages.iter().any(|stage| match stage {
            Stage::Attention { inputs: [query, key, value], sight, .. } => {
                [*key, *value].contains(&tensor) || *query == tensor && *sight != Sight::Own
            }
            _ => false,
        })
    }

    /// True if `stage` is attention or one of its inputs. Chunks of their outputs are padded to a
    /// multiple of four pixels.
    pub fn feeds_or_is_attention(&self, stage: &Stage) -> bool {
        matches!(stage, Stage::Attention { .. })
            || stage.output().is_some_and(|output| self.attention_role(output).is_some())
    }
}

/// The role of a tensor in attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Query: gives the rows of the scores.
    Query,
    /// Key: gives the columns of the scores.
    Key,
    /// Value: is weighted by the scores.
    Value,
}
