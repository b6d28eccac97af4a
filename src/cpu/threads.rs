//! The threads that compute: natively rayon's, in a browser's module workers that share its memory,
//! or the one thread that runs it.

#[cfg(all(target_arch = "wasm32", not(feature = "threads")))]
mod alone;
#[cfg(not(target_arch = "wasm32"))]
mod native;
#[cfg(all(target_arch = "wasm32", feature = "threads"))]
mod workers;

#[cfg(all(target_arch = "wasm32", not(feature = "threads")))]
pub(super) use self::alone::Threads;
#[cfg(not(target_arch = "wasm32"))]
pub(super) use self::native::Threads;
#[cfg(all(target_arch = "wasm32", feature = "threads"))]
pub(super) use self::workers::Threads;
#[cfg(all(target_arch = "wasm32", feature = "threads"))]
pub(crate) use self::workers::{break_thread, run_thread, thread_broke};

/// The message of a panic.
type Panic = Box<dyn std::any::Any + Send>;
