//! Building blocks of several networks: resnets, attention, and the middle block.

use super::graph::{
    Border, Conv2d, Graph, PastFrames, PixelNormKind, Regroup, Sight, TensorId, Time, WeightSlice, Window,
};

/// The eps of every group norm (`resnet_eps=1e-6`; torch's default of 1e-5 is not used).
const NORM_EPS: f32 = 1e-6;

/// Normalisation of a network.
#[derive(Debug, Clone, Copy)]
pub(super) enum NormKind {
    /// Group norm over the whole image, with this number of groups.
    Group(u32),
    /// Norm over the channels of each pixel by itself.
    Pixel(PixelNormKind),
}

/// The part of a clip that a graph computes. A frame depends on frames before it and on few later
/// ones, so a clip runs part by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The whole clip: one frame, a single image.
    Image,
    /// The first latent, or the first frame, of a clip that goes on.
    First,
    /// A later part: one latent, or the frames that one latent stands for.
    Next,
}

/// The kind of a network's 3x3 convolutions.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kernel {
    /// Filters for one image, with a take from the file's tensor.
    Image(WeightSlice),
    /// Filters that reach over three frames.
    Frames(PastFrames),
}

impl Kernel {
    /// Returns the convolution called `name`, with this `window` over pixels and this `stride` over
    /// frames.
    pub(super) fn conv(self, name: &str, window: Window, stride: u32) -> Conv2d {
        let conv = Conv2d::of(name, window);
        match self {
            Self::Image(take) => conv.taking(take),
            Self::Frames(past) => conv.over(Time { taps: 3, stride, past }),
        }
    }
}

/// A graph under construction, with methods that add blocks.
#[derive(Debug)]
pub(super) struct Blocks {
    pub(super) graph: Graph,
    pub(super) norm: NormKind,
    pub(super) kernel: Kernel,
    /// Border of the 3x3 convolutions that keep the size.
    pub(super) border: Border,
    /// Frames that attention sees.
    pub(super) sight: Sight,
}

impl Blocks {
    pub(super) fn new(norm: NormKind, kernel: Kernel) -> Self {
        Self { graph: Graph::default(), norm, kernel, border: Border::Around, sight: Sight::Own }
    }

    /// Adds the end of the encoder of a VAE of Hunyuan: norm, `SiLU` and a 3x3 convolution to
    /// `channels` channels, with means of the input's channels as the shortcut.
    pub(super) fn encoder_end(&mut self, x: TensorId, channels: u32) -> TensorId {
        let means = self.graph.regroup("encoder.conv_out (shortcut)", x, Regroup::COPY, channels, None);
        let mut end = self.norm_silu("encoder.norm_out", x);
        end = self.conv3("encoder.conv_out", end, channels);
        self.graph.add(means, end)
    }

    /// Adds a 3x3 convolution to `channels` channels.
    pub(super) fn conv3(&mut self, name: &str, x: TensorId, channels: u32) -> TensorId {
        let conv = self.kernel.conv(name, Window { border: self.border, ..Window::same(3) }, 1);
        self.graph.convolution(name, x, channels, conv)
    }

    /// Returns the frames that the 3x3 convolution `name` sees: those of `x`, or a window.
    pub(super) fn seen(&mut self, name: &str, x: TensorId) -> TensorId {
        match self.kernel {
            Kernel::Frames(PastFrames::Window) => self.graph.window(&format!("{name} (frames)"), x),
            Kernel::Frames(_) | Kernel::Image(_) => x,
        }
    }

    /// Adds a norm.
    pub(super) fn norm(&mut self, name: &str, x: TensorId) -> TensorId {
        match self.norm {
            NormKind::Group(groups) => self.graph.group_norm(name, x, groups, NORM_EPS),
            NormKind::Pixel(kind) => self.graph.pixel_norm(name, x, kind),
        }
    }

    /// Adds a norm, then `SiLU`.
    pub(super) fn norm_silu(&mut self, name: &str, x: TensorId) -> TensorId {
        let normed = self.norm(name, x);
        self.graph.silu(normed)
    }

    /// Adds a `ResnetBlock2D`: `x + conv2(silu(norm2(conv1(silu(norm1(x))))))`. If the number of
    /// channels changes, `x` goes through `conv_shortcut`.
    pub(super) fn resnet(&mut self, name: &str, x: TensorId, channels: u32) -> TensorId {
        self.resnet_with(name, x, channels, |_, residual| residual)
    }

    /// Adds a resnet, with `residual` of its residual in place of that.
    pub(super) fn resnet_with(
        &mut self,
        name: &str,
        x: TensorId,
        channels: u32,
        residual: impl FnOnce(&mut Graph, TensorId) -> TensorId,
    ) -> TensorId {
        let [conv1, conv2] = ["conv1", "conv2"].map(|conv| format!("{name}.{conv}"));
        let seen = self.seen(&conv1, x);
        let mut hidden = self.norm_silu(&format!("{name}.norm1"), seen);
        hidden = self.conv3(&conv1, hidden, channels);
        hidden = self.seen(&conv2, hidden);
        hidden = self.norm_silu(&format!("{name}.norm2"), hidden);
        // Before `conv2`, which adds to the residual's memory.
        let own = if seen != x {
            // Both convolutions lag one frame behind.
            let late = Regroup { of_window: Some(0), ..Regroup::COPY };
            self.graph.regroup(&format!("{name} (residual)"), seen, late, channels, None)
        } else if self.graph.shape(x).channels == channels {
            x
        } else {
            self.graph.conv2d(&format!("{name}.conv_shortcut"), x, channels, 1)
        };
        let residual = residual(&mut self.graph, own);
        hidden = self.conv3(&conv2, hidden, channels);
        self.graph.add(residual, hidden)
    }

    /// Adds `count` resnets. The first may change the number of channels.
    pub(super) fn resnets(&mut self, name: &str, mut x: TensorId, channels: u32, count: u32) -> TensorId {
        for index in 0..count {
            x = self.resnet(&format!("{name}.resnets.{index}"), x, channels);
        }
        x
    }

    /// Adds a `UNetMidBlock2D`: a resnet, `attention` if given, a resnet.
    pub(super) fn middle(&mut self, name: &str, x: TensorId, attention: Option<Attention>) -> TensorId {
        let channels = self.graph.shape(x).channels;
        let mut x = self.resnet(&format!("{name}.resnets.0"), x, channels);
        if let Some(attention) = attention {
            x = attention(self, &format!("{name}.attentions.0"), x);
        }
        self.resnet(&format!("{name}.resnets.1"), x, channels)
    }

    /// Adds `Attention` with one head: `x + to_out(attention(to_q(y), to_k(y), to_v(y)))`, with
    /// `y = group_norm(x)`.
    pub(super) fn attention(&mut self, name: &str, x: TensorId) -> TensorId {
        self.attention_named(name, x, ["group_norm", "to_out.0"])
    }

    /// Adds such attention, with these names of its norm and its last layer.
    pub(super) fn attention_named(&mut self, name: &str, x: TensorId, [norm, last]: [&str; 2]) -> TensorId {
        let channels = self.graph.shape(x).channels;
        let normed = self.norm(&format!("{name}.{norm}"), x);
        let seen =
            ["to_q", "to_k", "to_v"].map(|part| self.graph.conv2d(&format!("{name}.{part}"), normed, channels, 1));
        let mixed = self.graph.attention(name, seen, self.sight);
        let branch = self.graph.conv2d(&format!("{name}.{last}"), mixed, channels, 1);
        self.graph.add(x, branch)
    }
}

/// A function that adds one kind of attention to blocks, given a name and an input.
pub(super) type Attention = fn(&mut Blocks, &str, TensorId) -> TensorId;
