//! Clips in files: frames and latents, read and written one after the other. Nothing here holds a
//! whole clip.
//!
//! Frames come from a [`FrameSource`] and go to a [`FrameSink`], for every kind of file: numbered
//! pictures (`pictures`), y4m (`y4m`, `bt709`, `chroma`), arrays of floats (`arrays`), and videos
//! through the installed `ffmpeg` (`ffmpeg`). `open` chooses by file name (`name`). `clips` reads
//! latents and `latents_out` writes them.

mod arrays;
pub mod bt709;
mod chroma;
mod crop;
mod ffmpeg;
mod files;
mod frame;
mod latents_out;
mod name;
mod open;
mod options;
mod pad;
mod pattern;
mod pictures;
mod planes_out;
mod y4m;

pub use self::arrays::{ArraySink, ArraySource, images_shape};
pub use self::crop::Cropped;
pub use self::ffmpeg::{Codec, Ffmpeg, FfmpegSink, FfmpegSource, end_processes};
pub use self::files::{Direct, Files};
pub use self::frame::{Frame, FrameFormat, FrameSink, FrameSource, PlanarFrame};
pub use self::latents_out::LatentsWriter;
pub use self::name::ClipName;
pub use self::open::{SinkOptions, create_sink, open_source};
pub use self::options::{Bits, Fps};
pub use self::pad::{Pad, Padded};
pub use self::pattern::{Found, Pattern};
pub use self::pictures::{PictureSink, PictureSource};
pub use self::planes_out::ArrayFormat;
pub use self::y4m::{Y4mSink, Y4mSource};
