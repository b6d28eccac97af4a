//! A flag that stops compiling.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The flag that ends compiling between two kernels, if one is set.
#[derive(Debug, Default)]
pub(in crate::gpu) struct Unwanted(Mutex<Option<Arc<AtomicBool>>>);

impl Unwanted {
    /// Uses `flag` from now on.
    pub(in crate::gpu) fn heed(&self, flag: Option<Arc<AtomicBool>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = flag;
    }

    /// True if the flag is set.
    pub(super) fn is_set(&self) -> bool {
        let flag = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}
