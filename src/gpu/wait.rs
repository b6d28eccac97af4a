//! Waits for the GPU without blocking the caller.
//!
//! In a browser, callbacks come from the event loop. Natively, the device has to be polled: see
//! [`Poller`].

use std::sync::{Arc, Mutex, PoisonError};

use futures_channel::oneshot;

use super::platform::Poller;
use crate::error::{DeviceError, Error, Result};

#[derive(Debug)]
pub(super) struct Waiter(Poller);

impl Waiter {
    pub(super) fn new(device: &wgpu::Device) -> Self {
        Self(Poller::new(device))
    }

    /// Calls `register` with a callback, now. The returned wait ends when the device has called it.
    /// `submission` is the submission after which the callback comes; `None` stands for the last
    /// one.
    pub(super) fn wait<T: Send + 'static>(
        &self,
        doing: &str,
        submission: Option<wgpu::SubmissionIndex>,
        register: impl FnOnce(Done<T>),
    ) -> Wait<T> {
        let (sender, receiver) = oneshot::channel();
        let done = Done { sender: Arc::new(Mutex::new(Some(sender))) };
        register(done.clone());
        self.0.poll(submission, move || drop(done.take()));
        Wait { doing: doing.to_owned(), receiver }
    }
}

/// A wait in progress.
#[derive(Debug)]
pub(super) struct Wait<T> {
    doing: String,
    receiver: oneshot::Receiver<T>,
}

impl<T> Wait<T> {
    /// Waits for the callback. If the future is dropped before that, another call continues the
    /// wait.
    pub(super) async fn end(&mut self) -> Result<T> {
        let answer = (&mut self.receiver).await;
        answer.map_err(|oneshot::Canceled| {
            Error::Device(DeviceError::Lost { doing: self.doing.clone(), reason: "it did not answer".to_owned() })
        })
    }
}

/// The other end of [`Waiter::wait`].
#[derive(Debug)]
pub(super) struct Done<T> {
    sender: Arc<Mutex<Option<oneshot::Sender<T>>>>,
}

impl<T> Done<T> {
    /// Ends the wait with `value`. It is no error if the wait was dropped.
    pub(super) fn with(self, value: T) {
        if let Some(sender) = self.take() {
            drop(sender.send(value));
        }
    }

    fn take(&self) -> Option<oneshot::Sender<T>> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> Clone for Done<T> {
    fn clone(&self) -> Self {
        Self { sender: Arc::clone(&self.sender) }
    }
}
