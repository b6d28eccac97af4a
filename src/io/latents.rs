//! Latents in files: which format, which tensor.

use super::npy::read_npy;
use super::safetensors::{read_header, read_tensor};
use super::source::ByteSource;
use crate::error::{Error, Result};
use crate::tensor::HostTensor;

/// Name of the tensor where none is given.
const TENSOR: &str = "latents";

/// How every .npy file begins.
const NPY_MAGIC: &[u8] = b"\x93NUMPY";

/// Reads the array of a .npy file, or the tensor `name` (`latents` where none is given) of a .safetensors file. Which of the two it is shows in
/// its first bytes.
///
/// # Errors
/// [`Error::Format`], [`Error::Io`], or [`Error::Input`] where there is no such tensor.
pub async fn read_latents(source: &dyn ByteSource, name: Option<&str>) -> Result<HostTensor> {
    let start = source.read_at(0, source.len().min(NPY_MAGIC.len() as u64)).await?;
    if start != NPY_MAGIC {
        return read_safetensors(source, name.unwrap_or(TENSOR)).await;
    }
    match name {
        None => read_npy(source).await,
        Some(name) => Err(Error::Input {
            what: format!("tensor of {}", source.name()),
            expected: "none: a .npy file has one array".to_owned(),
            found: format!("\"{name}\""),
        }),
    }
}

async fn read_safetensors(source: &dyn ByteSource, name: &str) -> Result<HostTensor> {
    let header = read_header(source).await?;
    let Some(info) = header.tensors.get(name) else {
        let names: Vec<&str> = header.tensors.keys().map(String::as_str).take(8).collect();
        return Err(Error::Input {
            what: format!("latents in {}", source.name()),
            expected: format!("a tensor \"{name}\""),
            found: if names.is_empty() {
                "no tensors".to_owned()
            } else {
                format!("only \"{}\"", names.join("\", \""))
            },
        });
    };
    read_tensor(source, name, info).await
}
