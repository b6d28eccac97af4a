//! Code that differs between native programs and browsers, behind one interface.

#[cfg(target_arch = "wasm32")]
mod browser;
#[cfg(not(target_arch = "wasm32"))]
mod native;

#[cfg(target_arch = "wasm32")]
use self::browser as side;
#[cfg(not(target_arch = "wasm32"))]
use self::native as side;

#[cfg(target_arch = "wasm32")]
pub(super) use self::browser::Unwanted;
#[cfg(target_arch = "wasm32")]
pub(crate) use self::browser::new_array;
pub use side::{ForeignBuffer, HostBytes};
pub(super) use side::{
    Poller, Scopes, as_named, compile_all, drop_device, enumerate, no_adapter_advice, on_uncaptured_error,
    request_device,
};
