//! Latents in a `GPUBuffer` of the caller's.

use js_sys::{Array, Reflect};
use wasm_bindgen::prelude::*;

use super::call;
use crate::error::{Error, Result};
use crate::gpu::buffers::GpuBuffer;
use crate::gpu::{Gpu, Input};

/// A `GPUBuffer` of the caller's, made on the device that decodes, and the byte that counts as its first.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignBuffer {
    buffer: JsValue,
    offset: u64,
}

impl ForeignBuffer {
    /// Takes `buffer` from byte `offset` on, of which `bytes` will be copied.
    ///
    /// # Errors
    /// [`Error::Input`] unless it is a `GPUBuffer` of that many bytes that may be copied from.
    pub fn new(buffer: JsValue, offset: u64, bytes: u64) -> Result<Self> {
        const COPY_SRC: u64 = 4;
        let number = |name: &str| Reflect::get(&buffer, &name.into()).ok()?.as_f64();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size or flags")]
        let number = |name: &str| number(name).map(|number| number as u64);
        let wrong = |expected: String, found: String| Error::Input { what: "latents".to_owned(), expected, found };
        let (Some(size), Some(usage)) = (number("size"), number("usage")) else {
            return Err(wrong("a GPUBuffer".to_owned(), "something else".to_owned()));
        };
        if usage & COPY_SRC == 0 {
            return Err(wrong("a GPUBuffer with usage COPY_SRC".to_owned(), format!("usage {usage:#x}")));
        }
        if !offset.is_multiple_of(4) || offset.checked_add(bytes).is_none_or(|end| end > size) {
            let expected = format!("{bytes} bytes from a multiple of 4 on");
            return Err(wrong(expected, format!("a GPUBuffer of {size} bytes, read from byte {offset} on")));
        }
        Ok(Self { buffer, offset })
    }

    /// Copies `bytes`, from byte `at` on, into `target` at byte `to`.
    pub(in crate::gpu) async fn copy(&self, gpu: &Gpu, at: u64, bytes: u64, target: (&GpuBuffer, u64)) -> Result<()> {
        const DOING: &str = "copying latents from the caller's buffer";
        let copied = gpu.scoped(DOING, || self.submit_copy(gpu, at, bytes, target)).await?;
        copied.map_err(|error| gpu.failure(DOING, &format!("{error:?}")))
    }

    #[expect(clippy::cast_precision_loss, reason = "JavaScript's numbers; sizes of buffers fit them")]
    fn submit_copy(
        &self,
        gpu: &Gpu,
        at: u64,
        bytes: u64,
        (target, to): (&GpuBuffer, u64),
    ) -> std::result::Result<(), JsValue> {
        let device = gpu.handle();
        let encoder = call(&device, "createCommandEncoder", &Array::new())?;
        let arguments = Array::of5(
            &self.buffer,
            &((self.offset + at) as f64).into(),
            &target.handle(),
            &(to as f64).into(),
            &(bytes as f64).into(),
        );
        call(&encoder, "copyBufferToBuffer", &arguments)?;
        let commands = Array::of1(&call(&encoder, "finish", &Array::new())?);
        let queue = Reflect::get(&device, &"queue".into())?;
        call(&queue, "submit", &Array::of1(&commands)).map(drop)
    }
}

impl<'a> Input<'a> {
    /// Image `index` of several in the caller's buffer, of `bytes` each.
    pub(crate) fn foreign(buffer: &'a ForeignBuffer, index: u32, bytes: u64) -> Self {
        Self::Foreign { buffer, at: u64::from(index) * bytes, bytes }
    }
}
