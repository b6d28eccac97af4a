//! Images stored as floats in files.

use super::array_file::ArrayFile;
use super::source::ByteSource;
use crate::error::Result;
use crate::tensor::HostTensor;

/// Default names of the tensor. A decode to floats writes the first.
pub const TENSORS: &[&str] = &["image", "images"];

/// Reads the array of a .npy file, or the tensor `name` of a .safetensors file. Without a name it
/// reads `image`, or else `images`. It checks neither shape nor values.
///
/// # Errors
/// [`Error::Format`](crate::Error::Format), [`Error::Io`](crate::Error::Io), or
/// [`Error::Input`](crate::Error::Input) if there is no such tensor.
pub async fn read_images(source: &dyn ByteSource, name: Option<&str>) -> Result<HostTensor> {
    ArrayFile::find(source, "images", name, TENSORS).await?.read(source).await
}
