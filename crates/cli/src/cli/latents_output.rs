//! Output files of an encode: latents or moments, as .safetensors or .npy.

use std::path::{Path, PathBuf};

use wgvae::files::write_latents;
use wgvae::internals::npy::write_npy;
use wgvae::internals::safetensors::write_with_metadata;
use wgvae::{Error, HostTensor, LatentSpace, Result};
use wgvae_media::image_file::numbered;
use wgvae_media::part_file::check_writable;

use super::stdio;

/// Name of the tensor in a .safetensors file of moments.
pub(super) const MOMENTS: &str = "moments";

/// The output files of an encode.
#[derive(Debug)]
pub(super) struct LatentsOutput {
    /// Names of all files.
    pub(super) names: Vec<PathBuf>,
    format: LatentsFormat,
}

/// File format of latents.
#[derive(Debug, Clone, Copy)]
pub(super) enum LatentsFormat {
    Safetensors,
    Npy,
}

// The names are also endings of files.
wgvae::named!(LatentsFormat, "format": Safetensors = "safetensors", Npy = "npy");

impl LatentsFormat {
    /// Returns the format that the ending of `path` names.
    fn of(path: &Path) -> Result<Self> {
        let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        match ending.as_str() {
            "npy" => Ok(Self::Npy),
            "safetensors" => Ok(Self::Safetensors),
            _ => {
                let found = if ending.is_empty() { "none".to_owned() } else { format!("\"{ending}\"") };
                let what = format!("ending of output file {}", path.display());
                Err(Error::input(what, "one of safetensors, npy", found))
            }
        }
    }
}

/// Content of an output file.
#[derive(Debug)]
pub(super) enum Encoding {
    /// Latents `[n, c, h, w]` in this space.
    Latents(HostTensor, LatentSpace),
    /// Moments `[n, 2 c, h, w]`: means, then log variances.
    Moments(HostTensor),
}

impl LatentsOutput {
    /// Prepares `count` files at `path`. A file on stdout is in `format`, or .safetensors by
    /// default.
    ///
    /// # Errors
    /// For an unknown ending, a path that cannot be written, several files on stdout, and a format
    /// if the path has an ending.
    pub(super) fn new(path: &Path, format: Option<LatentsFormat>, count: usize) -> Result<Self> {
        match format {
            _ if stdio::is_meant(path) => {
                stdio::check_no_terminal()?;
                if count > 1 {
                    return Err(Error::input(
                        "--output -",
                        "one file of latents for stdout",
                        format!("{count} files, because of --each"),
                    ));
                }
                let format = format.unwrap_or(LatentsFormat::Safetensors);
                return Ok(Self { names: vec![path.to_owned()], format });
            }
            None => {}
            Some(_) => {
                let expected = "use with --output - (a file's ending decides its format)";
                return Err(Error::input("--format", expected, format!("--output {}", path.display())));
            }
        }
        let output = Self::named((0..count).map(|index| numbered(path, index, count)).collect())?;
        output.check_writable()?;
        Ok(output)
    }

    /// Prepares the files `names`, at least one.
    ///
    /// # Errors
    /// For an unknown ending.
    pub(super) fn named(names: Vec<PathBuf>) -> Result<Self> {
        let format = LatentsFormat::of(&names[0])?;
        Ok(Self { names, format })
    }

    /// Fails if a file cannot be written.
    pub(super) fn check_writable(&self) -> Result<()> {
        self.names.iter().try_for_each(|name| check_writable(name))
    }

    /// Returns the content of a file. `facts` are for people, and are left out if the format has no
    /// room for them.
    pub(super) fn bytes(&self, encoding: &Encoding, facts: &[(&'static str, String)]) -> Result<Vec<u8>> {
        match (self.format, encoding) {
            (LatentsFormat::Npy, Encoding::Latents(tensor, _) | Encoding::Moments(tensor)) => Ok(write_npy(tensor)),
            (LatentsFormat::Safetensors, Encoding::Latents(tensor, space)) => write_latents(tensor, *space, facts),
            (LatentsFormat::Safetensors, Encoding::Moments(tensor)) => {
                write_with_metadata(&[(MOMENTS, tensor)], &facts.iter().cloned().collect())
            }
        }
    }
}
