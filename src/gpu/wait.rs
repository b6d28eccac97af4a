//! Waits for the GPU without blocking the caller.
//!
//! In a browser, callbacks come from the event loop. Natively, the device has to be polled: a
//! thread does that from the submission of work until it is done.

use std::sync::{Arc, Mutex, PoisonError};

use futures_channel::oneshot;

use crate::error::{DeviceError, Error, Result};

#[derive(Debug)]
pub(super) struct Waiter {
    /// Taken on drop: the thread ends when the sender is gone.
    #[cfg(not(target_arch = "wasm32"))]
    jobs: Option<std::sync::mpsc::Sender<PollJob>>,
    #[cfg(not(target_arch = "wasm32"))]
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Waiter {
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn new(device: &wgpu::Device) -> Self {
        let (jobs, received) = std::sync::mpsc::channel::<PollJob>();
        let device = device.clone();
        let poll = move || {
            while let Ok(job) = received.recv() {
                // A lost device fails here. If it never received the submission, it makes no
                // callback, so the wait is ended here.
                if let Err(error) = device.poll(job.poll) {
                    log::warn!("polling the device: {error}");
                    (job.give_up)();
                }
            }
        };
        // Without the thread, every wait fails with a clear error, because sending to it fails.
        let thread = std::thread::Builder::new().name("wgvae-poll".to_owned()).spawn(poll);
        let thread = thread.inspect_err(|error| log::error!("no thread to poll the device: {error}")).ok();
        Self { jobs: Some(jobs), thread }
    }

    #[cfg(target_arch = "wasm32")]
    pub(super) fn new(_: &wgpu::Device) -> Self {
        Self {}
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
        self.poll(submission, done);
        Wait { doing: doing.to_owned(), receiver }
    }

    /// Makes the thread poll the device until `submission` is done. Ends the wait for `done` if
    /// that is impossible.
    #[cfg(not(target_arch = "wasm32"))]
    fn poll<T: Send + 'static>(&self, submission: Option<wgpu::SubmissionIndex>, done: Done<T>) {
        let poll = wgpu::PollType::Wait { submission_index: submission, timeout: None };
        let job = PollJob { poll, give_up: Box::new(move || drop(done.take())) };
        let unsent = match &self.jobs {
            Some(jobs) => jobs.send(job).err().map(|error| error.0),
            None => Some(job),
        };
        if let Some(job) = unsent {
            log::error!("no thread polls the device");
            (job.give_up)();
        }
    }

    #[cfg(target_arch = "wasm32")]
    #[expect(clippy::unused_self, reason = "the browser polls")]
    fn poll<T>(&self, _: Option<wgpu::SubmissionIndex>, _: Done<T>) {}
}

/// A request to the polling thread.
#[cfg(not(target_arch = "wasm32"))]
struct PollJob {
    poll: wgpu::PollType,
    /// A function that ends the wait with an error.
    give_up: Box<dyn FnOnce() + Send>,
}

// The thread holds the device, and would otherwise destroy it while the process ends, when the
// driver's own data is already gone. lavapipe then crashed in one of twelve short runs.
#[cfg(not(target_arch = "wasm32"))]
impl Drop for Waiter {
    fn drop(&mut self) {
        self.jobs = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            log::error!("the thread that polls the device panicked");
        }
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
