//! The one thread that runs a browser's module.

use std::convert::Infallible;

use super::Panic;

/// The thread that calls.
#[derive(Debug)]
pub(in crate::cpu) struct Threads;

impl Threads {
    /// Takes the thread that runs the module, and lets it use vectors.
    #[expect(clippy::unnecessary_wraps, reason = "natively it may fail")]
    pub(in crate::cpu) fn start(_: Option<usize>) -> Result<Self, Infallible> {
        pulp::wasm::enable_relaxed_simd();
        Ok(Self)
    }

    #[expect(clippy::unused_self, reason = "natively there are several")]
    pub(in crate::cpu) fn count(&self) -> usize {
        1
    }

    /// Runs `work`. A panic ends the module.
    #[expect(clippy::unused_self, reason = "natively it has the threads")]
    #[expect(clippy::unnecessary_wraps, reason = "natively it returns a panic")]
    pub(in crate::cpu) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, Panic> {
        Ok(work())
    }
}
