//! Latents from files: which reader, which tensor.

use std::path::Path;

use wgvae::{ByteSource, FileSource, Latents, Result, read_latents};

use super::{in_file, input};

/// Reads the latents in the .safetensors, .latent or .npy file at `path`.
pub(super) async fn read(path: &Path, tensor: Option<&str>) -> Result<Latents> {
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
    from_source(&FileSource::open(path)?, tensor).await
}

/// Reads the latents in `source`, a .safetensors or .latent file's tensor `name`.
pub(super) async fn from_source(source: &dyn ByteSource, name: Option<&str>) -> Result<Latents> {
    Latents::stored(read_latents(source, name).await?).map_err(|error| in_file(error, source.name()))
}
