//! What an encode writes: latents or moments, as .safetensors or .npy.

use std::path::{Path, PathBuf};

use wgvae::internals::image_file::numbered;
use wgvae::internals::npy::write_npy;
use wgvae::internals::part_file::check_writable;
use wgvae::internals::safetensors::write_with_metadata;
use wgvae::{HostTensor, Result, StoredLatents, write_latents};

use super::input;

/// Name of the tensor in a .safetensors file of moments.
pub(super) const MOMENTS: &str = "moments";

/// The files of an encode.
#[derive(Debug)]
pub(super) struct LatentsOutput {
    path: PathBuf,
    format: Format,
    count: usize,
}

#[derive(Debug, Clone, Copy)]
enum Format {
    Npy,
    Safetensors,
}

/// What an encoder's output has become.
#[derive(Debug)]
pub(super) enum Encoding {
    Latents(StoredLatents),
    /// `[n, 2 c, h, w]`: means, then the variances' logarithms.
    Moments(HostTensor),
}

impl LatentsOutput {
    /// `count` files at `path`.
    ///
    /// # Errors
    /// When the ending is unknown or a file could not be written there.
    pub(super) fn new(path: &Path, count: usize) -> Result<Self> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let format = match ending.as_str() {
            "npy" => Format::Npy,
            "safetensors" => Format::Safetensors,
            _ => {
                let found = if ending.is_empty() { "none".to_owned() } else { format!("\"{ending}\"") };
                let what = format!("ending of output file {}", path.display());
                return Err(input(what, "one of safetensors, npy", found));
            }
        };
        let output = Self { path: path.to_owned(), format, count };
        output.names().iter().try_for_each(|name| check_writable(name))?;
        Ok(output)
    }

    /// The names of all files.
    pub(super) fn names(&self) -> Vec<PathBuf> {
        (0..self.count).map(|index| numbered(&self.path, index, self.count)).collect()
    }

    /// The content of a file. `facts` are for people, and only where the format has room for them.
    pub(super) fn bytes(&self, encoding: &Encoding, facts: &[(&'static str, String)]) -> Result<Vec<u8>> {
        match (self.format, encoding) {
            (Format::Npy, Encoding::Latents(StoredLatents { tensor, .. }) | Encoding::Moments(tensor)) => {
                Ok(write_npy(tensor))
            }
            (Format::Safetensors, Encoding::Latents(latents)) => write_latents(latents, facts),
            (Format::Safetensors, Encoding::Moments(tensor)) => {
                write_with_metadata(&[(MOMENTS, tensor)], &facts.iter().cloned().collect())
            }
        }
    }
}
