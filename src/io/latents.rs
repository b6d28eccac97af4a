//! Latents in files: which format, which tensor.

use super::array_file::ArrayFile;
use super::source::ByteSource;
use crate::error::Result;
use crate::tensor::HostTensor;

/// Name of the tensor where none is given, and of the one that is written.
const TENSOR: &str = "latents";

/// The name that `ComfyUI` gives it in its .latent files, and ours where a file has no `latents`. Its values are the VAE's own: the sampler has divided them by
/// the model's scaling factor already.
const COMFY_TENSOR: &str = "latent_tensor";

/// An empty tensor of `ComfyUI`'s files. Those without are of its first weeks, when values were still as the diffusion model leaves them, ...
const COMFY_VERSION: &str = "latent_format_version_0";

/// ... and that was SD 1's, whose scaling factor this is.
const COMFY_FIRST_SCALE: f32 = 0.18215;

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
/// [`Error::Format`](crate::Error::Format), [`Error::Io`](crate::Error::Io), or [`Error::Input`](crate::Error::Input) where there is no such tensor.
pub async fn read_latents(source: &dyn ByteSource, name: Option<&str>) -> Result<StoredLatents> {
    let file = ArrayFile::find(source, "latents", name, &[TENSOR, COMFY_TENSOR]).await?;
    let mut tensor = file.read(source).await?;
    let ArrayFile::Safetensors { header, name } = file else { return Ok(StoredLatents { tensor, unscaled: false }) };
    let unscaled = name == COMFY_TENSOR;
    if unscaled && !header.tensors.contains_key(COMFY_VERSION) {
        tensor.data.iter_mut().for_each(|value| *value *= 1.0 / COMFY_FIRST_SCALE);
    }
    Ok(StoredLatents { tensor, unscaled })
}
