//! Errors that the scopes of a platform catch. The browser's scopes replace wgpu's, because wgpu
//! panics there at errors of the kind `internal`, as when a driver rejects a pipeline.

/// An error that a scope caught.
#[derive(Debug)]
pub(super) enum Caught {
    OutOfMemory(String),
    Other(String),
}

impl std::fmt::Display for Caught {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::OutOfMemory(reason) | Self::Other(reason)) = self;
        f.write_str(reason)
    }
}
