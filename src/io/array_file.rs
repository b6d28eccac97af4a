//! One array of a file: the only array of a .npy file, or one tensor of a .safetensors file by
//! name. The first bytes of the file tell its format.

use super::npy::npy_info;
use super::safetensors::{Header, TensorInfo, read_elements, read_header, read_tensor};
use super::source::{ByteSource, read};
use crate::error::{Error, Result};
use crate::tensor::HostTensor;

/// The first bytes of every .npy file.
const NPY_MAGIC: &[u8] = b"\x93NUMPY";

/// The first bytes of every zip archive.
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";

/// An array that was found in a file but not read yet.
#[derive(Debug)]
pub enum ArrayFile {
    /// The only array of a .npy file.
    Npy(TensorInfo),
    /// The tensor `name` of a .safetensors file.
    Safetensors {
        /// Header of the file.
        header: Header,
        /// Name of the tensor.
        name: String,
    },
}

impl ArrayFile {
    /// Finds the tensor `name`. Without a name, finds the first of the names in `usual` that
    /// exists. `what` names the content in errors: `latents` or `images`.
    ///
    /// # Errors
    /// See [`read_images`](crate::read_images).
    pub async fn find(source: &dyn ByteSource, what: &str, name: Option<&str>, usual: &[&str]) -> Result<Self> {
        let start = read(source, 0, source.len().min(NPY_MAGIC.len() as u64)).await?;
        if start == NPY_MAGIC {
            return match name {
                None => npy_info(source).await.map(Self::Npy),
                Some(name) => Err(Error::input(
                    format!("tensor of {}", source.name()),
                    "none: a .npy file has one array",
                    format!("\"{name}\""),
                )),
            };
        }
        if start.starts_with(ZIP_MAGIC) {
            let problem = "a zip archive, as .npz and PyTorch's files are: save one array as .npy or .safetensors";
            return Err(Error::format(source.name(), problem));
        }
        let header = read_header(source).await?;
        let names = name.as_ref().map_or(usual, std::slice::from_ref);
        match names.iter().find(|name| header.tensors.contains_key(**name)) {
            Some(name) => Ok(Self::Safetensors { name: (*name).to_owned(), header }),
            None => Err(missing(source, what, names, &header)),
        }
    }

    /// Returns the position, shape and element type of the array.
    pub fn info(&self) -> &TensorInfo {
        match self {
            Self::Npy(info) => info,
            Self::Safetensors { header, name } => &header.tensors[name],
        }
    }

    /// Reads the whole array.
    ///
    /// # Errors
    /// See [`read_tensor`].
    pub async fn read(&self, source: &dyn ByteSource) -> Result<HostTensor> {
        read_tensor(source, self.name(source), self.info()).await
    }

    /// Reads `count` elements from element `first` on.
    ///
    /// # Errors
    /// See [`read_elements`](super::safetensors::read_elements).
    pub async fn read_elements(&self, source: &dyn ByteSource, first: u64, count: u64) -> Result<Vec<f32>> {
        read_elements(source, self.name(source), self.info(), first, count).await
    }

    fn name<'a>(&'a self, source: &'a dyn ByteSource) -> &'a str {
        match self {
            Self::Npy(_) => source.name(),
            Self::Safetensors { name, .. } => name,
        }
    }
}

fn missing(source: &dyn ByteSource, what: &str, names: &[&str], header: &Header) -> Error {
    let found: Vec<&str> = header.tensors.keys().map(String::as_str).take(8).collect();
    Error::input(
        format!("{what} in {}", source.name()),
        format!("a tensor \"{}\"", names.join("\" or \"")),
        if found.is_empty() { "no tensors".to_owned() } else { format!("only \"{}\"", found.join("\", \"")) },
    )
}
