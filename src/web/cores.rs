//! The CPU as a device for JavaScript. Only a module that computes there has this file.

use wasm_bindgen::prelude::*;

use super::Result;
use super::device::WebDevice;
use crate::device::{Cpu, CpuOptions};

#[wasm_bindgen(js_class = Device)]
impl WebDevice {
    /// Opens the CPU. The module computes on the thread that runs it.
    pub fn cores() -> Result<Self> {
        Ok(Self { device: Cpu::new(&CpuOptions::default())?.into() })
    }
}
