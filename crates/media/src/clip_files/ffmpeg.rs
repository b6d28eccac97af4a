//! Video files through the installed `ffmpeg`: a process that receives frames or delivers them.

mod codec;
mod patient_reader;
mod probe;
mod process;
mod read;
mod write;

pub use self::codec::Codec;
pub use self::process::{Ffmpeg, end_processes};
pub use self::read::FfmpegSource;
pub use self::write::FfmpegSink;
