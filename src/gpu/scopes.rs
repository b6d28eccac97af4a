//! Error scopes, which collect the device's errors for a piece of work. In a browser
//! `browser::Scopes` replaces them, because wgpu panics at errors of the kind `internal`, as when a
//! driver rejects a pipeline.

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

/// Three scopes, one for each kind of error, until they are popped.
#[cfg(not(target_arch = "wasm32"))]
pub(super) struct Scopes {
    guards: [wgpu::ErrorScopeGuard; 3],
}

#[cfg(not(target_arch = "wasm32"))]
impl Scopes {
    pub(super) fn push(device: &wgpu::Device) -> Self {
        let kinds = [wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::Validation];
        Self { guards: kinds.map(|kind| device.push_error_scope(kind)) }
    }

    /// Ends the scopes now. The returned future gives the first error, innermost scope first, once
    /// the device has reported.
    pub(super) fn pop(self) -> impl Future<Output = Option<Caught>> {
        let [memory, internal, validation] = self.guards;
        let errors = (validation.pop(), internal.pop(), memory.pop());
        async move {
            let error = [errors.0.await, errors.1.await, errors.2.await].into_iter().flatten().next()?;
            Some(match error {
                wgpu::Error::OutOfMemory { source } => Caught::OutOfMemory(source.to_string()),
                other => Caught::Other(other.to_string()),
            })
        }
    }
}
