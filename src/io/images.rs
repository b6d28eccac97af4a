//! Images as floats in files.

use super::array_file::ArrayFile;
use super::source::ByteSource;
use crate::error::Result;
use crate::tensor::HostTensor;

/// Names of the tensor where none is given. The first is what a decode to floats writes.
pub(super) const TENSORS: &[&str] = &["image", "images"];

/// Reads the array of a .npy file, or the tensor `name` of a .safetensors file: where no name is
/// given `image`, or else `images`. Shape and values are not looked at.
///
/// # Errors
/// [`Error::Format`](crate::Error::Format), [`Error::Io`](crate::Error::Io), or
/// [`Error::Input`](crate::Error::Input) where there is no such tensor.
pub async fn read_images(source: &dyn ByteSource, name: Option<&str>) -> Result<HostTensor> {
    ArrayFile::find(source, "images", name, TENSORS).await?.read(source).await
}
