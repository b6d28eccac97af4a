//! Threads of the system.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::available_parallelism;

use super::Panic;

/// The threads of one device.
#[derive(Debug)]
pub(in crate::cpu) struct Threads {
    pool: rayon::ThreadPool,
}

impl Threads {
    /// Starts `count` threads, or one for each core that the process may use.
    pub(in crate::cpu) fn start(count: Option<usize>) -> Result<Self, rayon::ThreadPoolBuildError> {
        // Rayon's own default follows RAYON_NUM_THREADS.
        let count = count.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count);
        Ok(Self { pool: pool.thread_name(|index| format!("wgvae {index}")).build()? })
    }

    /// Returns the number of threads.
    pub(in crate::cpu) fn count(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Runs `work` on the threads, and returns its result or its panic.
    pub(in crate::cpu) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, Panic> {
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
