//! Memory limit for a fuzz target: an allocator that counts bytes for each thread.
#![expect(unsafe_code, reason = "an allocator is an unsafe trait; this one only counts and passes on to the system's")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Largest single request while a target runs, in bytes. A larger one gets a null pointer, so that
/// a header that asks for an exabyte does not exhaust the machine before the test can report it.
const BEYOND: usize = 1 << 30;

thread_local! {
    /// Bytes allocated and not yet freed by this thread. Wraps if a thread frees another's memory.
    static LIVE: Cell<usize> = const { Cell::new(0) };
    /// Most live bytes since `within` began.
    static PEAK: Cell<usize> = const { Cell::new(0) };
    /// Live bytes when `within` began. `None` outside of it.
    static START: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Runs `task`. Panics if it uses more than `allowed` bytes of memory at once.
pub fn within(allowed: usize, what: &str, task: impl FnOnce()) {
    PEAK.set(0);
    START.set(Some(LIVE.get()));
    task();
    START.set(None);
    let peak = PEAK.get();
    assert!(peak <= allowed, "{what} takes {peak} bytes of memory at once, of {allowed} allowed");
}

/// Counts `added` and `removed` bytes. Returns false if a target asks for more than [`BEYOND`] at
/// once.
fn count(added: usize, removed: usize) -> bool {
    let live = LIVE.get().wrapping_add(added).wrapping_sub(removed);
    if let Some(start) = START.get() {
        let taken = live.wrapping_sub(start);
        // Below the start: memory from before it was freed.
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

/// The system's allocator, with counting.
pub struct Counting;

// SAFETY: every request goes to the system unchanged, or gets null, as the trait allows. Counting
// neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !count(layout.size(), 0) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises hold for the system's allocator, too.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !count(layout.size(), 0) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises hold for the system's allocator, too.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !count(size, layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises hold for the system's allocator, too.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the caller's promises hold for the system's allocator, too.
        unsafe { System.dealloc(pointer, layout) }
    }
}
