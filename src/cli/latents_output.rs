//! What an encode writes: latents or moments, as .safetensors or .npy.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use wgvae::internals::image_file::numbered;
use wgvae::internals::npy::write_npy;
use wgvae::internals::part_file::check_writable;
use wgvae::internals::safetensors::write_with_metadata;
use wgvae::{HostTensor, Result, StoredLatents, write_latents};

use super::{input, stdio};

/// Name of the tensor in a .safetensors file of moments.
pub(super) const MOMENTS: &str = "moments";

/// The files of an encode.
#[derive(Debug)]
pub(super) struct LatentsOutput {
    path: PathBuf,
    format: LatentsFormat,
    count: usize,
}

/// How latents lie in a file.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum LatentsFormat {
    Safetensors,
    Npy,
}

/// What an encoder's output has become.
#[derive(Debug)]
pub(super) enum Encoding {
    Latents(StoredLatents),
    /// `[n, 2 c, h, w]`: means, then the variances' logarithms.
    Moments(HostTensor),
}

impl LatentsOutput {
    /// `count` files at `path`; one on stdout in `format`, or as .safetensors.
    ///
    /// # Errors
    /// When the ending is unknown or a file could not be written there; for several files on
    /// stdout, and a format for what has an ending.
    pub(super) fn new(path: &Path, format: Option<LatentsFormat>, count: usize) -> Result<Self> {
        match format {
            _ if stdio::is_meant(path) => {
                stdio::check_no_terminal()?;
                if count > 1 {
                    return Err(input("--output -", "one file of latents on stdout", format!("{count}, by --each")));
                }
                let format = format.unwrap_or(LatentsFormat::Safetensors);
                return Ok(Self { path: path.to_owned(), format, count });
            }
            None => {}
            Some(_) => {
                let expected = "--output - with it (the ending of a file says its format)";
                return Err(input("--format", expected, format!("--output {}", path.display())));
            }
        }
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let format = match ending.as_str() {
            "npy" => LatentsFormat::Npy,
            "safetensors" => LatentsFormat::Safetensors,
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
            (LatentsFormat::Npy, Encoding::Latents(StoredLatents { tensor, .. }) | Encoding::Moments(tensor)) => {
                Ok(write_npy(tensor))
            }
            (LatentsFormat::Safetensors, Encoding::Latents(latents)) => write_latents(latents, facts),
            (LatentsFormat::Safetensors, Encoding::Moments(tensor)) => {
                write_with_metadata(&[(MOMENTS, tensor)], &facts.iter().cloned().collect())
            }
        }
    }
}
