//! The kinds of devices that a build has: natively both, in a browser's module one. There, no value
//! of the other kind exists, so the compiler drops its code.

/// Proof that this build has GPUs. A module that computes on the CPU has no such value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HasGpus(Gpus);

/// Proof that this build computes on the CPU. A browser's module for WebGPU has no such value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HasCores(Cores);

// Private, because elsewhere the compiler would warn of code that no value reaches.
#[derive(Debug, Clone, Copy)]
enum Gpus {
    #[cfg(not(all(target_arch = "wasm32", feature = "cores")))]
    Here,
}

#[derive(Debug, Clone, Copy)]
enum Cores {
    #[cfg(any(not(target_arch = "wasm32"), feature = "cores"))]
    Here,
}

impl HasGpus {
    /// Returns the proof, if there is one.
    pub(crate) fn check() -> Option<Self> {
        #[cfg(not(all(target_arch = "wasm32", feature = "cores")))]
        return Some(Self(Gpus::Here));
        #[cfg(all(target_arch = "wasm32", feature = "cores"))]
        None
    }
}

impl HasCores {
    /// Returns the proof, if there is one.
    pub(crate) fn check() -> Option<Self> {
        #[cfg(any(not(target_arch = "wasm32"), feature = "cores"))]
        return Some(Self(Cores::Here));
        #[cfg(all(target_arch = "wasm32", not(feature = "cores")))]
        None
    }
}
