//! Graph rewrite: norms, SiLU and upsampling become what a convolution does as it reads, sums what it does as it writes.
//!
//! What is left is a list of stages, each producing one tensor that is really stored. Norms become a table beside them: their
//! statistics belong to the stage that produces the tensor, their application to the stages that read it.
//!
//! For half-precision storage the residual stream is kept at `stream_scale` times its value, a power of two. Group norms undo
//! it exactly (eps is scaled with it), so models whose stream grows beyond 65504, SDXL's above all, decode without overflow.

use crate::model::graph::{Activation, Doubling, Graph, Op, Shape, TensorId, Transform, Window};

/// A group norm of a [`Fused`] graph, by index.
pub type NormId = usize;

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

/// How a convolution reads its input.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Prologue {
    /// Normalise first.
    pub norm: Option<NormId>,
    /// Then SiLU.
    pub activate: bool,
    /// Double the size by nearest neighbour.
    pub upsample: bool,
}

/// What is added to a convolution's result.
#[derive(Debug, Clone, PartialEq)]
pub enum Residual {
    /// A tensor of the same shape, which nobody reads afterwards: the result takes its place.
    InPlace(TensorId),
    /// A 1x1 convolution of a tensor.
    Shortcut {
        /// Prefix of its weights.
        name: String,
        /// What it reads.
        input: TensorId,
    },
}

/// A convolution with everything around it.
#[derive(Debug, Clone, PartialEq)]
pub struct Conv {
    /// Prefix of its weights.
    pub name: String,
    /// Side of the filter, pixels.
    pub filter: u32,
    /// What it reads.
    pub input: TensorId,
    /// How.
    pub prologue: Prologue,
    /// What is added.
    pub residual: Option<Residual>,
    /// What it produces.
    pub output: TensorId,
    /// Factor of the product.
    pub scale: f32,
    /// Factor of the bias, and of the shortcut's bias.
    pub bias_scale: f32,
}

/// A step of the decoder that produces one stored tensor.
#[derive(Debug, Clone, PartialEq)]
pub enum Stage {
    /// The input.
    Latents {
        /// One factor per channel.
        factor: Vec<f32>,
        /// One summand per channel.
        offset: Vec<f32>,
        /// What it produces.
        output: TensorId,
    },
    /// A convolution or linear layer.
    Conv(Conv),
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
    Image {
        /// What it reads.
        input: TensorId,
    },
}

impl Stage {
    /// The module of the network that it is, in diffusers' spelling.
    pub fn name(&self) -> &str {
        match self {
            Self::Latents { .. } => "latents",
            Self::Conv(conv) => &conv.name,
            Self::Attention { name, .. } => name,
            Self::Image { .. } => "image",
        }
    }

    /// Gives all its tensors other names.
    fn rename_tensors(&mut self, rename: impl Fn(TensorId) -> TensorId) {
        match self {
            Self::Latents { output, .. } => *output = rename(*output),
            Self::Conv(conv) => {
                (conv.input, conv.output) = (rename(conv.input), rename(conv.output));
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
            Self::Image { input } => *input = rename(*input),
        }
    }

    /// The tensor that it stores.
    pub fn output(&self) -> Option<TensorId> {
        match self {
            Self::Latents { output, .. } | Self::Attention { output, .. } => Some(*output),
            Self::Conv(conv) => Some(conv.output),
            Self::Image { .. } => None,
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
    /// Shape of each tensor, by [`TensorId`]; those that are not stored keep theirs.
    pub shapes: Vec<Shape>,
    /// Stages at the beginning that only measure: a smaller image's, whose group norms the others use. None in an exact decode.
    pub measuring: usize,
}

impl Fused {
    /// Shape of `tensor`.
    pub fn shape(&self, tensor: TensorId) -> Shape {
        self.shapes[tensor.0]
    }

    /// The same network for another image, with the group norms that `small` measures on its own. Both are of one model.
    ///
    /// `small` runs first and ends with the last tensor that a norm reads. What it measures is not what this image would give, so the result is an
    /// estimate; but nothing has to wait for a whole tensor any more, except attention.
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
        Self { measuring, ..small }
    }

    /// The norm that reads `tensor`, if any. A tensor has at most one.
    pub fn norm_of(&self, tensor: TensorId) -> Option<NormId> {
        self.norms.iter().position(|norm| norm.tensor == tensor)
    }
}

/// A tensor of the graph that is not stored: a stored one with a prologue.
#[derive(Debug, Clone, Copy)]
struct View {
    stored: TensorId,
    prologue: Prologue,
}

/// Fuses `graph`. `stream_scale` is 1 for f32 storage.
///
/// # Panics
/// When the graph has an operation where none of our models has one: a bug in its builder.
pub fn fuse(graph: &Graph, stream_scale: f32) -> Fused {
    let mut fused = Fused { stages: Vec::new(), norms: Vec::new(), shapes: graph.shapes.clone(), measuring: 0 };
    let mut views: Vec<View> =
        (0..graph.shapes.len()).map(|id| View { stored: TensorId(id), prologue: Prologue::default() }).collect();
    for node in &graph.nodes {
        let output = node.output;
        match &node.op {
            Op::Input(Transform { factor, offset, .. }) => {
                fused.stages.push(Stage::Latents { factor: factor.clone(), offset: offset.clone(), output });
            }
            Op::Conv2d(conv) => {
                assert_eq!(conv.window, Window::same(conv.window.side), "not yet");
                let View { stored: input, prologue } = views[node.inputs[0].0];
                let (name, filter) = (node.name.clone(), conv.window.side);
                fused.stages.push(Stage::Conv(Conv {
                    name,
                    filter,
                    input,
                    prologue,
                    residual: None,
                    output,
                    scale: 1.0,
                    bias_scale: 1.0,
                }));
            }
            Op::GroupNorm { groups, eps } => {
                let tensor = node.inputs[0];
                assert!(fused.norm_of(tensor).is_none(), "two norms read the same tensor at {}", node.name);
                fused.norms.push(Norm { name: node.name.clone(), tensor, groups: *groups, eps: *eps });
                views[output.0] = View {
                    stored: tensor,
                    prologue: Prologue { norm: Some(fused.norms.len() - 1), ..Prologue::default() },
                };
            }
            Op::Activate(Activation::Silu) => {
                let view = views[node.inputs[0].0];
                views[output.0] = View { prologue: Prologue { activate: true, ..view.prologue }, ..view };
            }
            Op::Double(Doubling::Nearest) => {
                let view = views[node.inputs[0].0];
                views[output.0] = View { prologue: Prologue { upsample: true, ..view.prologue }, ..view };
            }
            Op::Add => fuse_add(&mut fused, node.inputs[0], node.inputs[1], output),
            Op::Attention => {
                let inputs = [node.inputs[0], node.inputs[1], node.inputs[2]];
                fused.stages.push(Stage::Attention { name: node.name.clone(), inputs, output });
            }
            Op::Output(_) => fused.stages.push(Stage::Image { input: node.inputs[0] }),
            Op::PixelNorm | Op::Activate(Activation::Relu) | Op::Double(Doubling::Shuffle) => todo!(),
        }
    }
    scale_stream(&mut fused, stream_scale);
    fused
}

/// Makes the stage that produces `branch` add `residual` and produce `output`.
fn fuse_add(fused: &mut Fused, residual: TensorId, branch: TensorId, output: TensorId) {
    // A shortcut is read by the sum alone; the stream itself is also read by a norm.
    let is_stream = fused.norm_of(residual).is_some();
    let shortcut = fused.stages.iter().position(
        |stage| matches!(stage, Stage::Conv(conv) if !is_stream && conv.output == residual && conv.filter == 1),
    );
    let residual = match shortcut.map(|index| fused.stages.remove(index)) {
        Some(Stage::Conv(conv)) => Residual::Shortcut { name: conv.name, input: conv.input },
        _ => Residual::InPlace(residual),
    };
    let conv = fused.stages.iter_mut().rev().find_map(|stage| match stage {
        Stage::Conv(conv) if conv.output == branch => Some(conv),
        _ => None,
    });
    let conv = conv.unwrap_or_else(|| panic!("no convolution produces the branch of sum {output:?}"));
    conv.residual = Some(residual);
    conv.output = output;
}

/// Keeps every tensor that a norm or a sum reads at `scale` times its value. See the module's text.
fn scale_stream(fused: &mut Fused, scale: f32) {
    let mut factors = vec![1.0_f32; fused.shapes.len()];
    for stage in &fused.stages {
        if let Stage::Conv(conv) = stage {
            let normed = fused.norm_of(conv.output).is_some();
            let upsampled = fused.stages.iter().any(|reader| {
                matches!(reader, Stage::Conv(reader) if reader.input == conv.output && reader.prologue.upsample)
            });
            if normed || upsampled {
                factors[conv.output.0] = scale;
            }
        }
    }
    for norm in &mut fused.norms {
        let factor = factors[norm.tensor.0];
        norm.eps *= factor * factor;
    }
    for stage in &mut fused.stages {
        if let Stage::Conv(conv) = stage {
            let input = if conv.prologue.norm.is_some() { 1.0 } else { factors[conv.input.0] };
            conv.scale = factors[conv.output.0] / input;
            conv.bias_scale = factors[conv.output.0];
        }
    }
}

impl Fused {
    /// What attention takes `tensor` for.
    pub fn attention_role(&self, tensor: TensorId) -> Option<Role> {
        let position = self.stages.iter().find_map(|stage| match stage {
            Stage::Attention { inputs, .. } => inputs.iter().position(|input| *input == tensor),
            _ => None,
        })?;
        Some([Role::Query, Role::Key, Role::Value][position])
    }

    /// Whether `stage` is attention, or one of its inputs: their chunks are padded to a multiple of four pixels.
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
