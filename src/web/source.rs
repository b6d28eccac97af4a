//! Files that JavaScript reads for the crate: a `Blob`, a URL, a cache.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::Result;
use super::error::Failure;
use crate::error::Error;
use crate::io::{ByteSource, ReadFuture};
use crate::tensor::Bytes;

/// The most bytes of one read. Wasm addresses 4 GiB, and an allocation that fails ends the module.
/// The largest tensor of a published VAE has 9 MB.
pub(super) const MOST_BYTES: u64 = 512 << 20;

#[wasm_bindgen]
extern "C" {
    /// A file, as the package passes it.
    pub type Source;

    #[wasm_bindgen(method, getter)]
    fn name(this: &Source) -> String;

    #[wasm_bindgen(method, getter)]
    fn length(this: &Source) -> f64;

    /// Reads exactly `length` bytes from `offset` on, or rejects.
    #[wasm_bindgen(method, catch)]
    fn read(this: &Source, offset: f64, length: f64) -> std::result::Result<Promise, JsValue>;
}

/// The value that a read was rejected with, until it is thrown to the caller unchanged.
#[derive(Debug, Clone, Default)]
pub(super) struct Rejection(Rc<RefCell<Option<JsValue>>>);

impl Rejection {
    /// Returns `result`, with the caller's own rejection in place of the error that it led to.
    pub(super) fn pass_on<T>(&self, result: crate::error::Result<T>) -> Result<T> {
        result.map_err(|error| match self.0.take() {
            Some(value) => Failure::passed_on(value),
            None => error.into(),
        })
    }
}

/// A [`Source`] as a [`ByteSource`] of the crate.
pub(super) struct JsSource {
    name: String,
    len: u64,
    source: Source,
    rejection: Rejection,
}

impl JsSource {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a length")]
    pub(super) fn new(source: Source, rejection: &Rejection) -> Self {
        Self { name: source.name(), len: source.length() as u64, source, rejection: rejection.clone() }
    }

    #[expect(clippy::cast_precision_loss, reason = "JavaScript's numbers; lengths of files fit them")]
    async fn read(&self, offset: u64, len: u64) -> crate::error::Result<Vec<u8>> {
        let rejected = |value: JsValue| {
            self.rejection.0.replace(Some(value));
            Error::Io { path: self.name.clone(), source: std::io::Error::other("the read was rejected") }
        };
        if len > MOST_BYTES {
            return Err(self.too_long(len));
        }
        let promise = self.source.read(offset as f64, len as f64).map_err(rejected)?;
        let bytes = JsFuture::from(promise).await.map_err(rejected)?;
        match bytes.dyn_into::<Uint8Array>() {
            Ok(bytes) if u64::from(bytes.length()) == len => self.copied(&bytes),
            Ok(bytes) => Err(self.wrong(format!("expected {len} bytes at offset {offset}, found {}", bytes.length()))),
            Err(_) => Err(self.wrong("expected a Uint8Array from a read, found another type".to_owned())),
        }
    }

    fn copied(&self, bytes: &Uint8Array) -> crate::error::Result<Vec<u8>> {
        let mut copy = Vec::new();
        let reserved = copy.try_reserve_exact(bytes.length() as usize);
        reserved.map_err(|_full| self.too_long(bytes.length().into()))?;
        copy.resize(bytes.length() as usize, 0);
        bytes.copy_to(&mut copy);
        Ok(copy)
    }

    fn too_long(&self, len: u64) -> Error {
        Error::HostMemory { what: format!("a part of {}", self.name), needed: Bytes(len) }
    }

    fn wrong(&self, problem: String) -> Error {
        Error::Format { file: self.name.clone(), problem }
    }
}

impl ByteSource for JsSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, len: u64) -> ReadFuture<'_> {
        Box::pin(async move {
            if offset.checked_add(len).is_none_or(|end| end > self.len) {
                return Err(
                    self.wrong(format!("expected {len} bytes at offset {offset}, found {} bytes in all", self.len))
                );
            }
            self.read(offset, len).await
        })
    }
}
