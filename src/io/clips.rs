//! Clips: numbers of frames and latents, and latents that are read from their file on demand.
//! Nothing here holds a whole clip. The crate `wgvae-media` has the frames in files.

mod array;
mod count;
mod latents;

pub use self::array::{ClipArray, ClipAxes};
pub use self::count::TimeFactor;
pub use self::latents::{ClipLatents, is_clip, latents_shape};
