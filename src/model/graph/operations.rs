//! The operations of a graph, with everything that a node of each needs.

use crate::model::config::Packing;

/// The first operation on the model's input. In this order: `factor[c] * x + offset[c]`, then
/// [`Self::squash`], then [`Self::patch`].
#[derive(Debug, Clone, PartialEq)]
pub struct Transform {
    /// One factor for each channel of the input.
    pub factor: Vec<f32>,
    /// One summand for each channel of the input.
    pub offset: Vec<f32>,
    /// True if `3 tanh(x / 3)` follows, which begins the decoders of tiny autoencoders.
    pub squash: bool,
    /// Side of the squares of pixels that the input's channels hold, or 1. Channel
    /// `c * patch^2 + patch * py + px` of pixel `[i, j]` becomes channel `c` of pixel
    /// `[patch * i + py, patch * j + px]`.
    pub patch: u32,
    /// Order of the squares in the input. [`Self::patch`] describes the usual order.
    pub packing: Packing,
}

impl Transform {
    /// Returns the transform that leaves an input of `channels` unchanged.
    pub fn none(channels: u32) -> Self {
        Self::uniform(channels, 1.0, 0.0)
    }

    /// Returns the transform with one factor and one summand for all `channels`.
    pub fn uniform(channels: u32, factor: f32, offset: f32) -> Self {
        Self {
            factor: vec![factor; channels as usize],
            offset: vec![offset; channels as usize],
            squash: false,
            patch: 1,
            packing: Packing::ByChannel,
        }
    }
}

/// The last operation on the model's output: `factor * x + offset`, then an optional clamp to
/// -1..1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ending {
    /// Factor of every channel.
    pub factor: f32,
    /// Summand of every channel.
    pub offset: f32,
    /// True if values are clamped to -1..1.
    pub clamp: bool,
}

impl Ending {
    /// The ending that leaves the output unchanged.
    pub const NONE: Self = Self { factor: 1.0, offset: 0.0, clamp: false };
}

/// Movement of a filter over the pixels of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// Side of the filter in pixels: 1 or 3, or 5 if each channel is a group.
    pub side: u32,
    /// Distance between two outputs in input pixels: 1 or 2.
    pub stride: u32,
    /// Placement of the zeros beyond the input.
    pub border: Border,
}

impl Window {
    /// Returns the window of a filter with this `side` that keeps the size.
    pub const fn same(side: u32) -> Self {
        Self { side, stride: 1, border: Border::Around }
    }

    /// Returns the window of a 3x3 filter that halves the size, with this `border`.
    pub const fn halving(border: Border) -> Self {
        Self { side: 3, stride: 2, border }
    }

    /// Returns the number of rows or columns of zeros before the first.
    pub fn before(self) -> u32 {
        match self.border {
            Border::After => 0,
            _ => self.side / 2,
        }
    }

    /// Returns the extent of the output for an input of `extent`.
    pub fn output(self, extent: u32) -> u32 {
        let zeros = match self.border {
            Border::After => 1,
            _ => self.side / 2 * 2,
        };
        (extent + zeros - self.side) / self.stride + 1
    }
}

/// Placement of zeros, or of other pixels, around the input of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Border {
    /// Half a filter on all four sides.
    #[default]
    Around,
    /// One row below and one column to the right, none above and to the left.
    After,
    /// Half a filter on all four sides, not of zeros but of the pixels that mirror the border
    /// (torch's `reflect`). The stride is 1, and the input has at least two rows and columns.
    Mirror,
    /// Half a filter on all four sides, of copies of the first and last pixels (torch's
    /// `replicate`). The stride is 1.
    Copies,
    /// Half a filter on all four sides, of the pixels at the opposite side (torch's `circular`).
    /// The stride is 1, and there are no taps in time.
    Opposite,
}

/// Movement of a filter over frames. There is one output for each position at which the filter fits
/// on the frames, with past frames before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Time {
    /// Number of frames that the filter covers.
    pub taps: u32,
    /// Distance between two outputs in frames.
    pub stride: u32,
    /// Frames before the first frame.
    pub past: PastFrames,
}

/// Frames before the first frame of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PastFrames {
    /// None: the input is a window, which has them ([`Op::Window`]). An output frame is in the
    /// middle of the frames that it sees.
    Window,
    /// The last [`Time::kept`] frames of its input in the part before. Zeros before the first part.
    Kept,
    /// Copies of the first frame, as many as the filter needs.
    Copies,
}

impl Time {
    /// Returns the number of past frames that the filter covers.
    pub fn before(self) -> u32 {
        match self.past {
            PastFrames::Window => 0,
            PastFrames::Kept => self.kept(),
            PastFrames::Copies => self.taps - 1,
        }
    }

    /// Returns the number of its last input frames that it keeps for the next part.
    pub fn kept(self) -> u32 {
        if self.past == PastFrames::Window { 0 } else { self.taps - self.stride }
    }

    /// Returns the number of output frames for `frames` input frames.
    pub fn output(self, frames: u32) -> u32 {
        (self.before() + frames - self.taps) / self.stride + 1
    }
}

/// Weights of a network: a tensor of the file, and the slice of it that is used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight {
    /// Name of the tensor in diffusers' spelling. Empty for [`WeightSlice::Zeros`] and
    /// [`WeightSlice::Ones`].
    pub name: String,
    /// The slice.
    pub take: WeightSlice,
}

impl Weight {
    /// Returns the weight that uses all of the tensor `name`.
    pub fn all(name: impl Into<String>) -> Self {
        Self { name: name.into(), take: WeightSlice::All }
    }

    /// Returns ones, in place of a tensor that the file does not have.
    pub fn ones() -> Self {
        Self { name: String::new(), take: WeightSlice::Ones }
    }
}

/// The slice of a file's tensor that becomes a weight. In files the output channels come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightSlice {
    /// The whole tensor.
    All,
    /// One tap in time of a filter `[c_out, c_in, taps, h, w]`.
    Tap {
        /// Number of taps in time of the filter.
        taps: u32,
        /// Index of the tap that is used.
        index: u32,
    },
    /// The sum of the taps in time of a filter `[c_out, c_in, taps, h, w]`, in f32.
    SumOfTaps {
        /// Number of taps in time of the filter.
        taps: u32,
    },
    /// Some output channels: `block` of them from `start` on, then `block` from `start + step` on,
    /// and so on.
    Rows {
        /// First channel.
        start: u32,
        /// Number of neighbouring channels in a block.
        block: u32,
        /// Distance between the starts of two blocks.
        step: u32,
        /// Number of output channels in the file.
        of: u32,
        /// Number of taps in time that are added up, in f32; 1 if the filter has no such taps, or
        /// keeps them.
        summed: u32,
    },
    /// All output channels, reordered from (part, frame, channel) to (frame, part, channel).
    Frames {
        /// Number of frames.
        frames: u32,
        /// Number of parts of each frame.
        parts: u32,
        /// Number of channels of each part.
        block: u32,
    },
    /// All output channels of successive frames, with zeros that fill each frame's channels to a
    /// multiple of four.
    Filled {
        /// Number of channels of each frame.
        block: u32,
    },
    /// The sum of successive groups of input channels, in f32. The file's tensor has `of` groups,
    /// each with the input channels of the weight.
    Inputs {
        /// First group.
        start: u32,
        /// Number of groups that are added up.
        count: u32,
        /// Number of groups in the file.
        of: u32,
    },
    /// Successive groups of input channels, which become taps in time: `[c_out, taps * c_in, h, w]`
    /// in the file.
    InputTaps {
        /// Number of taps in time, and of groups in the file.
        taps: u32,
        /// True if the first group is the last tap in time.
        latest_first: bool,
    },
    /// Zeros, without a tensor, for a bias that the network does not have.
    Zeros,
    /// Ones, without a tensor, for the factors of a norm that has none.
    Ones,
    /// Factors and summands of the input, without a tensor. They come from the config
    /// ([`Transform`]).
    Transform,
}

/// The weights of a convolution, and its movement over pixels and frames.
#[derive(Debug, Clone, PartialEq)]
pub struct Conv2d {
    /// Side, stride and border of the filter.
    pub window: Window,
    /// Filter, `[c_out, c_in, side, side]`.
    pub weight: Weight,
    /// Bias, `[c_out]`.
    pub bias: Weight,
    /// Movement over frames. `None` if each frame is computed by itself. With it, the filter is
    /// `[c_out, c_in, taps, side, side]`.
    pub time: Option<Time>,
    /// Number of output frames for each input frame. Output channels of the first frame come first,
    /// and so on.
    pub phases: u32,
    /// Number of groups of channels: the output channels of a group see the input channels of that
    /// group only. The filter is `[c_out, c_in / groups, side, side]`.
    pub groups: u32,
}

impl Conv2d {
    /// Returns the convolution of the module `name`: all of `NAME.weight` and `NAME.bias`.
    pub fn of(name: &str, window: Window) -> Self {
        let part = |part: &str| Weight::all(format!("{name}.{part}"));
        Self { window, weight: part("weight"), bias: part("bias"), time: None, phases: 1, groups: 1 }
    }

    /// Returns this convolution with a movement over frames.
    #[must_use]
    pub fn over(self, time: Time) -> Self {
        Self { time: Some(time), ..self }
    }

    /// Returns this convolution with channels in `groups`.
    #[must_use]
    pub fn grouped(self, groups: u32) -> Self {
        Self { groups, ..self }
    }

    /// Returns this convolution without a bias.
    #[must_use]
    pub fn without_bias(self) -> Self {
        Self { bias: Weight { name: String::new(), take: WeightSlice::Zeros }, ..self }
    }

    /// Returns this convolution with `take` of the weight.
    #[must_use]
    pub fn taking(mut self, take: WeightSlice) -> Self {
        self.weight.take = take;
        self
    }
}

/// A function of single numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// `x * sigmoid(x)`.
    Silu,
    /// `max(x, 0)`.
    Relu,
}

/// Method that doubles height and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Doubling {
    /// Copies each pixel four times.
    Nearest,
    /// Spreads the channels over four pixels: channel `(2 * py + px) * c_out + c` of pixel `[i, j]`
    /// becomes channel `c` of pixel `[2 * i + py, 2 * j + px]`.
    Shuffle,
}

/// Change of height and width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resize {
    /// Halves them. An odd last row or column is dropped.
    Halve,
    /// Keeps them.
    Keep,
    /// Doubles them.
    Double,
    /// Divides them by 4. Up to three last rows or columns are dropped.
    Quarter,
    /// Multiplies them by 4.
    Quadruple,
}

/// A shortcut without weights that takes a tensor to another size, another number of frames and
/// another number of channels: `AvgDown3D` and `DupUp3D` of diffusers' `AutoencoderKLWan`, and the
/// shortcuts of `AutoencoderKLHunyuanImage`. With as many numbers as before, it is
/// `pixel_unshuffle` or `pixel_shuffle` of torch.
///
/// Each channel of the larger tensor consists of places, in order of time, row and column: a frame
/// of `frames`, and one of `side * side` pixels. A tensor that shrinks takes means over successive
/// places of the larger one. A tensor that grows copies its channels to successive places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Regroup {
    /// Change of the size.
    pub resize: Resize,
    /// Frames of a clip that correspond to one frame of the smaller tensor.
    pub frames: u32,
    /// Frames before the first frame of the larger tensor that it does not have: they are zero when
    /// means are taken, and copies to them are dropped. An image is the last of `frames`.
    pub missing: u32,
    /// True if missing frames are copies of the first, instead of zero.
    pub repeats_first: bool,
    /// True if the result has more frames, although its size stays.
    pub longer: bool,
    /// True if a tensor that grows is copied as a whole several times, instead of channel by
    /// channel.
    pub tiled: bool,
    /// First frame that is read of a window, of two less than it has ([`Op::Window`]). `None` if
    /// the input is no window.
    pub of_window: Option<u32>,
    /// True if the places of a frame are in order of column and row, as in Wan 2.2's patches.
    pub by_column: bool,
    /// Order of the larger tensor's places: all places of a channel, then those of the next, or if
    /// true all channels of a place, as in [`Doubling::Shuffle`].
    pub by_place: bool,
    /// Row of places, if the input has the channels of only these: the result is the second input
    /// with these channels added to every second row.
    pub row: Option<u32>,
}

impl Regroup {
    /// Copies a tensor.
    pub const COPY: Self = Self {
        resize: Resize::Keep,
        frames: 1,
        missing: 0,
        repeats_first: false,
        longer: false,
        tiled: false,
        of_window: None,
        by_column: false,
        by_place: false,
        row: None,
    };

    /// Returns the side of the square of pixels that correspond to one pixel of the smaller tensor.
    pub fn side(self) -> u32 {
        match self.resize {
            Resize::Keep => 1,
            Resize::Halve | Resize::Double => 2,
            Resize::Quarter | Resize::Quadruple => 4,
        }
    }

    /// True if the result is larger than the input.
    pub fn grows(self) -> bool {
        self.longer || matches!(self.resize, Resize::Double | Resize::Quadruple)
    }

    /// Returns the number of places of a channel of the larger tensor.
    pub fn places(self) -> u32 {
        self.frames * self.side() * self.side()
    }

    /// Returns the first frame that is read of an input of `frames` frames, and the number of them.
    pub fn read(self, frames: u32) -> (u32, u32) {
        self.of_window.map_or((0, frames), |first| (first, frames - WINDOW))
    }

    /// Returns the number of frames of the result for `frames` frames that are read.
    pub fn output(self, frames: u32) -> u32 {
        if self.grows() { frames * self.frames - self.missing } else { (frames + self.missing) / self.frames }
    }

    /// True if a tensor of `from` channels is copied to `to` channels. Otherwise means are taken.
    pub fn copies(self, from: u32, to: u32) -> bool {
        self.grows() || self.resize == Resize::Keep && self.frames == 1 && from < to
    }

    /// Returns the number of places of one mean, or of one channel's copies, between tensors of
    /// `from` and `to` channels; 0 if the channels do not fit.
    pub fn count(self, from: u32, to: u32) -> u32 {
        let (larger, smaller) = if self.copies(from, to) { (to, from) } else { (from, to) };
        let places = larger.saturating_mul(if self.row.is_some() { self.side() } else { self.places() });
        if smaller > 0 && places.is_multiple_of(smaller) { places / smaller } else { 0 }
    }
}

/// Number of frames of a window that belong to the part before.
pub const WINDOW: u32 = 2;

/// The operation of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// The model's input.
    Input(Transform),
    /// A convolution with bias.
    Conv2d(Conv2d),
    /// Group normalisation with affine weights `NAME.weight`, `NAME.bias` `[c]`.
    GroupNorm {
        /// Number of groups.
        groups: u32,
        /// Number added to the variance.
        eps: f32,
    },
    /// Norm of each pixel by itself, where `|x|` runs over channels.
    PixelNorm(PixelNormKind),
    /// A function of each number.
    Activate(Activation),
    /// Returns the input unchanged. Its last frames are kept for a convolution of the next part, as
    /// if that convolution had read them here.
    Keep {
        /// Name of the convolution.
        by: String,
        /// Number of frames to keep.
        frames: u32,
    },
    /// Returns the input with the [`WINDOW`] frames before it, those of the part before, in front.
    /// Before the first frame of a clip come copies of it, and after the last frame copies of that.
    Window,
    /// Doubles height and width.
    Double(Doubling),
    /// The sum of the two inputs: residual, branch.
    Add,
    /// A shortcut without weights. A second input, of the result's shape, is added to the result.
    Regroup(Regroup),
    /// Returns the first half of the channels, each times the `SiLU` of its partner in the second
    /// half.
    Gate,
    /// Attention with one head: `softmax(q k^T / sqrt(c)) v` over all pixels of the frames that it
    /// sees. Inputs: query, key, value, of one frame.
    Attention(Sight),
    /// Linear attention with `ReLU` as its kernel, over all pixels: `sum_j (q . k_j) v_j /
    /// (sum_j (q . k_j) + 1e-15)`, where j runs over pixels, and q and k are cut off below zero.
    /// Each input has the channels of query, key and value of a head, then those of the next. The
    /// output has the heads of the first input, then those of the next.
    LinearAttention {
        /// Channels of a head, a multiple of 4 up to 32.
        head_dim: u32,
    },
    /// The model's output.
    Output(Ending),
}

/// The frames whose keys and values attention sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Sight {
    /// Its own.
    #[default]
    Own,
    /// Its own, which is the first of a clip. Its keys and values are kept for later parts.
    First,
    /// Its own and all before it. Its keys and values are kept for later parts.
    UpToOwn,
}

/// Formula of a norm of pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PixelNormKind {
    /// `x / max(|x|, 1e-12) * sqrt(c) * gamma[c]`, as in Wan. Weights: `NAME.gamma` `[c]`.
    Gamma,
    /// `x / sqrt(mean(x^2) + 1e-8)`, without weights, as in LTX-2.
    Plain,
    /// `x / sqrt(mean(x^2) + 1e-5) * weight[c] + bias[c]`, as in `AutoencoderDC`. Weights:
    /// `NAME.weight`, `NAME.bias` `[c]`.
    Affine,
}
