//! Rewrites the graph. Convolutions apply norms, activations and doublings as they read, and add
//! sums and apply `ReLU`s as they write.
//!
//! The result is a [`Fused`] graph. `stream_scale` chooses the factor at which half precision
//! stores each tensor.

use crate::model::graph::{
    Activation, Conv2d, Graph, GraphNode, Op, PastFrames, PixelNormKind, Regroup, Shape, TensorId, WINDOW, Weight,
    WeightSlice, Window,
};
use crate::plan::fused::{
    Conv, FrameWindow, Fused, KeptFrames, LinearAttention, Norm, Normalize, NormedSum, PixelNorm, Prologue, Residual,
    Shortcut, Stage,
};
use crate::plan::stream_scale;

/// Number added to the divisor of linear attention (diffusers' `SanaMultiscaleLinearAttention`).
const LINEAR_EPS: f32 = 1e-15;

/// A tensor of the graph that may not be stored: a stored tensor with a prologue.
#[derive(Debug, Clone, Copy)]
struct View {
    stored: TensorId,
    prologue: Prologue,
}

/// Fuses `graph`. `stream_scale` is 1 for f32 storage, see `plan::stream_scale`.
///
/// # Panics
/// Panics if the graph has an operation where no supported model has one: a bug in its builder.
pub fn fuse(graph: &Graph, stream_scale: f32) -> Fused {
    let view = |id| View { stored: TensorId(id), prologue: Prologue::default() };
    let mut fusing = Fusing {
        graph,
        readers: readers(graph),
        views: (0..graph.shapes.len()).map(view).collect(),
        keeps: vec![Vec::new(); graph.shapes.len()],
        fused: Fused {
            stages: Vec::new(),
            norms: Vec::new(),
            pixel_norms: Vec::new(),
            shapes: graph.shapes.clone(),
            factors: Vec::new(),
            measuring: 0,
        },
    };
    for index in 0..graph.nodes.len() {
        fusing.node(index);
    }
    let mut fused = fusing.fused;
    stream_scale::scale(&mut fused, stream_scale);
    fused
}

/// Returns the nodes that read each tensor, in order. A node that reads a tensor twice is listed
/// twice.
fn readers(graph: &Graph) -> Vec<Vec<usize>> {
    let mut readers = vec![Vec::new(); graph.shapes.len()];
    for (index, node) in graph.nodes.iter().enumerate() {
        for input in &node.inputs {
            readers[input.0].push(index);
        }
    }
    readers
}

struct Fusing<'a> {
    graph: &'a Graph,
    /// Nodes that read each tensor.
    readers: Vec<Vec<usize>>,
    /// View of each tensor.
    views: Vec<View>,
    /// Frames that the first convolution or sum that reads a stored tensor shall keep, by tensor.
    keeps: Vec<Vec<KeptFrames>>,
    fused: Fused,
}

impl Fusing<'_> {
    fn node(&mut self, index: usize) {
        let node = &self.graph.nodes[index];
        let (name, output) = (&node.name, node.output);
        match &node.op {
            Op::Input(transform) => self.fused.stages.push(Stage::Input { transform: transform.clone(), output }),
            Op::Conv2d(conv) => self.conv(node, conv),
            Op::GroupNorm { groups, eps } => {
                let tensor = self.stored(node.inputs[0], name);
                assert!(self.fused.norm_of(tensor).is_none(), "expected one norm of a tensor, found two at {name}");
                self.fused.norms.push(Norm { name: name.clone(), tensor, groups: *groups, eps: *eps });
                let norm = Some(Normalize::Group(self.fused.norms.len() - 1));
                self.views[output.0] = View { stored: tensor, prologue: Prologue { norm, ..Prologue::default() } };
            }
            Op::PixelNorm(kind) => self.pixel_norm(node, *kind),
            Op::Activate(activation) => self.activate(node.inputs[0], *activation, output),
            Op::Keep { by, frames } => {
                let tensor = self.stored(node.inputs[0], name);
                self.keeps[tensor.0].push(KeptFrames { by: by.clone(), frames: *frames });
                self.views[output.0] = View { stored: tensor, prologue: Prologue::default() };
            }
            Op::Window => {
                let input = self.stored(node.inputs[0], name);
                let keeps = [KeptFrames { by: name.clone(), frames: WINDOW }];
                self.fused.stages.push(Stage::Window(FrameWindow { name: name.clone(), input, output, keeps }));
            }
            Op::Double(doubling) => {
                let view = self.views[node.inputs[0].0];
                assert!(view.prologue.doubling.is_none(), "expected one doubling before a convolution, found two");
                let prologue = Prologue { doubling: Some(*doubling), ..view.prologue };
                self.views[output.0] = View { prologue, ..view };
            }
            Op::Add => self.add(index),
            Op::Regroup(regroup) => {
                let input = self.stored(node.inputs[0], name);
                let sum = node.inputs.get(1).map(|sum| self.summand(index, *sum, self.fused.stages.len()));
                let shortcut = Shortcut { sum, ..Shortcut::new(name.clone(), *regroup, input, output) };
                self.fused.stages.push(Stage::Shortcut(shortcut));
            }
            Op::Attention(sight) => {
                let inputs = [0, 1, 2].map(|input| self.stored(node.inputs[input], name));
                assert_eq!(self.fused.shape(output).frames, 1, "expected attention over one frame at {name}");
                self.fused.stages.push(Stage::Attention { name: name.clone(), inputs, sight: *sight, output });
            }
            Op::Gate => {
                let input = self.stored(node.inputs[0], name);
                let conv = self.convolution(input).filter(|conv| conv.groups > 1);
                let conv = conv.unwrap_or_else(|| panic!("no convolution of each channel before {output:?}"));
                (conv.gated, conv.output) = (true, output);
            }
            Op::LinearAttention { head_dim } => {
                let inputs = node.inputs.iter().map(|input| self.stored(*input, name)).collect();
                let attention =
                    LinearAttention { name: name.clone(), inputs, head_dim: *head_dim, output, eps: LINEAR_EPS };
                self.fused.stages.push(Stage::LinearAttention(attention));
            }
            Op::Output(ending) => {
                let input = self.stored(node.inputs[0], name);
                self.fused.stages.push(Stage::Output { input, ending: *ending });
            }
        }
    }

    fn pixel_norm(&mut self, node: &GraphNode, kind: PixelNormKind) {
        let name = &node.name;
        let tensor = self.stored(node.inputs[0], name);
        let weight = |part: &str| Weight::all(format!("{name}.{part}"));
        let (gamma, beta, least, eps) = match kind {
            // Lower bound of the divisor, as in torch's `normalize`.
            PixelNormKind::Gamma => (weight("gamma"), None, 1e-12, 0.0),
            PixelNormKind::Plain => (Weight::ones(), None, 0.0, 1e-8),
            PixelNormKind::Affine => (weight("weight"), Some(weight("bias")), 0.0, 1e-5),
        };
        self.fused.pixel_norms.push(PixelNorm { gamma, beta, tensor, least, eps });
        let norm = Some(Normalize::Pixel(self.fused.pixel_norms.len() - 1));
        self.views[node.output.0] = View { stored: tensor, prologue: Prologue { norm, ..Prologue::default() } };
    }

    fn conv(&mut self, node: &GraphNode, conv: &Conv2d) {
        let View { stored: input, prologue } = self.views[node.inputs[0].0];
        let channels = self.fused.shape(node.output).channels;
        assert!(
            conv.phases == 1
                || channels.is_multiple_of(4)
                || conv.weight.take == WeightSlice::Filled { block: channels },
            "expected each frame to have a multiple of 4 output channels at {}",
            node.name
        );
        let mut keeps = std::mem::take(&mut self.keeps[input.0]);
        let mut past = None;
        if let Some(time) = conv.time {
            if time.kept() > 0 {
                keeps.push(KeptFrames { by: node.name.clone(), frames: time.kept() });
            }
            match time.past {
                PastFrames::Copies => {
                    assert_eq!(self.fused.shape(input).frames, 1, "expected one frame at {}", node.name);
                }
                PastFrames::Kept if time.before() > 0 => past = Some(self.past(&node.name, input, time.before())),
                PastFrames::Kept | PastFrames::Window => {}
            }
        }
        self.fused.stages.push(Stage::Conv(Box::new(Conv {
            name: node.name.clone(),
            window: conv.window,
            weight: conv.weight.clone(),
            bias: conv.bias.clone(),
            input,
            prologue,
            time: conv.time,
            past,
            keeps,
            phases: conv.phases,
            groups: conv.groups,
            residual: None,
            relu: false,
            gated: false,
            gate_scale: 1.0,
            output: node.output,
            scale: 1.0,
            bias_scale: 1.0,
        })));
    }

    /// Adds the tensor with the `frames` frames before those of `like`, for the convolution `by`.
    fn past(&mut self, by: &str, like: TensorId, frames: u32) -> TensorId {
        let output = TensorId(self.fused.shapes.len());
        self.fused.shapes.push(Shape { frames, ..self.fused.shape(like) });
        self.fused.stages.push(Stage::Past { by: by.to_owned(), like, output });
        output
    }

    /// Returns the stored tensor that `tensor` stands for.
    ///
    /// # Panics
    /// Panics if `tensor` has a prologue, because `reader` cannot apply one.
    fn stored(&self, tensor: TensorId, reader: &str) -> TensorId {
        let View { stored, prologue } = self.views[tensor.0];
        assert_eq!(
            prologue,
            Prologue::default(),
            "expected a stored tensor as input of {reader}, found one with a prologue"
        );
        stored
    }

    /// Fuses an activation. A convolution applies a `ReLU` as it writes if the `ReLU` alone reads
    /// its output. One with a stride cannot, so a copy does. Readers apply every other activation
    /// as they read.
    fn activate(&mut self, input: TensorId, activation: Activation, output: TensorId) {
        let view = self.views[input.0];
        let alone = self.readers[input.0].len() == 1 && view.prologue == Prologue::default();
        if activation == Activation::Relu
            && alone
            && let Some(conv) = self.convolution(view.stored)
        {
            if conv.window.stride == 1 {
                (conv.relu, conv.output) = (true, output);
            } else {
                let name = format!("{} (ReLU)", conv.name);
                let copy = Shortcut { relu: true, ..Shortcut::new(name, Regroup::COPY, view.stored, output) };
                self.fused.stages.push(Stage::Shortcut(copy));
            }
            return;
        }
        assert!(
            view.prologue.activation.is_none() && view.prologue.doubling.is_none(),
            "expected no activation or doubling before an activation"
        );
        self.views[output.0] = View { prologue: Prologue { activation: Some(activation), ..view.prologue }, ..view };
    }

    /// Lets the convolution that produces the branch of a sum also add the residual. If the branch
    /// is the norm of a tensor, or frames of it are kept, a stage of its own adds it to the
    /// residual.
    fn add(&mut self, index: usize) {
        let node = &self.graph.nodes[index];
        let output = node.output;
        let View { stored: input, prologue } = self.views[node.inputs[1].0];
        if let Prologue { norm: Some(Normalize::Pixel(norm)), activation: None, doubling: None } = prologue {
            let sum = self.summand(index, node.inputs[0], self.fused.stages.len());
            let name = self.name_of(node.inputs[1]);
            self.fused.stages.push(Stage::NormedSum(NormedSum { name, norm, input, sum, output, scale: 1.0 }));
            return;
        }
        let [residual, branch] = [0, 1].map(|input| self.stored(node.inputs[input], &node.name));
        let keeps = std::mem::take(&mut self.keeps[branch.0]);
        if !keeps.is_empty() {
            // The branch is kept without the residual.
            let sum = Some(self.summand(index, node.inputs[0], self.fused.stages.len()));
            let name = format!("{} (sum)", keeps[0].by);
            let shortcut = Shortcut { sum, keeps, ..Shortcut::new(name, Regroup::COPY, branch, output) };
            self.fused.stages.push(Stage::Shortcut(shortcut));
            return;
        }
        let conv = self.producer(branch).unwrap_or_else(|| panic!("no convolution produces the branch of {output:?}"));
        // A product adds no shortcut as it runs.
        let is_product = matches!(&self.fused.stages[conv], Stage::Conv(conv) if conv.window.side == 1);
        let is_shortcut = self.readers[node.inputs[0].0] == [index] && !is_product;
        let shortcut = self.fused.stages.iter().position(|stage| {
            matches!(stage, Stage::Conv(conv) if is_shortcut && conv.output == residual && is_plain_product(conv))
        });
        let residual = match shortcut.map(|index| self.fused.stages.remove(index)) {
            Some(Stage::Conv(conv)) => {
                let Conv { weight, bias, input, .. } = *conv;
                Residual::Shortcut { weight, bias, input, scale: 1.0 }
            }
            _ => Residual::InPlace(self.summand(index, node.inputs[0], conv)),
        };
        let conv = self.convolution(branch).unwrap_or_else(|| unreachable!("a convolution produces the branch"));
        assert!(
            conv.residual.is_none() && !conv.relu,
            "expected a branch without a sum or a ReLU of its own at sum {output:?}"
        );
        (conv.residual, conv.output) = (Some(residual), output);
    }

    /// Returns the tensor that stage `stage` overwrites with a sum of node `index`: the summand, or
    /// a copy of it if the node also reads it as something else, or a later node reads it.
    fn summand(&mut self, index: usize, summand: TensorId, stage: usize) -> TensorId {
        let node = &self.graph.nodes[index];
        let input = self.stored(summand, &node.name);
        let reads = node.inputs.iter().filter(|other| self.views[other.0].stored == input).count();
        if reads == 1 && self.readers[summand.0].iter().max() == Some(&index) {
            return input;
        }
        let output = TensorId(self.fused.shapes.len());
        self.fused.shapes.push(self.fused.shape(input));
        let copy = Shortcut::new(format!("{} (copy of a summand)", node.name), Regroup::COPY, input, output);
        self.fused.stages.insert(stage, Stage::Shortcut(copy));
        output
    }

    /// Returns the name of the node that produces `tensor`.
    fn name_of(&self, tensor: TensorId) -> String {
        let producer = self.graph.nodes.iter().find(|node| node.output == tensor);
        producer.map(|node| node.name.clone()).unwrap_or_default()
    }

    /// Returns the index of the convolution that produces `tensor`.
    fn producer(&self, tensor: TensorId) -> Option<usize> {
        self.fused.stages.iter().rposition(|stage| matches!(stage, Stage::Conv(conv) if conv.output == tensor))
    }

    /// Returns the convolution that produces `tensor`.
    fn convolution(&mut self, tensor: TensorId) -> Option<&mut Conv> {
        let index = self.producer(tensor)?;
        if let Stage::Conv(conv) = &mut self.fused.stages[index] { Some(conv) } else { None }
    }
}

/// True if `conv` is a plain product: 1x1, without prologue, sum or `ReLU`.
fn is_plain_product(conv: &Conv) -> bool {
    let plain = conv.window == Window::same(1) && conv.time.is_none() && conv.phases == 1 && conv.groups == 1;
    plain && conv.prologue == Prologue::default() && conv.residual.is_none() && !conv.relu
}
