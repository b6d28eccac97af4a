//! What several networks are made of: resnets, attention, and the middle of both.

use super::graph::{Conv2d, Graph, Take, TensorId, Window};

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

/// Adds blocks to a graph.
#[derive(Debug)]
pub(super) struct Blocks {
    pub(super) graph: Graph,
    pub(super) norm: Norm,
    /// What is taken of the weights of 3x3 convolutions.
    pub(super) kernel: Take,
}

impl Blocks {
    /// A 3x3 convolution to `channels` channels.
    pub(super) fn conv3(&mut self, name: &str, x: TensorId, channels: u32) -> TensorId {
        let conv = Conv2d::of(name, Window::same(3)).taking(self.kernel);
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

    /// `ResnetBlock2D`: `x + conv2(silu(norm2(conv1(silu(norm1(x))))))`, x through `conv_shortcut` where channels change.
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

    /// `Attention` with one head: `x + to_out(attention(to_q(y), to_k(y), to_v(y)))`, `y = group_norm(x)`.
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
