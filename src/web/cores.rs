//! The CPU as a device for JavaScript. Only a module that computes there has this file.

use wasm_bindgen::prelude::*;

use super::Result;
use super::device::WebDevice;
use crate::device::{Cpu, CpuOptions};

#[wasm_bindgen(js_class = Device)]
impl WebDevice {
    /// Opens the CPU. In a module with threads, the first call makes `threads` threads, and a
    /// worker must run each of them before the device is used. Without threads, the module computes
    /// on the thread that runs it.
    pub fn cores(threads: Option<usize>) -> Result<Self> {
        Ok(Self { device: Cpu::new(&CpuOptions { threads, ..CpuOptions::default() })?.into() })
    }
}

/// Becomes a thread that computes. Does not return. Called by each worker once, after the device
/// was opened.
#[cfg(feature = "threads")]
#[wasm_bindgen(js_name = runThread)]
pub fn run_thread() {
    crate::device::run_thread();
}

/// Tells the module that a worker has ended, so that it ends, too.
#[cfg(feature = "threads")]
#[wasm_bindgen(js_name = threadBroke)]
pub fn thread_broke() {
    crate::device::thread_broke();
}

/// Ends the module as a bug in a kernel does. For tests.
#[cfg(feature = "threads")]
#[doc(hidden)]
#[wasm_bindgen(js_name = breakThread)]
pub fn break_thread() {
    crate::device::break_thread();
}
