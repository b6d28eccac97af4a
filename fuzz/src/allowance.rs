//! How much memory a target may take for its input: an allocator that counts, thread by thread.
#![expect(unsafe_code, reason = "an allocator is an unsafe trait; this one only counts and passes on to the system's")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What a single request may go beyond an allowance. More is answered as if there were no memory: a
/// header that asks for an exabyte must not take the machine down before anybody can say so.
const BEYOND: usize = 1 << 30;

thread_local! {
    /// Bytes allocated and not yet freed. Wraps where a thread frees what another allocated.
    static LIVE: Cell<usize> = const { Cell::new(0) };
    /// The most of them since `within` began.
    static PEAK: Cell<usize> = const { Cell::new(0) };
    /// What `PEAK` counts from; none while nobody asks.
    static START: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Runs `task`, and panics if it takes more than `allowed` bytes of memory at once.
pub(crate) fn within(allowed: usize, what: &str, task: impl FnOnce()) {
    PEAK.set(0);
    START.set(Some(LIVE.get()));
    task();
    START.set(None);
    let peak = PEAK.get();
    assert!(peak <= allowed, "{what} takes {peak} bytes of memory at once, of {allowed} allowed");
}

/// Counts `added` bytes, unless that is absurd.
fn count(added: usize, removed: usize) -> bool {
    let live = LIVE.get().wrapping_add(added).wrapping_sub(removed);
    if let Some(start) = START.get() {
        let taken = live.wrapping_sub(start);
        // Freed from before the start: below it.
        let taken = if taken > usize::MAX / 2 { 0 } else { taken };
        if taken > PEAK.get() {
            PEAK.set(taken);
        }
        if added > BEYOND {
            return false;
        }
    }
    LIVE.set(live);
    true
}

/// The system's allocator, counted.
pub(crate) struct Counting;

// SAFETY: every request is passed on as it is, or refused with null, as the trait allows; counting
// neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !count(layout.size(), 0) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's own promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !count(layout.size(), 0) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's own promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !count(size, layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's own promise.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller's own promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}
