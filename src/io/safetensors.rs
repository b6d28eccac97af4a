//! The safetensors format: header, single tensors, and a writer. Never holds a whole file.
//!
//! A file is 8 bytes with the header's length, the header (JSON: name -> dtype, shape, offsets),
//! then the data. The rules are those of the `safetensors` crate, whose own parser is not used
//! because it wants 64-bit `usize` for files over 4 GiB (a browser has 32), merges doubled names
//! silently, refuses a whole file for one unknown dtype, and does not say which tensor is wrong.

mod header;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::json;

pub use self::header::parse_header;
use super::convert;
use super::source::ByteSource;
use crate::error::{Error, Result};
use crate::tensor::{DType, HostTensor};

/// Longest header accepted, in bytes. The same number as upstream's.
pub const MAX_HEADER_BYTES: u64 = 100_000_000;

/// Bytes before the header: its length as a little-endian u64.
const PREFIX_BYTES: u64 = 8;

/// What a file says about its tensors.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// Every tensor, usable or not, by name.
    pub tensors: BTreeMap<String, TensorInfo>,
    /// The free-form `__metadata__` of the file.
    pub metadata: BTreeMap<String, String>,
}

/// Where a tensor lies and how to read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Type of the elements.
    pub dtype: ElementType,
    /// Extent of each axis, slowest first.
    pub shape: Vec<u64>,
    /// First byte, counted from the start of the file.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// Type of a stored tensor's elements: one that weights may have, or any other by the name the file
/// gives it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ElementType {
    /// A type this crate reads.
    Float(DType),
    /// A type it only lists.
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
    let prefix = source.read_at(0, source.len().min(PREFIX_BYTES)).await?;
    if PICKLES.iter().any(|magic| prefix.starts_with(magic)) {
        let problem = "not a safetensors file but a zip archive or a Python pickle, perhaps a PyTorch checkpoint: convert it to safetensors";
        let code = how_to_convert(source.name(), "model.safetensors");
        return fail(format!("{problem}, in Python with torch and safetensors: {code}"));
    }
    if let Some(&(_, other)) = OTHER_FORMATS.iter().find(|(magic, _)| prefix.starts_with(magic)) {
        return fail(format!("not a safetensors file but {other}"));
    }
    let Ok(prefix) = <[u8; 8]>::try_from(prefix) else {
        return fail(format!("{} bytes are too few for a safetensors file", source.len()));
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
    let json = source.read_at(PREFIX_BYTES, header_bytes).await?;
    parse_header(source.name(), &json, source.len())
}

/// Reads one tensor as f32. `name` is for errors. Types other than F32, F16 and BF16 are refused;
/// values are not looked at.
pub async fn read_tensor(source: &dyn ByteSource, name: &str, info: &TensorInfo) -> Result<HostTensor> {
    let fail = |expected: &str, found| Error::Tensor { tensor: name.to_owned(), expected: expected.to_owned(), found };
    let dtype = float_type(name, info)?;
    let shape: Option<Vec<usize>> = info.shape.iter().map(|&extent| usize::try_from(extent).ok()).collect();
    let shape = shape.ok_or_else(|| fail("a shape this machine can address", format!("{:?}", info.shape)))?;
    let bytes = source.read_at(info.offset, info.bytes).await?;
    let data = convert::to_f32(&bytes, dtype);
    if Some(data.len()) != shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent)) {
        return Err(fail(&format!("data of shape {shape:?}"), format!("{} elements", data.len())));
    }
    Ok(HostTensor { shape, data })
}

/// As [`read_tensor`], only the `count` elements from `first` on, in the order of the file.
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
    Ok(convert::to_f32(&source.read_at(start, bytes(count)).await?, dtype))
}

/// The type of a tensor that can be read.
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

/// A whole file with these tensors as F32, data in the order given. Doubled or reserved names are
/// refused.
pub fn write_safetensors(tensors: &[(&str, &HostTensor)]) -> Result<Vec<u8>> {
    write_with_metadata(tensors, &BTreeMap::new())
}

/// As [`write_safetensors`], with the free-form `metadata` in the header.
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

/// What comes before the data in a file with these tensors as F32. Doubled or reserved names are
/// refused.
pub fn safetensors_header(tensors: &[(&str, &[usize])]) -> Result<Vec<u8>> {
    header_with_metadata(tensors, &BTreeMap::new())
}

/// As [`safetensors_header`], with the free-form `metadata`.
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
            let found = "a reserved name or one used twice".to_owned();
            return Err(unwritable(name, "a name of its own".to_owned(), found));
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
    Error::Input { what: format!("tensor \"{name}\" to be written"), expected, found }
}

/// Python code that makes a safetensors file of the checkpoint `from`, without running what is in
/// it.
pub fn how_to_convert(from: &str, to: &str) -> String {
    format!(
        "import torch, safetensors.torch; d = torch.load({from:?}, map_location=\"cpu\", weights_only=True); d = d.get(\"state_dict\", d); \
        safetensors.torch.save_file({{k: v.contiguous() for k, v in d.items() if torch.is_tensor(v)}}, {to:?})"
    )
}

/// First bytes of `PyTorch`'s own files: zip archives, and pickles of older versions.
const PICKLES: &[&[u8]] = &[b"PK\x03\x04", b"\x80\x02"];

/// What people hand over instead: the first bytes, and what that is.
const OTHER_FORMATS: &[(&[u8], &str)] = &[
    (b"GGUF", "a GGUF file: convert it to safetensors"),
    (b"\x93NUMPY", "a NumPy array (.npy)"),
    (b"version ", "a Git LFS pointer: the real file was not downloaded (git lfs pull)"),
    (b"<!DOCTYP", "a web page: the download failed"),
    (b"<!doctyp", "a web page: the download failed"),
    (b"<html", "a web page: the download failed"),
];
