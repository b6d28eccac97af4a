//! Latents in files: their format, their tensor, and the scale of their values.

use std::collections::BTreeMap;

use super::array_file::ArrayFile;
use super::safetensors::write_with_metadata;
use super::source::ByteSource;
use crate::error::{Error, Result};
use crate::model::config::{AutoencoderConfig, LatentSpace};
use crate::ordered::Ordered as _;
use crate::tensor::HostTensor;

/// Default name of the tensor that is read, and name of the tensor that is written.
pub const TENSOR: &str = "latents";

/// Name of the tensor in `ComfyUI`'s .latent files, tried if a file has no `latents`.
const COMFY_TENSOR: &str = "latent_tensor";

/// An empty tensor in `ComfyUI`'s files. The files of its first weeks lack it; their values still
/// have the scale of the diffusion model.
const COMFY_VERSION: &str = "latent_format_version_0";

/// The scaling factor of those first files, which were SD 1's.
const COMFY_FIRST_SCALE: f32 = 0.18215;

/// Metadata key in files that this crate writes: `true` if the values are the VAE's own, else
/// `false`.
const UNSCALED: &str = "unscaled";

/// Latents as stored in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredLatents {
    /// The values.
    pub tensor: HostTensor,
    /// Their space.
    pub space: StoredSpace,
}

/// Space of latents as far as their file tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredSpace {
    /// The file tells it, or a caller.
    Known(LatentSpace),
    /// The file does not tell it: [`LatentSpace::Model`].
    Unstated,
    /// `ComfyUI`'s: [`AutoencoderConfig::space_in_comfyui`].
    OfComfyUi,
}

impl From<LatentSpace> for StoredSpace {
    fn from(space: LatentSpace) -> Self {
        Self::Known(space)
    }
}

impl StoredSpace {
    /// Returns the space for a model of this `config`, of latents with `channels` channels.
    pub fn of(self, config: &AutoencoderConfig, channels: u32) -> LatentSpace {
        match self {
            Self::Known(space) => space,
            Self::Unstated => LatentSpace::Model,
            Self::OfComfyUi => config.space_in_comfyui(channels),
        }
    }
}

/// Reads the array of a .npy file, or the tensor `name` of a .safetensors or .latent file. Without
/// a name it reads `latents`, or else `latent_tensor`, which is `ComfyUI`'s name. The first bytes
/// of the file tell the format.
///
/// # Errors
/// [`Error::Format`](crate::Error::Format), [`Error::Io`](crate::Error::Io), or
/// [`Error::Input`](crate::Error::Input) if there is no such tensor.
pub async fn read_latents(source: &dyn ByteSource, name: Option<&str>) -> Result<StoredLatents> {
    let (file, scale) = find_latents(source, name).await?;
    let mut tensor = file.read(source).await?;
    scale.apply(&mut tensor.data);
    Ok(StoredLatents { tensor, space: scale.space })
}

/// The scale of the values in a file of latents.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredScale {
    /// The space of the values.
    pub(super) space: StoredSpace,
    /// True if the file is from `ComfyUI`'s first weeks.
    first_comfy: bool,
}

impl StoredScale {
    /// Converts the values of a file to the scale that [`StoredLatents`] promises.
    pub(super) fn apply(self, values: &mut [f32]) {
        if self.first_comfy {
            values.iter_mut().for_each(|value| *value *= 1.0 / COMFY_FIRST_SCALE);
        }
    }
}

/// Finds the array that [`read_latents`] reads, without reading it.
pub(super) async fn find_latents(source: &dyn ByteSource, name: Option<&str>) -> Result<(ArrayFile, StoredScale)> {
    let file = ArrayFile::find(source, "latents", name, &[TENSOR, COMFY_TENSOR]).await?;
    let scale = match &file {
        ArrayFile::Npy(_) => StoredScale { space: StoredSpace::Unstated, first_comfy: false },
        ArrayFile::Safetensors { header, name } => {
            let is_comfy = name == COMFY_TENSOR;
            StoredScale {
                space: if is_comfy { StoredSpace::OfComfyUi } else { stated_space(&header.metadata, source.name())? },
                first_comfy: is_comfy && !header.tensors.contains_key(COMFY_VERSION),
            }
        }
    };
    Ok((file, scale))
}

/// Returns the space that the metadata of `file` state.
fn stated_space(metadata: &BTreeMap<String, String>, file: &str) -> Result<StoredSpace> {
    match metadata.get(UNSCALED).map(String::as_str) {
        None => Ok(StoredSpace::Unstated),
        Some("true") => Ok(LatentSpace::Vae.into()),
        Some("false") => Ok(LatentSpace::Model.into()),
        Some(other) => {
            Err(Error::input(format!("metadata \"{UNSCALED}\" of {file}"), "true or false", format!("\"{other}\"")))
        }
    }
}

/// Makes a .safetensors file of latents in `space`. [`read_latents`] reads them back, including
/// their space. `facts` are stored as metadata, for people.
///
/// # Errors
/// [`Error::Input`](crate::Error::Input) if the number of values does not match the shape.
pub fn write_latents(latents: &HostTensor, space: LatentSpace, facts: &[(&'static str, String)]) -> Result<Vec<u8>> {
    write_with_metadata(&[(TENSOR, latents)], &metadata(space, facts))
}

/// Makes the metadata of such a file: `unscaled` and `facts`.
pub fn metadata(space: LatentSpace, facts: &[(&'static str, String)]) -> BTreeMap<&'static str, String> {
    let mut metadata = facts.iter().cloned().into_map();
    metadata.insert(UNSCALED, space.is_unscaled().to_string());
    metadata
}
