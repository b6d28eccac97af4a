//! Clips: how many frames latents have, and latents that are read from their file as they are
//! wanted. Nothing here holds a whole clip. Frames in files are in `clip_files`.

mod array;
mod count;
mod latents;

#[cfg(feature = "cli")]
pub(super) use self::array::ClipArray;
pub use self::array::ClipAxes;
pub use self::count::TimeFactor;
pub use self::latents::{ClipLatents, is_clip, latents_shape};
