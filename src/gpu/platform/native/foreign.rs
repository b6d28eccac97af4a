//! Buffers of the caller. Only a browser has them: no value of this type exists.

use crate::error::Result;
use crate::gpu::Prepared;

/// A buffer of the caller. Only a browser has one.
#[derive(Debug, Clone, PartialEq)]
pub enum ForeignBuffer {}

impl Prepared {
    #[expect(clippy::unused_async, reason = "a browser waits for the data")]
    pub(in crate::gpu) async fn read_foreign(&mut self, buffer: &ForeignBuffer, _: u64, _: u64) -> Result<Vec<f32>> {
        match *buffer {}
    }
}
