//! The .npy format of `NumPy`, for latents and images as plain arrays: float32 and float16 in C
//! order. Other types and orders are an error.
//!
//! A file is a magic number, a version, the header's length, a Python dict literal, then the data.
//! This module parses the literal itself. Only the three keys of every header matter, and a parser
//! of all Python literals could hang or crash on hostile files.

use super::convert;
use super::safetensors::{ElementType, TensorInfo, read_tensor};
use super::source::{ByteSource, read};
use crate::error::{Error, Result};
use crate::tensor::{DType, HostTensor};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Longest accepted header, in bytes. `NumPy` writes 118, unless an array has very many axes.
const MAX_HEADER_BYTES: u64 = 10_000;

/// Bytes of the longest preamble: magic number, two bytes of version, four of length.
const PREAMBLE_BYTES: u64 = 12;

/// Alignment of the first data byte in a file, in bytes, as `NumPy` chooses it.
const ALIGNMENT: usize = 64;

/// Reads the array in `source`.
///
/// # Errors
/// [`Error::Format`] for anything but float32 or float16 in C order, and for a truncated file; the
/// errors of the source.
pub async fn read_npy(source: &dyn ByteSource) -> Result<HostTensor> {
    read_tensor(source, source.name(), &npy_info(source).await?).await
}

/// Reads the header of `source`: position, shape and type of its array.
///
/// # Errors
/// See [`read_npy`].
pub async fn npy_info(source: &dyn ByteSource) -> Result<TensorInfo> {
    let fail = |problem| Error::Format { file: source.name().to_owned(), problem };
    let preamble = read(source, 0, source.len().min(PREAMBLE_BYTES)).await?;
    let (header_start, header_bytes) = parse_preamble(&preamble).map_err(fail)?;
    let data_start = header_start + header_bytes;
    if data_start > source.len() {
        return Err(fail(format!("truncated: the header ends at byte {data_start}, the file at {}", source.len())));
    }
    let header = read(source, header_start, header_bytes).await?;
    let Header { dtype, shape } = parse_header(&header).map_err(fail)?;

    let elements = shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent));
    let needed = elements.and_then(|elements| elements.checked_mul(dtype.size()));
    let data_bytes = source.len() - data_start;
    if needed != Some(data_bytes) {
        let needed = needed.map_or("more bytes than 64 bits can count".to_owned(), |bytes| format!("{bytes} bytes"));
        return Err(fail(format!(
            "an array of shape {shape:?} and type {dtype} has {needed}, but {data_bytes} follow the header"
        )));
    }
    Ok(TensorInfo { dtype: ElementType::Float(dtype), shape, offset: data_start, bytes: data_bytes })
}

/// Encodes the tensor as a .npy file of type float32.
pub fn write_npy(tensor: &HostTensor) -> Vec<u8> {
    let mut file = npy_header(&tensor.shape);
    file.extend_from_slice(&convert::to_bytes(&tensor.data));
    file
}

/// Makes the bytes before the data in a .npy file of type float32.
pub fn npy_header(shape: &[usize]) -> Vec<u8> {
    let extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    // A tuple of one extent needs its comma; longer tuples must not end with one.
    let extents = if shape.len() == 1 { extents.trim_end() } else { extents.trim_end_matches(", ") };
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({extents}), }}");
    let version_1 = header.len() + 11 + ALIGNMENT <= usize::from(u16::MAX);
    let start = if version_1 { 10 } else { 12 };
    let end = (start + header.len() + 1).next_multiple_of(ALIGNMENT);
    header.extend(std::iter::repeat_n(' ', end - 1 - start - header.len()));
    header.push('\n');

    let length = (header.len() as u64).to_le_bytes();
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(if version_1 { &[1, 0] } else { &[2, 0] });
    file.extend_from_slice(if version_1 { &length[..2] } else { &length[..4] });
    file.extend_from_slice(header.as_bytes());
    file
}

struct Header {
    dtype: DType,
    shape: Vec<u64>,
}

/// Parses the first bytes of a file. Returns start and length of the header, in bytes.
fn parse_preamble(preamble: &[u8]) -> std::result::Result<(u64, u64), String> {
    let rest = preamble.strip_prefix(MAGIC).ok_or("not a .npy file")?;
    let (start, bytes) = match *rest {
        [1, _, low, high, ..] => (10, u64::from(u16::from_le_bytes([low, high]))),
        [2 | 3, _, a, b, c, d, ..] => (12, u64::from(u32::from_le_bytes([a, b, c, d]))),
        [version @ (0 | 4..), ..] => {
            return Err(format!("version {version} of the .npy format is not supported, 1 to 3 are"));
        }
        [] | [1..=3, ..] => return Err("truncated within its first bytes".to_owned()),
    };
    if bytes > MAX_HEADER_BYTES {
        return Err(format!("its header would have {bytes} bytes, more than {MAX_HEADER_BYTES}"));
    }
    Ok((start, bytes))
}

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4, 8, 8), }`, with the keys in any
/// order.
fn parse_header(header: &[u8]) -> std::result::Result<Header, String> {
    let text = std::str::from_utf8(header).ok().map(str::trim).ok_or("its header is not text")?;
    let malformed = || format!("its header does not describe an array: {}", text.chars().take(200).collect::<String>());
    let mut rest = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).ok_or_else(malformed)?.trim();
    let (mut descr, mut fortran_order, mut shape) = (None, None, None);
    while !rest.is_empty() {
        let (key, after) = quoted(rest).ok_or_else(malformed)?;
        let value = after.trim_start().strip_prefix(':').ok_or_else(malformed)?.trim_start();
        // A structured type is a list, and skipping it would need a parser of Python literals.
        if value.starts_with('[') {
            return Err("a structured array; only float32 and float16 are read".to_owned());
        }
        let after = match key {
            "descr" => quoted(value).map(|(name, after)| (descr = Some(name), after).1),
            "fortran_order" => boolean(value).map(|(flag, after)| (fortran_order = Some(flag), after).1),
            "shape" => tuple(value).map(|(extents, after)| (shape = Some(extents), after).1),
            _ => None,
        };
        let after = after.ok_or_else(malformed)?.trim_start();
        rest = match after.strip_prefix(',') {
            Some(after) => after.trim_start(),
            None if after.is_empty() => after,
            None => return Err(malformed()),
        };
    }
    let (Some(descr), Some(fortran_order), Some(shape)) = (descr, fortran_order, shape) else {
        return Err(malformed());
    };
    let dtype = match descr {
        "<f4" => DType::F32,
        "<f2" => DType::F16,
        other => {
            return Err(format!(
                "elements of type '{other}'; only float32 and float16 are read: save array.astype('float32')"
            ));
        }
    };
    if fortran_order {
        return Err("the array is in Fortran order: save numpy.ascontiguousarray(array)".to_owned());
    }
    Ok(Header { dtype, shape })
}

/// Parses a string in single or double quotes without escapes. Returns it and the text after it.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    text[1..].split_once(quote)
}

fn boolean(text: &str) -> Option<(bool, &str)> {
    let as_true = text.strip_prefix("True").map(|after| (true, after));
    as_true.or_else(|| text.strip_prefix("False").map(|after| (false, after)))
}

/// Parses `()`, `(3,)` or `(3, 4)`. Returns the extents and the text after it.
fn tuple(text: &str) -> Option<(Vec<u64>, &str)> {
    let (inside, after) = text.strip_prefix('(')?.split_once(')')?;
    let inside = inside.trim();
    if inside.is_empty() {
        return Some((Vec::new(), after));
    }
    let inside = inside.strip_suffix(',').unwrap_or(inside);
    // Python 2 wrote long integers as 3L.
    let extents = inside.split(',').map(|extent| extent.trim().trim_end_matches('L').parse().ok());
    Some((extents.collect::<Option<_>>()?, after))
}
