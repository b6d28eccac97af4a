//! Error scopes, which collect the device's errors for a piece of work.

use crate::gpu::scopes::Caught;

/// Three scopes, one for each kind of error, until they are popped.
pub(in crate::gpu) struct Scopes {
    guards: [wgpu::ErrorScopeGuard; 3],
}

impl Scopes {
    pub(in crate::gpu) fn push(device: &wgpu::Device) -> Self {
        let kinds = [wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::Validation];
        Self { guards: kinds.map(|kind| device.push_error_scope(kind)) }
    }

    /// Ends the scopes now. The returned future gives the first error, innermost scope first, once
    /// the device has reported.
    pub(in crate::gpu) fn pop(self) -> impl Future<Output = Option<Caught>> {
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
