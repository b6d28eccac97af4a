//! Counts the bytes of all buffers. Can make allocations fail, as a device without memory would.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::tensor::Bytes;

/// The bytes and the number of the buffers created on a device.
#[derive(Debug, Default)]
pub struct Ledger {
    limit: Option<Bytes>,
    counts: Mutex<Counts>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    current: u64,
    peak: u64,
    /// The highest value of `current` ever, also before [`Ledger::restart_peak`].
    highest: u64,
    created: u64,
    held_at_failure: u64,
    /// The creation that is to fail, counted from 1 as `created` is.
    failing: Option<u64>,
}

impl Ledger {
    /// Makes a ledger that refuses buffers beyond `limit` bytes in total.
    pub(crate) fn new(limit: Option<Bytes>) -> Self {
        Self { limit, counts: Mutex::default() }
    }

    /// Returns the bytes of all buffers that exist now.
    pub fn current(&self) -> Bytes {
        Bytes(self.counts().current)
    }

    /// Returns the most bytes that existed at once, ever or since [`Self::restart_peak`].
    pub fn peak(&self) -> Bytes {
        Bytes(self.counts().peak)
    }

    /// Returns the most bytes that ever existed at once.
    pub fn highest(&self) -> Bytes {
        Bytes(self.counts().highest)
    }

    /// Restarts [`Self::peak`] from the bytes that exist now.
    pub fn restart_peak(&self) {
        let mut counts = self.counts();
        counts.peak = counts.current;
    }

    /// Returns the number of buffers created since the device was opened.
    pub fn created(&self) -> u64 {
        self.counts().created
    }

    /// Returns the bytes that existed when the creation of a buffer last failed.
    pub fn held_at_failure(&self) -> Bytes {
        Bytes(self.counts().held_at_failure)
    }

    /// Makes one creation fail, after `skipped` others succeed, as if the device had no memory
    /// left. `None` clears that. Returns true if an earlier request is still pending. For tests.
    #[doc(hidden)]
    pub fn fail_after(&self, skipped: Option<u64>) -> bool {
        let mut counts = self.counts();
        let was = counts.failing.take();
        counts.failing = skipped.map(|skipped| counts.created + skipped + 1);
        was.is_some()
    }

    /// Counts a buffer of `bytes`, or returns the reason why it must not be created.
    pub(crate) fn add(&self, bytes: u64) -> Result<(), String> {
        let mut counts = self.counts();
        let next = counts.created + 1;
        let induced = counts.failing.take_if(|failing| *failing == next).is_some();
        let beyond = self.limit.filter(|limit| counts.current + bytes > limit.0);
        if induced || beyond.is_some() {
            counts.held_at_failure = counts.current;
            return Err(match beyond {
                Some(limit) => format!("{} of {limit} allowed are in use", Bytes(counts.current)),
                None => "a failure that a test asked for".to_owned(),
            });
        }
        counts.current += bytes;
        counts.peak = counts.peak.max(counts.current);
        counts.highest = counts.highest.max(counts.current);
        counts.created += 1;
        Ok(())
    }

    /// Counts a buffer of `bytes` as freed.
    pub(crate) fn remove(&self, bytes: u64) {
        self.counts().current -= bytes;
    }

    /// Takes back the count of a buffer of `bytes` that could not be created.
    pub(crate) fn fail(&self, bytes: u64) {
        let mut counts = self.counts();
        counts.current -= bytes;
        counts.created -= 1;
        counts.held_at_failure = counts.current;
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
