//! What several networks are made of: resnets, attention, and the middle of both.

use super::graph::{Conv2d, Graph, Past, Take, TensorId, Time, Window};

/// The eps of every group norm (`resnet_eps=1e-6`; torch's default of 1e-5 is not used).
const NORM_EPS: f32 = 1e-6;

/// How a network normalises.
#[derive(Debug, Clone, Copy)]
pub(super) enum Norm {
    /// Groups of channels over the whole image; the number of groups.
    Group(u32),
    /// Each pixel by itself.
    Pixel,
}

/// Which part of a clip a graph is for. Each frame sees those before it, so that a clip is run part
/// by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it: one frame, a single image.
    Image,
    /// One latent, or one frame, of a clip that goes on.
    First,
    /// What comes after that: a latent, or the frames that one latent is made of.
    Next,
}

/// What 3x3 convolutions are.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kernel {
    /// Filters of one image, of which something is taken.
    Image(Take),
    /// Filters of three frames.
    Frames(Past),
}

impl Kernel {
    /// Of `name`, moving over pixels as `window` and over frames by `stride`.
    pub(super) fn conv(self, name: &str, window: Window, stride: u32) -> Conv2d {
        let conv = Conv2d::of(name, window);
        match self {
            Self::Image(take) => conv.taking(take),
            Self::Frames(past) => conv.over(Time { taps: 3, stride, past }),
        }
    }
}

/// Adds blocks to a graph.
#[derive(Debug)]
pub(super) struct Blocks {
    pub(super) graph: Graph,
    pub(super) norm: Norm,
    pub(super) kernel: Kernel,
}

impl Blocks {
    pub(super) fn new(norm: Norm, kernel: Kernel) -> Self {
        Self { graph: Graph::default(), norm, kernel }
    }

    /// A 3x3 convolution to `channels` channels.
    pub(super) fn conv3(&mut self, name: &str, x: TensorId, channels: u32) -> TensorId {
        let conv = self.kernel.conv(name, Window::same(3), 1);
        self.graph.convolution(name, x, channels, conv)
    }

    /// A norm.
    pub(super) fn norm(&mut self, name: &str, x: TensorId) -> TensorId {
        match self.norm {
            Norm::Group(groups) => self.graph.group_norm(name, x, groups, NORM_EPS),
            Norm::Pixel => self.graph.pixel_norm(name, x),
        }
    }

    /// A norm, then `SiLU`.
    pub(super) fn norm_silu(&mut self, name: &str, x: TensorId) -> TensorId {
        let normed = self.norm(name, x);
        self.graph.silu(normed)
    }

    /// `ResnetBlock2D`: `x + conv2(silu(norm2(conv1(silu(norm1(x))))))`, x through `conv_shortcut`
    /// where channels change.
    pub(super) fn resnet(&mut self, name: &str, x: TensorId, channels: u32) -> TensorId {
        let mut hidden = self.norm_silu(&format!("{name}.norm1"), x);
        hidden = self.conv3(&format!("{name}.conv1"), hidden, channels);
        hidden = self.norm_silu(&format!("{name}.norm2"), hidden);
        hidden = self.conv3(&format!("{name}.conv2"), hidden, channels);
        let residual = if self.graph.shape(x).channels == channels {
            x
        } else {
            self.graph.conv2d(&format!("{name}.conv_shortcut"), x, channels, 1)
        };
        self.graph.add(residual, hidden)
    }

    /// `count` resnets, of which the first may change the channels.
    pub(super) fn resnets(&mut self, name: &str, mut x: TensorId, channels: u32, count: u32) -> TensorId {
        for index in 0..count {
            x = self.resnet(&format!("{name}.resnets.{index}"), x, channels);
        }
        x
    }

    /// `UNetMidBlock2D`: a resnet, `attention` if there is one, a resnet.
    pub(super) fn middle(&mut self, name: &str, x: TensorId, attention: Option<Attention>) -> TensorId {
        let channels = self.graph.shape(x).channels;
        let mut x = self.resnet(&format!("{name}.resnets.0"), x, channels);
        if let Some(attention) = attention {
            x = attention(self, &format!("{name}.attentions.0"), x);
        }
        self.resnet(&format!("{name}.resnets.1"), x, channels)
    }

    /// `Attention` with one head: `x + to_out(attention(to_q(y), to_k(y), to_v(y)))`, `y =
    /// group_norm(x)`.
    pub(super) fn attention(&mut self, name: &str, x: TensorId) -> TensorId {
        let channels = self.graph.shape(x).channels;
        let normed = self.norm(&format!("{name}.group_norm"), x);
        let [query, key, value] =
            ["to_q", "to_k", "to_v"].map(|part| self.graph.conv2d(&format!("{name}.{part}"), normed, channels, 1));
        let mixed = self.graph.attention(name, query, key, value);
        let branch = self.graph.conv2d(&format!("{name}.to_out.0"), mixed, channels, 1);
        self.graph.add(x, branch)
    }
}

/// Adds attention of some kind: blocks, name, input.
pub(super) type Attention = fn(&mut Blocks, &str, TensorId) -> TensorId;
