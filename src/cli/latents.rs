//! Latents from files: which reader, which tensor.

use std::path::Path;

use wgvae::{ByteSource, Error, FileSource, Latents, Result, StoredLatents, read_latents};

use super::input;

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
    latents_of(read_latents(source, name).await?, source.name())
}

/// Checks the values, with the file's name in complaints.
fn latents_of(stored: StoredLatents, file: &str) -> Result<Latents> {
    Latents::stored(stored).map_err(|error| match error {
        Error::Input { what, expected, found } => input(format!("{what} in {file}"), expected, found),
        other => other,
    })
}
