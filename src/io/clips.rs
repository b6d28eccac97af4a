//! Clips: numbers of frames and latents, and latents that are read from their file on demand.
//! Nothing here holds a whole clip. `clip_files` has the frames in files.

mod array;
mod count;
mod latents;

#[cfg(feature = "cli")]
pub(super) use self::array::ClipArray;
pub use self::array::ClipAxes;
pub use self::count::TimeFactor;
pub use self::latents::{ClipLatents, is_clip, latents_shape};
