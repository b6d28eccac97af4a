//! WHAT to compute: the graph of a VAE, built from its configuration. Pure data; knows nothing of devices, shaders or files.

pub mod autoencoder_kl;
pub mod config;
pub mod graph;
