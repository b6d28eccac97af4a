//! Published checkpoints without their weights.

use std::collections::BTreeMap;

use pollster::block_on;
use wgvae::{ByteSource, Checkpoint, ReadFuture, Result};

/// Name -> shape of the tensors of a checkpoint, as written.
pub(crate) type Shapes = BTreeMap<String, Vec<u64>>;

/// The tensors of `tests/fixtures/keys/LIST.json`.
pub(crate) fn key_list(list: &str) -> Shapes {
    let path = format!("{}/tests/fixtures/keys/{list}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_str(&text).expect("a key list")
}

/// A file whose header is there and whose data is all zeros, so that the largest models cost nothing.
pub(crate) struct Hollow {
    header: Vec<u8>,
    len: u64,
}

impl Hollow {
    pub(crate) fn new(tensors: &Shapes, metadata: serde_json::Value) -> Self {
        let mut end = 0;
        let mut entries = serde_json::Map::from_iter([("__metadata__".to_owned(), metadata)]);
        for (name, shape) in tensors {
            let begin = end;
            end += shape.iter().product::<u64>() * 2;
            entries.insert(
                name.clone(),
                serde_json::json!({"dtype": "F16", "shape": shape, "data_offsets": [begin, end]}),
            );
        }
        let json = serde_json::Value::Object(entries).to_string();
        let header = [&(json.len() as u64).to_le_bytes(), json.as_bytes()].concat();
        let len = header.len() as u64 + end;
        Self { header, len }
    }
}

impl ByteSource for Hollow {
    fn name(&self) -> &str {
        "hollow.safetensors"
    }
    fn len(&self) -> u64 {
        self.len
    }
    fn read_at(&self, offset: u64, len: u64) -> ReadFuture<'_> {
        let mut bytes = vec![0; usize::try_from(len).expect("a small read")];
        let header = self.header.get(usize::try_from(offset).expect("a small file")..).unwrap_or_default();
        let there = header.len().min(bytes.len());
        bytes[..there].copy_from_slice(&header[..there]);
        Box::pin(std::future::ready(Ok(bytes)))
    }
}

/// Opens a checkpoint of these tensors, without config.json.
pub(crate) fn open(tensors: &Shapes) -> Result<Checkpoint> {
    block_on(Checkpoint::from_source(Box::new(Hollow::new(tensors, serde_json::json!({}))), None))
}
