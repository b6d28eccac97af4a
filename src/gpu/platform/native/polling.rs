//! A thread that polls the device from the submission of work until it is done.

use std::sync::mpsc;
use std::thread;

/// The polling thread of a device.
#[derive(Debug)]
pub(in crate::gpu) struct Poller {
    /// Taken on drop: the thread ends when the sender is gone.
    jobs: Option<mpsc::Sender<PollJob>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// A request to the polling thread.
struct PollJob {
    poll: wgpu::PollType,
    /// A function that ends the wait with an error.
    give_up: Box<dyn FnOnce() + Send>,
}

impl Poller {
    pub(in crate::gpu) fn new(device: &wgpu::Device) -> Self {
        let (jobs, received) = mpsc::channel::<PollJob>();
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
        let thread = thread::Builder::new().name("wgvae-poll".to_owned()).spawn(poll);
        let thread = thread.inspect_err(|error| log::error!("no thread to poll the device: {error}")).ok();
        Self { jobs: Some(jobs), thread }
    }

    /// Makes the thread poll the device until `submission` is done. Calls `give_up` if that is
    /// impossible.
    pub(in crate::gpu) fn poll(
        &self,
        submission: Option<wgpu::SubmissionIndex>,
        give_up: impl FnOnce() + Send + 'static,
    ) {
        let poll = wgpu::PollType::Wait { submission_index: submission, timeout: None };
        let job = PollJob { poll, give_up: Box::new(give_up) };
        let unsent = match &self.jobs {
            Some(jobs) => jobs.send(job).err().map(|error| error.0),
            None => Some(job),
        };
        if let Some(job) = unsent {
            log::error!("no thread polls the device");
            (job.give_up)();
        }
    }
}

// The thread holds the device, and would otherwise destroy it while the process ends, when the
// driver's own data is already gone. lavapipe then crashed in one of twelve short runs.
impl Drop for Poller {
    fn drop(&mut self) {
        self.jobs = None;
        // A waker that owns the last handle of the device drops it on that thread itself.
        let own = |thread: &thread::JoinHandle<()>| thread.thread().id() == thread::current().id();
        if self.thread.take().filter(|thread| !own(thread)).is_some_and(|thread| thread.join().is_err()) {
            log::error!("the thread that polls the device panicked");
        }
    }
}
