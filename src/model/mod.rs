//! The graph of a VAE, built from its config: WHAT to compute. Pure data, without knowledge of
//! devices, shaders or files.

pub mod config;
pub mod graph;
pub mod networks;
pub mod tensors;

pub mod blocks;
mod dc;
mod hunyuan_image;
mod hunyuan_video;
mod kl;
mod ltx2;
mod seedvr;
mod tiny;
mod wan;
