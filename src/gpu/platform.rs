//! Code that differs between native programs and browsers, behind one interface: each side has the
//! same names.

#[cfg(target_arch = "wasm32")]
mod browser;
#[cfg(not(target_arch = "wasm32"))]
mod native;

#[cfg(target_arch = "wasm32")]
pub use self::browser::*;
#[cfg(not(target_arch = "wasm32"))]
pub use self::native::*;
