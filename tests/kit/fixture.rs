//! Fixtures whose tensors are not all floats: pictures are U8.

use std::collections::BTreeMap;

use crate::repository;
use pollster::block_on;
use wgvae::files::{ByteSource as _, FileSource};
use wgvae::internals::safetensors::{Header, read_header, read_tensor};
use wgvae::{HostTensor, Size};

/// File in `tests/fixtures`.
pub struct Fixture {
    source: FileSource,
    header: Header,
}

impl Fixture {
    pub fn open(name: &str) -> Self {
        let path = repository().join(format!("tests/fixtures/{name}.safetensors"));
        let source = FileSource::open(path).unwrap();
        let header = block_on(read_header(&source)).unwrap();
        Self { source, header }
    }

    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.header.metadata
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.header.tensors.keys().map(String::as_str)
    }

    pub fn floats(&self, name: &str) -> HostTensor {
        block_on(read_tensor(&self.source, name, &self.header.tensors[name])).unwrap()
    }

    /// Returns a picture `[h, w, 3]` or `[h, w, 4]` of U8.
    pub fn picture(&self, name: &str) -> (Size, Vec<u8>) {
        let info = &self.header.tensors[name];
        let [height, width, 3 | 4] = info.shape[..] else { panic!("{name} is {:?}", info.shape) };
        let size = Size { width: width.try_into().unwrap(), height: height.try_into().unwrap() };
        (size, self.bytes(name))
    }

    /// Returns the bytes of a tensor.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        let info = &self.header.tensors[name];
        block_on(self.source.read_at(info.offset, info.bytes)).unwrap()
    }
}
