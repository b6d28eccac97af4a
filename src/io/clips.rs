//! Clips in files: frames and latents, read and written as they come. Nothing here holds a whole clip.
//!
//! Frames come from a [`FrameSource`] and go to a [`FrameSink`], whatever the file: numbered pictures (`pictures`), y4m (`y4m`, `bt709`, `chroma`), arrays of floats
//! (`arrays`), and what the `ffmpeg` of the machine reads and writes (`ffmpeg`). `open` chooses by the name (`name`). `latents` and `latents_out` are a clip's other end.

mod array;
mod count;
mod error;
mod latents;

#[cfg(feature = "cli")]
mod arrays;
#[cfg(feature = "cli")]
pub mod bt709;
#[cfg(feature = "cli")]
mod chroma;
#[cfg(feature = "cli")]
mod ffmpeg;
#[cfg(feature = "cli")]
mod files;
#[cfg(feature = "cli")]
mod frame;
#[cfg(feature = "cli")]
mod latents_out;
#[cfg(feature = "cli")]
mod name;
#[cfg(feature = "cli")]
mod open;
#[cfg(feature = "cli")]
mod options;
#[cfg(feature = "cli")]
mod pad;
#[cfg(feature = "cli")]
mod pattern;
#[cfg(feature = "cli")]
mod pictures;
#[cfg(feature = "cli")]
mod planes_out;
#[cfg(feature = "cli")]
mod y4m;

pub use self::array::ClipAxes;
pub use self::count::TimeFactor;
pub use self::latents::{ClipLatents, is_clip, latents_shape};

#[cfg(feature = "cli")]
pub use self::arrays::{ArraySink, ArraySource};
#[cfg(feature = "cli")]
pub use self::ffmpeg::{Codec, Ffmpeg, FfmpegSink, FfmpegSource};
#[cfg(feature = "cli")]
pub use self::files::{Direct, Files};
#[cfg(feature = "cli")]
pub use self::frame::{Frame, FrameFormat, FrameSink, FrameSource, PlanarFrame};
#[cfg(feature = "cli")]
pub use self::latents_out::LatentsWriter;
#[cfg(feature = "cli")]
pub use self::name::ClipName;
#[cfg(feature = "cli")]
pub use self::open::{SinkOptions, create_sink, open_source};
#[cfg(feature = "cli")]
pub use self::options::{Bits, Fps};
#[cfg(feature = "cli")]
pub use self::pad::{Pad, Padded};
#[cfg(feature = "cli")]
pub use self::pattern::{Found, Pattern};
#[cfg(feature = "cli")]
pub use self::pictures::{PictureSink, PictureSource};
#[cfg(feature = "cli")]
pub use self::planes_out::ArrayFormat;
#[cfg(feature = "cli")]
pub use self::y4m::{Y4mSink, Y4mSource};
