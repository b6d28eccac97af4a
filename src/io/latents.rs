//! Latents in files: which format, which tensor.

use super::npy::read_npy;
use super::safetensors::{read_header, read_tensor};
use super::source::ByteSource;
use crate::error::{Error, Result};
use crate::tensor::HostTensor;

/// Name of the tensor where none is given.
const TENSOR: &str = "latents";

/// The name that `ComfyUI` gives it in its .latent files, and ours where a file has no `latents`. Its values are the VAE's own: the sampler has divided them by
/// the model's scaling factor already.
const COMFY_TENSOR: &str = "latent_tensor";

/// An empty tensor of `ComfyUI`'s files. Those without are of its first weeks, when values were still as the diffusion model leaves them, ...
const COMFY_VERSION: &str = "latent_format_version_0";

/// ... and that was SD 1's, whose scaling factor this is.
const COMFY_FIRST_SCALE: f32 = 0.18215;

/// How every .npy file begins.
const NPY_MAGIC: &[u8] = b"\x93NUMPY";

/// Latents as a file has them.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredLatents {
    /// The values.
    pub tensor: HostTensor,
    /// They are the VAE's own, already divided by the model's scaling factor.
    pub unscaled: bool,
}

/// Reads the array of a .npy file, or the tensor `name` of a .safetensors or .latent file. Where no name is given that is `latents`, or else `latent_tensor`,
/// as `ComfyUI` calls it. Which of the formats it is shows in the file's first bytes.
///
/// # Errors
/// [`Error::Format`], [`Error::Io`], or [`Error::Input`] where there is no such tensor.
pub async fn read_latents(source: &dyn ByteSource, name: Option<&str>) -> Result<StoredLatents> {
    let start = source.read_at(0, source.len().min(NPY_MAGIC.len() as u64)).await?;
    if start != NPY_MAGIC {
        return read_safetensors(source, name).await;
    }
    match name {
        None => Ok(StoredLatents { tensor: read_npy(source).await?, unscaled: false }),
        Some(name) => Err(Error::Input {
            what: format!("tensor of {}", source.name()),
            expected: "none: a .npy file has one array".to_owned(),
            found: format!("\"{name}\""),
        }),
    }
}

async fn read_safetensors(source: &dyn ByteSource, name: Option<&str>) -> Result<StoredLatents> {
    let header = read_header(source).await?;
    let names = name.map_or(vec![TENSOR, COMFY_TENSOR], |name| vec![name]);
    let Some((name, info)) = names.iter().find_map(|name| header.tensors.get_key_value(*name)) else {
        let found: Vec<&str> = header.tensors.keys().map(String::as_str).take(8).collect();
        return Err(Error::Input {
            what: format!("latents in {}", source.name()),
            expected: format!("a tensor \"{}\"", names.join("\" or \"")),
            found: if found.is_empty() {
                "no tensors".to_owned()
            } else {
                format!("only \"{}\"", found.join("\", \""))
            },
        });
    };
    let mut tensor = read_tensor(source, name, info).await?;
    let unscaled = name == COMFY_TENSOR;
    if unscaled && !header.tensors.contains_key(COMFY_VERSION) {
        tensor.data.iter_mut().for_each(|value| *value *= 1.0 / COMFY_FIRST_SCALE);
    }
    Ok(StoredLatents { tensor, unscaled })
}
