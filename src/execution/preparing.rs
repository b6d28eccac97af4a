//! Reports the progress of the work before a run: reading weights and compiling kernels.

use std::sync::{Arc, Mutex, PoisonError};

use crate::tensor::Bytes;

/// The progress of the work before a run. There is no report if no work is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparing<'a> {
    /// Weights are read, packed, and put where they are kept.
    Weights {
        /// Packed bytes that are loaded.
        done: Bytes,
        /// Packed bytes in total.
        total: Bytes,
        /// The next tensor; empty after the last.
        tensor: &'a str,
    },
    /// Kernels are compiled that a plan needs and that were not compiled before.
    Kernels {
        /// Kernels that are compiled.
        done: usize,
        /// Kernels in total.
        total: usize,
        /// The file of the next kernel; empty after the last.
        kernel: &'a str,
    },
}

wasm_not! {
    Send, Sync;
    /// A function that hears this progress. Natively any thread may call it; in a browser, the
    /// thread that set it.
    pub type Listener = dyn Fn(Preparing<'_>)
}

/// The listener, if one is set.
#[derive(Default)]
pub(crate) struct Audience(Mutex<Option<Arc<Listener>>>);

impl std::fmt::Debug for Audience {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audience").finish_non_exhaustive()
    }
}

impl Audience {
    pub(crate) fn set(&self, listener: Option<Arc<Listener>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = listener;
    }

    pub(crate) fn tell(&self, now: Preparing<'_>) {
        // The lock is released first, because a listener may set another one.
        let listener = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(listener) = listener {
            listener(now);
        }
    }
}
