//! Graph rewrite: norms, activations and doublings become what a convolution does as it reads, sums and `ReLU`s what it does as it writes.
//!
//! What is left is a list of stages, each producing one tensor that is really stored. Group norms become a table beside them: their
//! statistics belong to the stage that produces the tensor, their application to the stages that read it. Which factor a tensor is stored at, in half
//! precision, is `half`'s.

use crate::model::graph::{Activation, Doubling, Ending, Graph, Op, Shape, TensorId, Transform, Weight, Window};
use crate::plan::half;
use crate::plan::readers::readers;

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
            Self::Conv(conv) => &conv.name,
            Self::Attention { name, .. } => name,
            Self::Output { .. } => "output",
        }
    }

    /// Gives all its tensors other names.
    fn rename_tensors(&mut self, rename: impl Fn(TensorId) -> TensorId) {
        match self {
            Self::Input { output, .. } => *output = rename(*output),
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
            Self::Output { input, .. } => *input = rename(*input),
        }
    }

    /// The tensor that it stores.
    pub fn output(&self) -> Option<TensorId> {
        match self {
            Self::Input { output, .. } | Self::Attention { output, .. } => Some(*output),
            Self::Conv(conv) => Some(conv.output),
            Self::Output { .. } => None,
        }
    }

    /// The tensors that it reads; of a sum in place also the residual.
    pub fn inputs(&self) -> Vec<TensorId> {
        match self {
            Self::Input { .. } => Vec::new(),
            Self::Conv(conv) => match &conv.residual {
                None => vec![conv.input],
                Some(Residual::InPlace(residual) | Residual::Shortcut { input: residual, .. }) => {
                    vec![conv.input, *residual]
                }
            },
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
    /// Stages at the beginning that only measure: a smaller image's, whose group norms the others use. None in an exact run.
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
    /// estimate; but nothing has to wait for a whole tensor any more, except attention. Without group norms nothing is measured, and nothing estimated.
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

    /// The tensor that the network hands out.
    pub fn result(&self) -> Option<TensorId> {
        self.stages.iter().rev().find_map(|stage| match stage {
            Stage::Output { input, .. } => Some(*input),
            Stage::Input { .. } | Stage::Conv(_) | Stage::Attention { .. } => None,
        })
    }
}

/// A tensor of the graph that is not stored: a stored one with a prologue.
#[derive(Debug, Clone, Copy)]
struct View {
    stored: TensorId,
    prologue: Prologue,
}

/// Fuses `graph`. `stream_scale` is 1 for f32 storage, see [`half`].
///
/// # Panics
/// When the graph has an operation where none of our models has one: a bug in its builder.
pub fn fuse(graph: &Graph, stream_scale: f32) -> Fused {
    let view = |id| View { stored: TensorId(id), prologue: Prologue::default() };
    let mut fusing = Fusing {
        graph,
        readers: readers(graph),
        views: (0..graph.shapes.len()).map(view).collect(),
        fused: Fused {
            stages: Vec::new(),
            norms: Vec::new(),
            pixel_norms: Vec::new(),
            shapes: graph.shapes.clone(),
            measuring: 0,
        },
    };
    for index in 0..graph.nodes.len() {
        fusing.node(index);
    }
    let mut fused = fusing.fused;
    half::scale(&mut fused, stream_scale);
    fused
}

struct Fusing<'a> {
    graph: &'a Graph,
    /// By tensor, the nodes that read it.
    readers: Vec<Vec<usize>>,
    /// By tensor.
    views: Vec<View>,
    fused: Fused,
}

impl Fusing<'_> {
    fn node(&mut self, index: usize) {
        let node = &self.graph.nodes[index];
        let (name, output) = (&node.name, node.output);
        match &node.op {
            Op::Input(transform) => self.fused.stages.push(Stage::Input { transform: transform.clone(), output }),
            Op::Conv2d(conv) => {
                let View { stored: input, prologue } = self.views[node.inputs[0].0];
                self.fused.stages.push(Stage::Conv(Box::new(Conv {
                    name: name.clone(),
                    window: conv.window,
                    weight: conv.weight.clone(),
                    bias: conv.bias.clone(),
                    input,
                    prologue,
                    residual: None,
                    relu: false,
                    output,
                    scale: 1.0,
                    bias_scale: 1.0,
                })));
            }
            Op::GroupNorm { groups, eps } => {
                let tensor = self.stored(node.inputs[0], name);
                assert!(self.fused.norm_of(tensor).is_none(), "two norms read the same tensor at {name}");
                self.fused.norms.push(Norm { name: name.clone(), tensor, groups: *groups, eps: *eps });
                let norm = Some(Normalize::Group(self.fused.norms.len() - 1));
                self.views[output.0] = View { stored: tensor, prologue: Prologue { norm, ..Prologue::default() } };
            }
            Op::PixelNorm => {
                let tensor = self.stored(node.inputs[0], name);
                // torch's `normalize` divides by no less than this.
                self.fused.pixel_norms.push(PixelNorm { name: name.clone(), least: 1e-12 });
                let norm = Some(Normalize::Pixel(self.fused.pixel_norms.len() - 1));
                self.views[output.0] = View { stored: tensor, prologue: Prologue { norm, ..Prologue::default() } };
            }
            Op::Activate(activation) => self.activate(node.inputs[0], *activation, output),
            // For the convolution that reads it first.
            Op::Keep { .. } => self.views[output.0] = self.views[node.inputs[0].0],
            Op::Double(doubling) => {
                let view = self.views[node.inputs[0].0];
                assert!(view.prologue.doubling.is_none(), "a doubling of a doubling: no model has one");
                let prologue = Prologue { doubling: Some(*doubling), ..view.prologue };
                self.views[output.0] = View { prologue, ..view };
            }
            Op::Add => self.add(index),
            Op::Attention => {
                let inputs = [0, 1, 2].map(|input| self.stored(node.inputs[input], name));
                self.fused.stages.push(Stage::Attention { name: name.clone(), inputs, output });
            }
            Op::Output(ending) => {
                let input = self.stored(node.inputs[0], name);
                self.fused.stages.push(Stage::Output { input, ending: *ending });
            }
        }
    }

    /// The stored tensor that `tensor` is.
    fn stored(&self, tensor: TensorId, reader: &str) -> TensorId {
        let View { stored, prologue } = self.views[tensor.0];
        assert_eq!(prologue, Prologue::default(), "{reader} reads what only a convolution can");
        stored
    }

    /// A `ReLU` that alone reads what a convolution makes is done as that is written; every other activation as its readers read.
    fn activate(&mut self, input: TensorId, activation: Activation, output: TensorId) {
        let view = self.views[input.0];
        let alone = self.readers[input.0].len() == 1 && view.prologue == Prologue::default();
        if activation == Activation::Relu
            && alone
            && let Some(conv) = self.producer(view.stored)
        {
            (conv.relu, conv.output) = (true, output);
            return;
        }
        assert!(
            view.prologue.activation.is_none() && view.prologue.doubling.is_none(),
            "an activation of an activation"
        );
        self.views[output.0] = View { prologue: Prologue { activation: Some(activation), ..view.prologue }, ..view };
    }

    /// Makes the convolution that produces the branch of a sum add the residual, too.
    fn add(&mut self, index: usize) {
        let node = &self.graph.nodes[index];
        let [residual, branch] = [0, 1].map(|input| self.stored(node.inputs[input], &node.name));
        let is_shortcut = self.readers[node.inputs[0].0] == [index];
        let shortcut = self.fused.stages.iter().position(|stage| {
            matches!(stage, Stage::Conv(conv) if is_shortcut && conv.output == residual && is_plain_product(conv))
        });
        let residual = match shortcut.map(|index| self.fused.stages.remove(index)) {
            Some(Stage::Conv(conv)) => {
                let Conv { weight, bias, input, .. } = *conv;
                Residual::Shortcut { weight, bias, input, scale: 1.0 }
            }
            _ => {
                let last = self.readers[node.inputs[0].0].iter().max();
                assert_eq!(last, Some(&index), "a residual of {:?} that is read after the sum", node.output);
                Residual::InPlace(residual)
            }
        };
        let output = node.output;
        let conv = self.producer(branch);
        let conv = conv.unwrap_or_else(|| panic!("no convolution produces the branch of sum {output:?}"));
        assert!(conv.residual.is_none() && !conv.relu, "a branch of sum {output:?} that is a sum itself");
        (conv.residual, conv.output) = (Some(residual), output);
    }

    /// The convolution that produces `tensor`.
    fn producer(&mut self, tensor: TensorId) -> Option<&mut Conv> {
        self.fused.stages.iter_mut().rev().find_map(|stage| match stage {
            Stage::Conv(conv) if conv.output == tensor => Some(&mut **conv),
            _ => None,
        })
    }
}

/// Whether `conv` is a product and nothing else.
fn is_plain_product(conv: &Conv) -> bool {
    conv.window == Window::same(1) && conv.prologue == Prologue::default() && conv.residual.is_none() && !conv.relu
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
