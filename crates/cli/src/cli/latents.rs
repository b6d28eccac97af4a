//! Reading of latents from files: chooses the reader and the tensor.

use std::path::Path;

use wgvae::files::{ByteSource, FileSource, MemorySource, StoredSpace, read_latents};
use wgvae::internals::clips::{is_clip, latents_shape};
use wgvae::{Error, LatentSpace, Latents, Result};

use super::stderr::note;
use super::{in_file, stdio};

/// Endings of files of latents.
pub(super) const ENDINGS: &[&str] = &["safetensors", "latent", "npy"];

/// Opens the .safetensors, .latent or .npy file at `path`, or reads stdin.
pub(super) fn open(path: &Path, tensor: Option<&str>) -> Result<Box<dyn ByteSource>> {
    if stdio::is_meant(path) {
        return Ok(Box::new(MemorySource::new(stdio::STDIN, stdio::read()?)));
    }
    check_name(path, tensor)?;
    Ok(Box::new(FileSource::open(path)?))
}

/// Reads the latents in the file at `path`.
pub(super) async fn read(path: &Path, tensor: Option<&str>) -> Result<Latents> {
    from_source(&*open(path, tensor)?, tensor).await
}

/// Takes `latents` of the file at `path` as the VAE's own, as `--unscaled` says.
pub(super) fn as_unscaled(latents: Latents, path: &Path) -> Latents {
    say_unscaled(path, latents.stored_space());
    latents.in_space(LatentSpace::Vae)
}

/// Prints a note if the file at `path` says, against `--unscaled`, that its latents are scaled.
pub(super) fn say_unscaled(path: &Path, stored: StoredSpace) {
    if stored == StoredSpace::Known(LatentSpace::Model) {
        note(path, "its metadata say \"unscaled\": \"false\", which --unscaled overrides");
    }
}

/// Returns true if `source` holds latents of a clip.
pub(super) async fn are_of_clip(source: &dyn ByteSource, tensor: Option<&str>) -> bool {
    latents_shape(source, tensor).await.is_ok_and(|shape| is_clip(&shape))
}

fn check_name(path: &Path, tensor: Option<&str>) -> Result<()> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    if ["pt", "pth", "ckpt", "bin"].contains(&ending.as_str()) {
        let [from, to] = [path.to_owned(), path.with_extension("safetensors")].map(|path| path.display().to_string());
        let code = format!(
            "import torch, safetensors.torch; safetensors.torch.save_file({{\"latents\": torch.load({from:?}, map_location=\"cpu\", weights_only=True).contiguous()}}, {to:?})"
        );
        return Err(Error::input(
            format!("latents file {}", path.display()),
            format!("one of safetensors, latent, npy: convert it, in Python with torch and safetensors: {code}"),
            "a Python pickle, which can run code when opened",
        ));
    }
    if !ENDINGS.contains(&ending.as_str()) {
        let found = if ending.is_empty() { "none".to_owned() } else { format!("\"{ending}\"") };
        return Err(Error::input(
            format!("ending of latents file {}", path.display()),
            format!("one of {}", ENDINGS.join(", ")),
            found,
        ));
    }
    if let ("npy", Some(name)) = (ending.as_str(), tensor) {
        let found = format!("\"{name}\" with {}", path.display());
        return Err(Error::input("--tensor", "a .safetensors file of latents (a .npy file has one array)", found));
    }
    Ok(())
}

/// Reads the latents in `source`: tensor `name` of a .safetensors or .latent file, or a .npy array.
pub(super) async fn from_source(source: &dyn ByteSource, name: Option<&str>) -> Result<Latents> {
    Latents::stored(read_latents(source, name).await?).map_err(|error| in_file(error, source.name()))
}
