//! YUV4MPEG2 (.y4m): a stream of uncompressed `Y'CbCr` video. The format does not name the colour
//! matrix; this crate uses BT.709 for every size.

mod header;
mod read;
mod write;

pub use self::read::Y4mSource;
pub use self::write::Y4mSink;
