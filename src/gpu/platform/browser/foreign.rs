//! Latents in a `GPUBuffer` of the caller.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use super::bindings::Buffer;
use super::typed;
use crate::error::{Error, Result};
use crate::gpu::buffers::GpuBuffer;
use crate::gpu::{Gpu, Prepared};
use crate::tensor::Bytes;

/// A `GPUBuffer` that the caller made on the device that decodes, and the byte where its data
/// starts.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignBuffer {
    buffer: JsValue,
    offset: u64,
}

impl ForeignBuffer {
    /// Wraps `buffer`. The `bytes` from byte `offset` on will be copied.
    ///
    /// # Errors
    /// [`Error::Input`] unless `buffer` is a `GPUBuffer` with usage `COPY_SRC`, `offset` is a
    /// multiple of 4, and the buffer holds `bytes` from there on.
    pub fn new(buffer: JsValue, offset: u64, bytes: u64) -> Result<Self> {
        const COPY_SRC: u64 = 4;
        // A check of its class would fail for a buffer from another frame, which has classes of its
        // own.
        let known = buffer.is_object().then(|| buffer.unchecked_ref::<Buffer>());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a size or flags")]
        let number = |number: Option<f64>| number.map(|number| number as u64);
        let wrong = |expected: String, found: String| Error::input("latents", expected, found);
        let facts = known.map(|buffer| (number(buffer.size()), number(buffer.usage())));
        let Some((Some(size), Some(usage))) = facts else {
            return Err(wrong("a GPUBuffer".to_owned(), "something else".to_owned()));
        };
        if usage & COPY_SRC == 0 {
            return Err(wrong("a GPUBuffer with usage COPY_SRC".to_owned(), format!("usage {usage:#x}")));
        }
        if !offset.is_multiple_of(4) || offset.checked_add(bytes).is_none_or(|end| end > size) {
            let expected = format!("{bytes} bytes from an offset that is a multiple of 4");
            return Err(wrong(expected, format!("a GPUBuffer of {size} bytes, and offset {offset}")));
        }
        Ok(Self { buffer, offset })
    }

    /// Copies `bytes`, from byte `at` of the data on, into `target` at byte `to`.
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
        let Some(device) = typed(&gpu.inner.device) else { return Ok(()) };
        let encoder = device.create_command_encoder()?;
        encoder.copy_buffer_to_buffer(
            &self.buffer,
            (self.offset + at) as f64,
            &target.handle(),
            to as f64,
            bytes as f64,
        )?;
        device.queue().submit(&Array::of1(&encoder.finish()?))
    }
}

impl Prepared {
    /// Reads the content of the caller's buffer through a slot, which is free before a run. The
    /// data goes through the host because the plan fetches its input by rows; latents are small.
    pub(in crate::gpu) async fn read_foreign(
        &mut self,
        buffer: &ForeignBuffer,
        at: u64,
        bytes: u64,
    ) -> Result<Vec<f32>> {
        let slot = self.slots.iter().max_by_key(|slot| slot.bytes());
        let slot = slot.ok_or_else(|| self.gpu.failure("reading the caller's buffer", &"a plan without slots"))?;
        let mut data = Vec::new();
        while (data.len() as u64) < bytes {
            let done = data.len() as u64;
            let piece = slot.bytes().0.min(bytes - done);
            buffer.copy(&self.gpu, at + done, piece, (slot, 0)).await?;
            data.extend(self.readbacks.read_all(&self.gpu, slot, Bytes(piece)).await?);
        }
        Ok(bytemuck::pod_collect_to_vec(&data))
    }
}
