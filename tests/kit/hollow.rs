//! Published checkpoints without their weights.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::repository;
use wgvae::files::{ByteSource, ReadFuture};

/// Tensors of a checkpoint as written: name -> shape.
pub type Shapes = BTreeMap<String, Vec<u64>>;

/// Reads the tensors of `tests/fixtures/keys/LIST.json`.
pub fn key_list(list: &str) -> Shapes {
    let path = repository().join(format!("tests/fixtures/keys/{list}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("a key list")
}

/// File of f16 with a stored header and data that is computed as it is read, so that the largest
/// models cost nothing.
pub struct Hollow {
    /// Name as a source.
    pub name: &'static str,
    header: Vec<u8>,
    len: u64,
    tensors: Vec<Stored>,
    /// Function of the values; `None` for all zeros.
    values: Option<Values>,
}

/// Function that returns values of a tensor, by its name in the file and its shape.
pub type Values = fn(&str, &[usize], Range<u64>) -> Vec<f32>;

/// Tensor with the position of its values in the file.
struct Stored {
    name: String,
    shape: Vec<usize>,
    begin: u64,
}

impl Hollow {
    pub fn new(tensors: &Shapes, metadata: serde_json::Value, values: Option<Values>) -> Self {
        let mut end = 0;
        let mut entries = serde_json::Map::from_iter([("__metadata__".to_owned(), metadata)]);
        let mut stored = Vec::new();
        for (name, extents) in tensors {
            let begin = end;
            end += extents.iter().product::<u64>() * 2;
            entries.insert(
                name.clone(),
                serde_json::json!({"dtype": "F16", "shape": extents, "data_offsets": [begin, end]}),
            );
            let shape = extents.iter().map(|&extent| usize::try_from(extent).expect("a small shape")).collect();
            stored.push(Stored { name: name.clone(), shape, begin });
        }
        let json = serde_json::Value::Object(entries).to_string();
        let header = [&(json.len() as u64).to_le_bytes(), json.as_bytes()].concat();
        let data = header.len() as u64;
        stored.iter_mut().for_each(|tensor| tensor.begin += data);
        Self { name: "hollow.safetensors", header, len: data + end, tensors: stored, values }
    }
}

impl Stored {
    /// Writes the part of the tensor that lies in `bytes`, which begin at `offset`.
    fn write(&self, values: Values, offset: u64, bytes: &mut [u8]) {
        let count: usize = self.shape.iter().product();
        let within = |at: u64| at.saturating_sub(self.begin).min(count as u64 * 2);
        let range = within(offset) / 2..within(offset + bytes.len() as u64).div_ceil(2);
        if range.is_empty() {
            return;
        }
        let begin = self.begin + range.start * 2;
        let values = values(&self.name, &self.shape, range);
        let data = values.iter().flat_map(|&value| half::f16::from_f32(value).to_le_bytes());
        let own = usize::try_from(begin.saturating_sub(offset)).expect("a small read");
        let before = usize::try_from(offset.saturating_sub(begin)).expect("half a value at most");
        bytes[own..].iter_mut().zip(data.skip(before)).for_each(|(to, from)| *to = from);
    }
}

impl ByteSource for Hollow {
    fn name(&self) -> &str {
        self.name
    }
    fn len(&self) -> u64 {
        self.len
    }
    fn read_at(&self, offset: u64, len: u64) -> ReadFuture<'_> {
        let mut bytes = vec![0; usize::try_from(len).expect("a small read")];
        let header = self.header.get(usize::try_from(offset).expect("a small file")..).unwrap_or_default();
        let there = header.len().min(bytes.len());
        bytes[..there].copy_from_slice(&header[..there]);
        if let Some(values) = self.values {
            self.tensors.iter().for_each(|tensor| tensor.write(values, offset, &mut bytes));
        }
        Box::pin(std::future::ready(Ok(bytes)))
    }
}
