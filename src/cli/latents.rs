//! Latents from files: which reader, which tensor.

use std::path::Path;

use wgvae::internals::clips::{ClipLatents, latents_shape};
use wgvae::{ByteSource, FileSource, Latents, Result, read_latents};

use super::{in_file, input};

/// Reads the latents in the .safetensors, .latent or .npy file at `path`.
pub(super) async fn read(path: &Path, tensor: Option<&str>) -> Result<Latents> {
    check_name(path, tensor)?;
    from_source(&FileSource::open(path)?, tensor).await
}

/// Opens the latents of a clip, of `channels`.
pub(super) async fn open_clip(path: &Path, tensor: Option<&str>, channels: u32) -> Result<ClipLatents> {
    check_name(path, tensor)?;
    ClipLatents::open(Box::new(FileSource::open(path)?), tensor, channels).await
}

/// The shape of the latents at `path`, if there are any.
pub(super) async fn shape(path: &Path, tensor: Option<&str>) -> Option<Vec<u64>> {
    latents_shape(&FileSource::open(path).ok()?, tensor).await.ok()
}

fn check_name(path: &Path, tensor: Option<&str>) -> Result<()> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    if !["safetensors", "latent", "npy"].contains(&ending.as_str()) {
        let found = if ending.is_empty() { "none".to_owned() } else { format!("\"{ending}\"") };
        return Err(input(
            format!("ending of latents file {}", path.display()),
            "one of safetensors, latent, npy",
            found,
        ));
    }
    if let ("npy", Some(name)) = (ending.as_str(), tensor) {
        let found = format!("\"{name}\" with {}", path.display());
        return Err(input("--tensor", "a .safetensors file of latents (a .npy file has one array)", found));
    }
    Ok(())
}

/// Reads the latents in `source`, a .safetensors or .latent file's tensor `name`.
pub(super) async fn from_source(source: &dyn ByteSource, name: Option<&str>) -> Result<Latents> {
    Latents::stored(read_latents(source, name).await?).map_err(|error| in_file(error, source.name()))
}
