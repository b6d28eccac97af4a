//! Pictures and clips in files, for the command line and the Python package of wgvae.
//!
//! [`picture`] reads pictures for an encoder, and [`image_file`] writes those of a decoder.
//! [`clip_files`] reads and writes clips, one frame after the other. [`part_file`] gives an output
//! its name only when it is complete.
//!
//! This crate serves the programs of its repository. Its interface changes without notice.

pub mod clip_files;
pub mod image_file;
pub mod part_file;
pub mod picture;
