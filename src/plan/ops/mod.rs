//! The operations of a fused graph, one file each. A file has both the memory that an operation
//! takes, which scheduling needs, and the launches that it becomes.
//!
//! Both must agree: when [`Lowering::task`] uses scratch memory, it is as large as [`node`]
//! returned, or for filters that stages use in turn as the largest of them. `sizing` has what all
//! operations need for the memory, `lowering` and `pass` what they need for the launches.

mod attention;
mod conv;
mod depthwise;
mod direct;
mod filter;
mod frame_rows;
mod input;
mod linear_attention;
mod lowering;
mod moments;
mod output;
mod pass;
mod past;
mod pixel_norm;
mod product;
mod regroup;
mod seen;
mod sizing;
mod tiles;
mod unfold;
mod unfolding;
mod window;
mod winograd;

pub(super) use self::lowering::Lowering;
pub(super) use self::sizing::Sizing;
pub(super) use self::tiles::band_frames;

use crate::error::Result;
use crate::plan::fused::Stage;
use crate::plan::node::Node;
use crate::plan::schedule::ChunkTask;

/// Returns the node of `stage`: its chunks, reads and memory.
///
/// # Errors
/// [`crate::Error::TooLarge`] if four rows of its output exceed a binding.
pub(super) fn node(sizing: &Sizing<'_>, stage: &Stage) -> Result<Node> {
    match stage {
        Stage::Input { transform, output } => input::node(sizing, transform, *output),
        Stage::Past { like, output, .. } => Ok(past::node(sizing, *like, *output)),
        Stage::Window(window) => window::node(sizing, window),
        Stage::Conv(conv) => conv::node(sizing, conv),
        Stage::Shortcut(shortcut) => regroup::node(sizing, shortcut),
        Stage::NormedSum(sum) => Ok(pixel_norm::node(sizing, sum)),
        Stage::LinearAttention(attention) => linear_attention::node(sizing, attention),
        Stage::Attention { inputs, sight, output, .. } => Ok(attention::node(sizing, *inputs, *sight, *output)),
        Stage::Output { input, .. } => Ok(output::node(sizing, *input)),
    }
}

impl Lowering<'_> {
    /// Appends the launches that compute one chunk of one stage. If `measure`, they also take the
    /// moments for the norm that reads the stage's output.
    pub(super) fn task(&mut self, task: ChunkTask, measure: bool) {
        match self.begin_stage(task.stage) {
            Stage::Input { transform, output } => self.input(transform, *output, task.chunk),
            Stage::Past { by, output, .. } => self.past(by, *output, task.chunk),
            Stage::Window(window) => self.window(window, task.chunk),
            Stage::Conv(conv) => self.conv(conv, task.chunk, measure),
            Stage::Shortcut(shortcut) => self.regroup(shortcut, task.chunk, measure),
            Stage::NormedSum(sum) => self.normed_sum(sum, task.chunk, measure),
            Stage::LinearAttention(attention) => self.linear_attention(attention, task.chunk),
            Stage::Attention { inputs, sight, output, .. } => self.attention(*inputs, *sight, *output, task.chunk),
            Stage::Output { input, ending } => self.output(*input, *ending, task.chunk),
        }
    }
}
