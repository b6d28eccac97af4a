//! Runs plans. The only folder that names wgpu. It makes no decisions: what runs where and when is the plan's.

mod adapter;
mod buffers;
mod commands;
mod control;
mod executor;
mod host;
mod ledger;
mod pipelines;
mod prepared;
mod readback;
mod recorder;
mod timestamps;
mod upload;
mod wait;

use std::sync::Arc;

pub use self::adapter::{AdapterReport, GpuOptions, adapters};
pub use self::buffers::GpuBuffer;
pub use self::control::{Control, Progress, RunReport, Submission};
pub use self::executor::RowSink;
pub use self::ledger::Ledger;
pub use self::prepared::{Prepared, Weight};

use self::pipelines::Pipelines;
use self::wait::Waiter;
use crate::error::{DeviceError, Error, Result};
use crate::limits::DeviceLimits;

/// A GPU device, ready to run plans. Cheap to clone; all clones are one device.
#[derive(Debug, Clone)]
pub struct Gpu {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    device: wgpu::Device,
    queue: wgpu::Queue,
    report: AdapterReport,
    limits: DeviceLimits,
    ledger: Arc<Ledger>,
    pipelines: Pipelines,
    waiter: Waiter,
    lost: Arc<std::sync::Mutex<Option<String>>>,
}

impl Gpu {
    /// Opens the best adapter that `options` allow: a discrete GPU before an integrated one before a CPU driver.
    ///
    /// # Errors
    /// [`Error::Device`] when no adapter matches, the adapter is too small for any plan, or gives no device.
    pub async fn request(options: &GpuOptions) -> Result<Self> {
        let adapter = adapter::choose(options).await?;
        let report = adapter::report(&adapter);
        let limits = adapter::plan_limits(&adapter, options);
        adapter::check(&report.name, &limits)?;
        let (device, queue) = adapter::open(&adapter, options, &report).await?;
        let lost = Arc::new(std::sync::Mutex::new(None));
        let record = Arc::clone(&lost);
        device.set_device_lost_callback(move |_, reason| {
            record.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(reason);
        });
        // Whatever no scope catches is reported by the next check, not by a panic.
        let record = Arc::clone(&lost);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            log::error!("uncaptured GPU error: {error}");
            record.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error.to_string());
        }));
        let waiter = Waiter::new(&device);
        let ledger = Arc::new(Ledger::new(options.memory_limit));
        Ok(Self {
            inner: Arc::new(Inner {
                device,
                queue,
                report,
                limits,
                ledger,
                pipelines: Pipelines::default(),
                waiter,
                lost,
            }),
        })
    }

    /// The adapter and what it offers.
    pub fn adapter(&self) -> &AdapterReport {
        &self.inner.report
    }

    /// The limits that plans for this device must keep.
    pub fn limits(&self) -> &DeviceLimits {
        &self.inner.limits
    }

    /// The bytes of all buffers created on this device by this crate.
    pub fn ledger(&self) -> &Ledger {
        &self.inner.ledger
    }

    /// Bytes that the driver's allocator has handed out and has reserved, where the backend can tell (Vulkan, DX12).
    pub fn allocator_bytes(&self) -> Option<(u64, u64)> {
        let report = self.inner.device.generate_allocator_report()?;
        Some((report.total_allocated_bytes, report.total_reserved_bytes))
    }

    /// Pipelines compiled so far, and the time that took.
    pub fn compiled(&self) -> (usize, std::time::Duration) {
        self.inner.pipelines.compiled()
    }

    /// Waits until the device has done all that was submitted: buffers that were dropped are free then.
    pub(crate) async fn idle(&self) -> Result<()> {
        const DOING: &str = "waiting for the device";
        let queue = &self.inner.queue;
        let mut wait = self.inner.waiter.wait(DOING, None, |done| queue.on_submitted_work_done(move || done.with(())));
        wait.end().await?;
        self.check_alive(DOING)
    }

    /// Gives the device up, as a driver reset would: all later work fails with [`DeviceError::Lost`].
    pub fn destroy(&self) {
        self.inner.device.destroy();
    }

    /// An error if the device is gone.
    fn check_alive(&self, doing: &str) -> Result<()> {
        let lost = self.inner.lost.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match &*lost {
            Some(reason) => {
                let reason = if reason.is_empty() { "no reason given".to_owned() } else { reason.clone() };
                Err(Error::Device(DeviceError::Lost { doing: doing.to_owned(), reason }))
            }
            None => Ok(()),
        }
    }

    /// Runs `work` and returns the first error that the device reports for it.
    async fn scoped<T>(&self, doing: &str, work: impl FnOnce() -> T) -> Result<T> {
        self.check_alive(doing)?;
        let (value, errors) = {
            let device = &self.inner.device;
            let memory = device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
            let internal = device.push_error_scope(wgpu::ErrorFilter::Internal);
            let validation = device.push_error_scope(wgpu::ErrorFilter::Validation);
            let value = work();
            (value, (validation.pop(), internal.pop(), memory.pop()))
        };
        let errors = [errors.0.await, errors.1.await, errors.2.await];
        match errors.into_iter().flatten().next() {
            None => Ok(value),
            Some(wgpu::Error::OutOfMemory { source }) => {
                Err(Error::Device(DeviceError::OutOfMemory { doing: doing.to_owned(), reason: source.to_string() }))
            }
            Some(error) => Err(self.failure(doing, &error)),
        }
    }

    /// Something failed: the device may have been lost.
    fn failure(&self, doing: &str, reason: &dyn std::fmt::Display) -> Error {
        // A lost device answers with other errors first; its callback comes when it is polled.
        if let Err(error) = self.inner.device.poll(wgpu::PollType::Poll) {
            log::warn!("polling the device: {error}");
        }
        let failed = || Error::Device(DeviceError::Failed { doing: doing.to_owned(), reason: reason.to_string() });
        self.check_alive(doing).err().unwrap_or_else(failed)
    }
}
