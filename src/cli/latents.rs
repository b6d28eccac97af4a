//! Latents from files: which reader, which tensor.

use std::path::Path;

use wgvae::internals::npy::read_npy;
use wgvae::internals::safetensors::{read_header, read_tensor};
use wgvae::{ByteSource, Error, FileSource, HostTensor, Latents, Result};

use super::input;

/// Name of the tensor where none is given.
const TENSOR: &str = "latents";

/// Reads the latents in the .safetensors or .npy file at `path`.
pub(super) async fn read(path: &Path, tensor: Option<&str>) -> Result<Latents> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let values = match (ending.as_str(), tensor) {
        ("safetensors", tensor) => read_safetensors(&FileSource::open(path)?, tensor.unwrap_or(TENSOR)).await?,
        ("npy", None) => read_npy(&FileSource::open(path)?).await?,
        ("npy", Some(name)) => {
            let found = format!("\"{name}\" with {}", path.display());
            return Err(input("--tensor", "a .safetensors file of latents (a .npy file has one array)", found));
        }
        _ => {
            let found = if ending.is_empty() { "none".to_owned() } else { format!("\"{ending}\"") };
            return Err(input(format!("ending of latents file {}", path.display()), "one of safetensors, npy", found));
        }
    };
    latents_of(values, &path.display().to_string())
}

/// Reads the latents in a .safetensors file's tensor `name`.
pub(super) async fn from_safetensors(source: &dyn ByteSource) -> Result<Latents> {
    latents_of(read_safetensors(source, TENSOR).await?, source.name())
}

async fn read_safetensors(source: &dyn ByteSource, name: &str) -> Result<HostTensor> {
    let header = read_header(source).await?;
    let Some(info) = header.tensors.get(name) else {
        let names: Vec<&str> = header.tensors.keys().map(String::as_str).take(8).collect();
        return Err(input(
            format!("latents in {}", source.name()),
            format!("a tensor \"{name}\" (see --tensor)"),
            if names.is_empty() { "no tensors".to_owned() } else { format!("only \"{}\"", names.join("\", \"")) },
        ));
    };
    read_tensor(source, name, info).await
}

/// Checks the values, with the file's name in complaints.
fn latents_of(values: HostTensor, file: &str) -> Result<Latents> {
    Latents::new(values).map_err(|error| match error {
        Error::Input { what, expected, found } => input(format!("{what} in {file}"), expected, found),
        other => other,
    })
}
