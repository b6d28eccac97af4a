//! The browser polls its devices itself.

/// Nothing: the browser polls.
#[derive(Debug)]
pub(in crate::gpu) struct Poller;

impl Poller {
    pub(in crate::gpu) fn new(_: &wgpu::Device) -> Self {
        Self
    }

    #[expect(clippy::unused_self, reason = "the browser polls")]
    pub(in crate::gpu) fn poll(&self, _: Option<wgpu::SubmissionIndex>, _: impl FnOnce()) {}
}
