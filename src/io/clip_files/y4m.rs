//! YUV4MPEG2 (.y4m): uncompressed video in a stream, `Y'CbCr` without a word on its matrix. Here
//! that is BT.709, whatever the size.

mod header;
mod read;
mod write;

pub use self::read::Y4mSource;
pub use self::write::Y4mSink;
