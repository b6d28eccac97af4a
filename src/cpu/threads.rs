//! The threads that compute. In a browser's module that is the one thread that runs it.

use std::any::Any;
#[cfg(target_arch = "wasm32")]
use std::convert::Infallible;
#[cfg(not(target_arch = "wasm32"))]
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The message of a panic.
type Panic = Box<dyn Any + Send>;

/// The threads of one device.
#[derive(Debug)]
pub(super) struct Threads {
    #[cfg(not(target_arch = "wasm32"))]
    pool: rayon::ThreadPool,
}

#[cfg(not(target_arch = "wasm32"))]
impl Threads {
    /// Starts `count` threads, or one for each core that the process may use.
    pub(super) fn start(count: Option<usize>) -> Result<Self, rayon::ThreadPoolBuildError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count.unwrap_or(0));
        Ok(Self { pool: pool.thread_name(|index| format!("wgvae {index}")).build()? })
    }

    /// Returns the number of threads.
    pub(super) fn count(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Runs `work` on the threads, and returns its result or its panic.
    pub(super) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, Panic> {
        // The memory of work that failed is not used again.
        let run = AssertUnwindSafe(|| self.pool.install(work));
        if rayon::current_thread_index().is_some() {
            // A thread of the caller's pool would take other work of that pool while it waits here,
            // and could come back to a model that it has locked.
            std::thread::scope(|scope| scope.spawn(run).join())
        } else {
            catch_unwind(run)
        }
    }
}

#[cfg(target_arch = "wasm32")]
impl Threads {
    /// Takes the thread that runs the module, and lets it use vectors.
    #[expect(clippy::unnecessary_wraps, reason = "natively it may fail")]
    pub(super) fn start(_: Option<usize>) -> Result<Self, Infallible> {
        pulp::wasm::enable_simd128();
        Ok(Self {})
    }

    #[expect(clippy::unused_self, reason = "natively there are several")]
    pub(super) fn count(&self) -> usize {
        1
    }

    /// Runs `work`. A panic ends the module.
    #[expect(clippy::unused_self, reason = "natively it has the threads")]
    #[expect(clippy::unnecessary_wraps, reason = "natively it returns a panic")]
    pub(super) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, Panic> {
        Ok(work())
    }
}
