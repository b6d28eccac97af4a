//! Video files by way of the `ffmpeg` of the machine: a process that is fed frames or asked for
//! them.

mod codec;
mod patient_reader;
mod process;
mod read;
mod write;

pub use self::codec::Codec;
pub use self::process::{Ffmpeg, end_processes};
pub use self::read::FfmpegSource;
pub use self::write::FfmpegSink;
