//! Tells how far the work is that comes before a run: weights that are read, kernels that are
//! compiled.

use std::sync::{Arc, Mutex, PoisonError};

use crate::tensor::Bytes;

/// How far work is that comes before a run. Nothing is told where nothing is left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparing<'a> {
    /// Weights that are read, packed, and put where they are kept.
    Weights {
        /// Bytes that are there, packed.
        done: Bytes,
        /// Bytes of all.
        total: Bytes,
        /// The tensor that comes next; empty after the last.
        tensor: &'a str,
    },
    /// Kernels that are compiled for a plan, and were not before.
    Kernels {
        /// How many are there.
        done: usize,
        /// How many there will be.
        total: usize,
        /// The file of the one that comes next; empty after the last.
        kernel: &'a str,
    },
}

/// Hears how far work is. A browser has one thread, natively any may be working.
#[cfg(not(target_arch = "wasm32"))]
pub type Listener = dyn Fn(Preparing<'_>) + Send + Sync;
/// Hears how far work is.
#[cfg(target_arch = "wasm32")]
pub type Listener = dyn Fn(Preparing<'_>);

/// Who is told.
#[derive(Default)]
pub(super) struct Audience(Mutex<Option<Arc<Listener>>>);

impl std::fmt::Debug for Audience {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audience").finish_non_exhaustive()
    }
}

impl Audience {
    pub(super) fn set(&self, listener: Option<Arc<Listener>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = listener;
    }

    pub(super) fn tell(&self, now: Preparing<'_>) {
        // Not under the lock: a listener may set another one.
        let listener = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(listener) = listener {
            listener(now);
        }
    }
}
