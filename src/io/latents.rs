//! Latents in files: which format, which tensor, and whether they are the VAE's own.

use std::collections::BTreeMap;

use super::array_file::ArrayFile;
use super::safetensors::write_with_metadata;
use super::source::ByteSource;
use crate::error::Result;
use crate::ordered::Ordered as _;
use crate::tensor::HostTensor;

/// Name of the tensor where none is given, and of the one that is written.
pub(super) const TENSOR: &str = "latents";

/// The name that `ComfyUI` gives it in its .latent files, and ours where a file has no `latents`.
/// Its values are the VAE's own: the sampler has divided them by the model's scaling factor
/// already.
const COMFY_TENSOR: &str = "latent_tensor";

/// An empty tensor of `ComfyUI`'s files. Those without are of its first weeks, when values were
/// still as the diffusion model leaves them, ...
const COMFY_VERSION: &str = "latent_format_version_0";

/// ... and that was SD 1's, whose scaling factor this is.
const COMFY_FIRST_SCALE: f32 = 0.18215;

/// Channels of its latents for FLUX.2: those have patches and batch norm as the diffusion model
/// leaves them, since `ComfyUI`'s VAE undoes both. No VAE has so many of its own.
const COMFY_FLUX2_CHANNELS: u64 = 128;

/// The key of the metadata in files that are written here that says whether the values are the
/// VAE's own, by `true` or `false`.
const UNSCALED: &str = "unscaled";

/// Latents as a file has them.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredLatents {
    /// The values.
    pub tensor: HostTensor,
    /// They are the VAE's own, already divided by the model's scaling factor.
    pub unscaled: bool,
}

/// Reads the array of a .npy file, or the tensor `name` of a .safetensors or .latent file. Where no
/// name is given that is `latents`, or else `latent_tensor`, as `ComfyUI` calls it. Which of the
/// formats it is shows in the file's first bytes.
///
/// # Errors
/// [`Error::Format`](crate::Error::Format), [`Error::Io`](crate::Error::Io), or
/// [`Error::Input`](crate::Error::Input) where there is no such tensor.
pub async fn read_latents(source: &dyn ByteSource, name: Option<&str>) -> Result<StoredLatents> {
    let (file, scale) = find_latents(source, name).await?;
    let mut tensor = file.read(source).await?;
    scale.apply(&mut tensor.data);
    Ok(StoredLatents { tensor, unscaled: scale.unscaled })
}

/// What the values of a file of latents mean.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredScale {
    /// They are the VAE's own.
    pub(super) unscaled: bool,
    /// They are of `ComfyUI`'s first weeks.
    first_comfy: bool,
}

impl StoredScale {
    /// Turns what the file has into what [`StoredLatents`] promises.
    pub(super) fn apply(self, values: &mut [f32]) {
        if self.first_comfy {
            values.iter_mut().for_each(|value| *value *= 1.0 / COMFY_FIRST_SCALE);
        }
    }
}

/// The array that [`read_latents`] reads, not yet read.
pub(super) async fn find_latents(source: &dyn ByteSource, name: Option<&str>) -> Result<(ArrayFile, StoredScale)> {
    let file = ArrayFile::find(source, "latents", name, &[TENSOR, COMFY_TENSOR]).await?;
    let scale = match &file {
        ArrayFile::Npy(_) => StoredScale { unscaled: false, first_comfy: false },
        ArrayFile::Safetensors { header, name } => {
            let is_flux2 = matches!(header.tensors[name].shape[..], [_, COMFY_FLUX2_CHANNELS, _, _]);
            let is_comfy = name == COMFY_TENSOR && !is_flux2;
            StoredScale {
                unscaled: is_comfy || header.metadata.get(UNSCALED).is_some_and(|said| said == "true"),
                first_comfy: is_comfy && !header.tensors.contains_key(COMFY_VERSION),
            }
        }
    };
    Ok((file, scale))
}

/// A .safetensors file of `latents` that [`read_latents`] reads back, and tells whether they are
/// the VAE's own. `facts` are written beside them, for people.
///
/// # Errors
/// [`Error::Input`](crate::Error::Input) when there are not as many values as the shape says.
pub fn write_latents(latents: &StoredLatents, facts: &[(&'static str, String)]) -> Result<Vec<u8>> {
    write_with_metadata(&[(TENSOR, &latents.tensor)], &metadata(latents.unscaled, facts))
}

/// What such a file says of its values, and `facts`.
pub(super) fn metadata(unscaled: bool, facts: &[(&'static str, String)]) -> BTreeMap<&'static str, String> {
    let mut metadata = facts.iter().cloned().into_map();
    metadata.insert(UNSCALED, unscaled.to_string());
    metadata
}
