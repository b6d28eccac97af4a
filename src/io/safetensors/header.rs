//! Parser and checks of a safetensors header. Errors about a tensor name it.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::{ElementType, Header, PREFIX_BYTES, TensorInfo};
use crate::error::{Error, Result};
use crate::ordered::by_key;
use crate::tensor::DType;

/// The one key of a header that is not a tensor.
pub(super) const METADATA: &str = "__metadata__";

/// Bits of one element, for each dtype of the format. The size of any other dtype is not checked.
const ELEMENT_BITS: &[(&str, u64)] = &[
    ("BOOL", 8),
    ("F4", 4),
    ("F6_E2M3", 6),
    ("F6_E3M2", 6),
    ("U8", 8),
    ("I8", 8),
    ("F8_E5M2", 8),
    ("F8_E4M3", 8),
    ("F8_E8M0", 8),
    ("F8_E4M3FNUZ", 8),
    ("F8_E5M2FNUZ", 8),
    ("I16", 16),
    ("U16", 16),
    ("F16", 16),
    ("BF16", 16),
    ("I32", 32),
    ("U32", 32),
    ("F32", 32),
    ("C64", 64),
    ("F64", 64),
    ("I64", 64),
    ("U64", 64),
];

/// Parses the header `json` of a file of `file_bytes` bytes. Checks that the tensors cover the data
/// exactly: no overlap, no gap, nothing beyond the end. Each must have the length that its shape
/// and dtype need. `file` is for errors.
///
/// # Errors
/// [`Error::Format`] that names the tensor.
pub fn parse_header(file: &str, json: &[u8], file_bytes: u64) -> Result<Header> {
    let fail = |problem| Error::Format { file: file.to_owned(), problem };
    let entries = parse_json(json).map_err(fail)?;
    let data_start = PREFIX_BYTES + json.len() as u64;
    let data_bytes =
        file_bytes.checked_sub(data_start).ok_or_else(|| fail("truncated within its header".to_owned()))?;
    let mut tensors = BTreeMap::new();
    for (name, RawTensor { dtype, shape, data_offsets: (begin, end) }) in &entries.tensors {
        let (offset, bytes) = (data_start.saturating_add(*begin), end.saturating_sub(*begin));
        let info = TensorInfo { dtype: element_type(dtype), shape: shape.clone(), offset, bytes };
        if tensors.insert(name.clone(), info).is_some() {
            return Err(fail(format!("its header has a bad entry \"{name}\": this name occurs twice")));
        }
    }
    check_cover(&entries.tensors, data_bytes).map_err(fail)?;
    for (name, RawTensor { dtype, shape, data_offsets: (begin, end) }) in &entries.tensors {
        check_size(dtype, shape, end - begin).map_err(|problem| fail(format!("tensor \"{name}\": {problem}")))?;
    }
    Ok(Header { tensors, metadata: entries.metadata })
}

fn element_type(name: &str) -> ElementType {
    let readable = [DType::F32, DType::F16, DType::BF16].into_iter().find(|dtype| dtype.to_string() == name);
    readable.map_or_else(|| ElementType::Other(name.to_owned()), ElementType::Float)
}

/// Checks that `bytes` is the size that shape and dtype need.
fn check_size(dtype: &str, shape: &[u64], bytes: u64) -> std::result::Result<(), String> {
    let elements = shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent));
    let elements = elements.ok_or_else(|| format!("shape {shape:?} has more elements than 64 bits can count"))?;
    let Some(&(_, bits)) = ELEMENT_BITS.iter().find(|(name, _)| *name == dtype) else {
        return Ok(());
    };
    let needed_bits = elements.checked_mul(bits);
    let needed_bits =
        needed_bits.ok_or_else(|| format!("shape {shape:?} of {dtype} has more bits than 64 bits can count"))?;
    if needed_bits % 8 != 0 {
        return Err(format!("shape {shape:?} of {dtype} does not end at a whole byte"));
    }
    if needed_bits / 8 != bytes {
        return Err(format!("shape {shape:?} of {dtype} has {} bytes, but its offsets span {bytes}", needed_bits / 8));
    }
    Ok(())
}

/// Checks that the tensors fill the `data_bytes` bytes after the header without gaps.
fn check_cover(tensors: &[(String, RawTensor)], data_bytes: u64) -> std::result::Result<(), String> {
    let all: Vec<_> = tensors.iter().map(|(name, tensor)| (tensor.data_offsets, name)).collect();
    // By the first byte; a tensor without bytes comes before the one that begins there.
    let key = |(begin, end): (u64, u64)| begin.saturating_mul(2).saturating_add(u64::from(begin != end));
    let in_order = by_key(all.iter().map(|(offsets, _)| key(*offsets)));
    let mut covered = 0;
    let mut previous = "the header";
    for index in in_order {
        let ((begin, end), name) = all[index];
        if begin > end {
            return Err(format!("tensor \"{name}\" ends at byte {end}, before its start at byte {begin}"));
        }
        if end > data_bytes {
            return Err(format!(
                "truncated or corrupt: tensor \"{name}\" ends at byte {end}, but there are {data_bytes} bytes of data"
            ));
        }
        if begin < covered {
            return Err(format!(
                "tensor \"{name}\" starts at byte {begin} and overlaps {previous}, which ends at {covered}"
            ));
        }
        if begin > covered {
            return Err(format!("{} unused bytes between {previous} and tensor \"{name}\"", begin - covered));
        }
        covered = end;
        previous = name;
    }
    if covered < data_bytes {
        return Err(format!("{} unused bytes after the last tensor", data_bytes - covered));
    }
    Ok(())
}

/// The header as written. Nothing is checked so far.
#[derive(Default)]
struct Entries {
    tensors: Vec<(String, RawTensor)>,
    metadata: BTreeMap<String, String>,
    /// Name of the entry being read, for the error.
    current: Option<String>,
}

#[derive(Deserialize)]
struct RawTensor {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

fn parse_json(json: &[u8]) -> std::result::Result<Entries, String> {
    let mut entries = Entries::default();
    let text = std::str::from_utf8(json).map_err(|error| format!("its header is not a safetensors header: {error}"))?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parsed = deserializer.deserialize_map(EntriesVisitor(&mut entries)).and_then(|()| deserializer.end());
    match (parsed, &entries.current) {
        (Ok(()), _) => Ok(entries),
        (Err(error), None) => Err(format!("its header is not a safetensors header: {error}")),
        (Err(error), Some(name)) => Err(format!("its header has a bad entry \"{name}\": {error}")),
    }
}

/// A visitor that fills `Entries`. serde's own map would keep the last of two equal names.
struct EntriesVisitor<'a>(&'a mut Entries);

impl<'de> Visitor<'de> for EntriesVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object of tensors")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> std::result::Result<(), M::Error> {
        while let Some(name) = map.next_key::<String>()? {
            self.0.current = Some(name.clone());
            if name == METADATA {
                // Some writers write null for "no metadata".
                self.0.metadata = map.next_value::<Option<_>>()?.unwrap_or_default();
            } else {
                self.0.tensors.push((name, map.next_value()?));
            }
            self.0.current = None;
        }
        Ok(())
    }
}
