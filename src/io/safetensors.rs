//! The safetensors format: header, single tensors, and a writer. It never holds a whole file.
//!
//! A file is 8 bytes with the header's length, the header (JSON: name -> dtype, shape, offsets),
//! then the data. The rules are those of the `safetensors` crate. Its own parser is not used, for
//! four reasons:
//!
//! - It needs 64-bit `usize` for files over 4 GiB, and a browser has 32.
//! - It merges duplicate names silently.
//! - One unknown dtype makes it reject the whole file.
//! - Its errors do not name the tensor.

mod header;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::json;

pub use self::header::parse_header;
use super::convert;
use super::source::{ByteSource, read};
use crate::error::{Error, Result};
use crate::tensor::{DType, HostTensor};

/// Longest accepted header, in bytes. The limit is the same as in the `safetensors` crate.
pub const MAX_HEADER_BYTES: u64 = 100_000_000;

/// Number of bytes before the header: its length as a little-endian u64.
const PREFIX_BYTES: u64 = 8;

/// Tensors and metadata of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// Every tensor by name, readable or not.
    pub tensors: BTreeMap<String, TensorInfo>,
    /// The free-form `__metadata__` of the file.
    pub metadata: BTreeMap<String, String>,
}

/// Position, shape and type of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Type of the elements.
    pub dtype: ElementType,
    /// Extent of each axis, slowest first.
    pub shape: Vec<u64>,
    /// Position of the first byte, counted from the start of the file.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// Type of a stored tensor's elements: a type that weights may have, or the file's name for
/// another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ElementType {
    /// A type that this crate reads.
    Float(DType),
    /// A type that this crate lists but cannot read.
    Other(String),
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float(dtype) => dtype.fmt(f),
            Self::Other(name) => f.write_str(name),
        }
    }
}

/// Reads and checks the header of `source`.
pub async fn read_header(source: &dyn ByteSource) -> Result<Header> {
    let fail = |problem| Err(Error::Format { file: source.name().to_owned(), problem });
    let prefix = read(source, 0, source.len().min(PREFIX_BYTES)).await?;
    // A header of 640 bytes begins like a pickle, but the upper half of its length is 0.
    let is_pickle = prefix.starts_with(b"\x80\x02") && !prefix.ends_with(&[0; 4]);
    if is_pickle || prefix.starts_with(b"PK\x03\x04") {
        let problem = "not a safetensors file but a zip archive or a Python pickle, perhaps a PyTorch checkpoint: convert it to safetensors";
        let code = how_to_convert(source.name(), "model.safetensors");
        return fail(format!("{problem}, in Python with torch and safetensors: {code}"));
    }
    if let Some(&(_, other)) = OTHER_FORMATS.iter().find(|(magic, _)| prefix.starts_with(magic)) {
        return fail(format!("not a safetensors file but {other}"));
    }
    let Ok(prefix) = <[u8; 8]>::try_from(prefix) else {
        return fail(format!("{} bytes are too few for a file of tensors", source.len()));
    };
    let header_bytes = u64::from_le_bytes(prefix);
    if header_bytes > MAX_HEADER_BYTES {
        return fail(format!(
            "not a safetensors file: its header would have {header_bytes} bytes, more than {MAX_HEADER_BYTES}"
        ));
    }
    if header_bytes > source.len() - PREFIX_BYTES {
        return fail(format!("truncated: the header has {header_bytes} bytes, the file {}", source.len()));
    }
    let json = read(source, PREFIX_BYTES, header_bytes).await?;
    parse_header(source.name(), &json, source.len())
}

/// Reads one tensor as f32, without checking its values. `name` is for errors.
///
/// # Errors
/// [`Error::Tensor`] for types other than F32, F16 and BF16, and the errors of `source`.
pub async fn read_tensor(source: &dyn ByteSource, name: &str, info: &TensorInfo) -> Result<HostTensor> {
    let fail = |expected: &str, found| Error::Tensor { tensor: name.to_owned(), expected: expected.to_owned(), found };
    let dtype = float_type(name, info)?;
    let shape: Option<Vec<usize>> = info.shape.iter().map(|&extent| usize::try_from(extent).ok()).collect();
    let shape = shape.ok_or_else(|| fail("a shape this machine can address", format!("{:?}", info.shape)))?;
    let bytes = read(source, info.offset, info.bytes).await?;
    let data = convert::to_f32(&bytes, dtype);
    if Some(data.len()) != shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent)) {
        return Err(fail(&format!("data of shape {shape:?}"), format!("{} elements", data.len())));
    }
    Ok(HostTensor { shape, data })
}

/// Reads `count` elements from element `first` on, in the order of the file.
///
/// # Errors
/// See [`read_tensor`].
pub async fn read_elements(
    source: &dyn ByteSource,
    name: &str,
    info: &TensorInfo,
    first: u64,
    count: u64,
) -> Result<Vec<f32>> {
    let dtype = float_type(name, info)?;
    let bytes = |elements: u64| elements.saturating_mul(dtype.size());
    let start = info.offset.saturating_add(bytes(first));
    Ok(convert::to_f32(&read(source, start, bytes(count)).await?, dtype))
}

/// Returns the type of a tensor, or an error if it cannot be read.
fn float_type(name: &str, info: &TensorInfo) -> Result<DType> {
    match &info.dtype {
        ElementType::Float(dtype) => Ok(*dtype),
        ElementType::Other(other) => Err(Error::Tensor {
            tensor: name.to_owned(),
            expected: "elements of type F32, F16 or BF16".to_owned(),
            found: other.clone(),
        }),
    }
}

/// Encodes a whole file with these tensors as F32, in the order given.
///
/// # Errors
/// [`Error::Input`] for duplicate or reserved names, and for data that does not match its shape.
pub fn write_safetensors(tensors: &[(&str, &HostTensor)]) -> Result<Vec<u8>> {
    write_with_metadata(tensors, &BTreeMap::new())
}

/// Encodes a file as [`write_safetensors`] does, with free-form `metadata` in the header.
pub fn write_with_metadata(tensors: &[(&str, &HostTensor)], metadata: &BTreeMap<&str, String>) -> Result<Vec<u8>> {
    for (name, tensor) in tensors {
        if tensor.shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent))
            != Some(tensor.data.len())
        {
            let expected = format!("data of shape {:?}", tensor.shape);
            return Err(unwritable(name, expected, format!("{} elements", tensor.data.len())));
        }
    }
    let shapes: Vec<(&str, &[usize])> = tensors.iter().map(|(name, tensor)| (*name, tensor.shape.as_slice())).collect();
    let mut file = header_with_metadata(&shapes, metadata)?;
    for (_, tensor) in tensors {
        file.extend_from_slice(&convert::to_bytes(&tensor.data));
    }
    Ok(file)
}

/// Encodes the bytes before the data in a file with these tensors as F32.
///
/// # Errors
/// [`Error::Input`] for duplicate or reserved names.
pub fn safetensors_header(tensors: &[(&str, &[usize])]) -> Result<Vec<u8>> {
    header_with_metadata(tensors, &BTreeMap::new())
}

/// Encodes a header as [`safetensors_header`] does, with free-form `metadata`.
pub fn header_with_metadata(tensors: &[(&str, &[usize])], metadata: &BTreeMap<&str, String>) -> Result<Vec<u8>> {
    let mut entries = serde_json::Map::new();
    if !metadata.is_empty() {
        entries.insert(header::METADATA.to_owned(), json!(metadata));
    }
    let mut end = 0;
    for (name, shape) in tensors {
        let begin = end;
        end += shape.iter().product::<usize>() * size_of::<f32>();
        let entry = json!({ "dtype": "F32", "shape": shape, "data_offsets": [begin, end] });
        if *name == header::METADATA || entries.insert((*name).to_owned(), entry).is_some() {
            let found = "a reserved or repeated name".to_owned();
            return Err(unwritable(name, "a unique name".to_owned(), found));
        }
    }
    let mut header = serde_json::Value::Object(entries).to_string();
    // Spaces up to a multiple of eight, so that the data is aligned.
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    Ok(file)
}

fn unwritable(name: &str, expected: String, found: String) -> Error {
    Error::input(format!("tensor \"{name}\" to be written"), expected, found)
}

/// Returns Python code that converts the checkpoint `from` to safetensors. It runs no code of the
/// checkpoint.
pub fn how_to_convert(from: &str, to: &str) -> String {
    format!(
        "import torch, safetensors.torch; d = torch.load({from:?}, map_location=\"cpu\", weights_only=True); d = d.get(\"state_dict\", d); \
        safetensors.torch.save_file({{k: v.contiguous() for k, v in d.items() if torch.is_tensor(v)}}, {to:?})"
    )
}

/// Common wrong files: their first bytes, and a name for errors.
const OTHER_FORMATS: &[(&[u8], &str)] = &[
    (b"GGUF", "a GGUF file: convert it to safetensors"),
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"version ", "a Git LFS pointer: the real file was not downloaded (git lfs pull)"),
    (b"<!DOCTYP", "a web page: the download failed"),
    (b"<!doctyp", "a web page: the download failed"),
    (b"<html", "a web page: the download failed"),
];
