//! Runs plans. This is the only folder that names wgpu. It makes no decisions: the plan says which
//! kernels run where and when.

mod adapter;
mod buffers;
mod commands;
mod executor;
mod host;
mod input;
mod kernel_text;
mod matrix_units;
mod options;
mod pace;
mod pipelines;
mod platform;
mod prepared;
mod readback;
mod recorder;
mod ring;
mod scopes;
mod states;
mod timestamps;
mod upload;
mod wait;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use self::adapter::adapters;
pub use self::buffers::GpuBuffer;
pub use self::input::Input;
pub use self::options::GpuOptions;
#[cfg(target_arch = "wasm32")]
pub(crate) use self::platform::new_array;
pub use self::platform::{ForeignBuffer, HostBytes};
pub use self::prepared::{LoadedWeight, Prepared};
pub use self::states::ClipStates;

use self::pipelines::Pipelines;
use self::platform::Scopes;
use self::scopes::Caught;
use self::wait::Waiter;
use crate::error::{DeviceError, Error, Result};
use crate::execution::{AdapterReport, Audience, HasGpus, Ledger, Listener, Preparing};
use crate::kernels::choice::KernelChoice;
use crate::limits::{DeviceKind, DeviceLimits, Vendor};
use crate::tensor::Bytes;

/// A GPU device that can run plans. Cheap to clone; all clones are one device.
#[derive(Debug, Clone)]
pub struct Gpu {
    inner: Arc<Inner>,
    report: Arc<AdapterReport>,
    kernels: KernelChoice,
    pub(crate) here: HasGpus,
}

#[derive(Debug)]
struct Inner {
    device: wgpu::Device,
    queue: wgpu::Queue,
    ledger: Arc<Ledger>,
    pipelines: Pipelines,
    audience: Audience,
    #[cfg(target_arch = "wasm32")]
    unwanted: platform::Unwanted,
    waiter: Waiter,
    /// Bytes uploaded since the device was idle, of which wgpu holds a copy until then.
    pending: AtomicU64,
    lost: Arc<std::sync::Mutex<Option<String>>>,
    /// True if the caller made the device, and will destroy it.
    adopted: bool,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.adopted {
            platform::drop_device(&self.device);
        }
    }
}

/// A device that was just opened, or that the caller made.
struct Opened {
    device: wgpu::Device,
    queue: wgpu::Queue,
    report: AdapterReport,
    adopted: bool,
    here: HasGpus,
}

impl Gpu {
    /// Returns an error in a build that has no GPUs.
    fn check() -> Result<HasGpus> {
        let without = || DeviceError::NoAdapter("this module computes on the CPU".to_owned());
        HasGpus::check().ok_or_else(|| without().into())
    }

    /// Opens a device on the best adapter that `options` allow: a discrete GPU before an integrated
    /// one before a CPU driver.
    ///
    /// # Errors
    /// [`Error::Device`] if no adapter matches, or if the adapter is too small for any plan or
    /// cannot create a device.
    pub async fn request(options: &GpuOptions) -> Result<Self> {
        let here = Self::check()?;
        let adapter = adapter::choose(options).await?;
        let report = adapter::report(&adapter);
        adapter::check(&report.name, &adapter::offered(&adapter))?;
        let (device, queue) = adapter::open(&adapter, options, &report).await?;
        let report = adapter::of_device(report, &device, options);
        Ok(Self::of(Opened { device, queue, report, adopted: false, here }, options.memory_limit))
    }

    #[cfg_attr(
        target_arch = "wasm32",
        expect(clippy::arc_with_non_send_sync, reason = "a browser has one thread; natively it is both")
    )]
    fn of(opened: Opened, memory_limit: Option<Bytes>) -> Self {
        let Opened { device, queue, report, adopted, here } = opened;
        let lost = Arc::new(std::sync::Mutex::new(None));
        let record = Arc::clone(&lost);
        device.set_device_lost_callback(move |_, reason| {
            record.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(reason);
        });
        if !adopted {
            // The next check reports errors that no scope catches, instead of a panic.
            let record = Arc::clone(&lost);
            let keep = move |error: String| {
                log::error!("uncaptured GPU error: {error}");
                record.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
            };
            platform::on_uncaptured_error(&device, keep);
        }
        let waiter = Waiter::new(&device);
        let ledger = Arc::new(Ledger::new(memory_limit));
        let (pipelines, audience) = (Pipelines::default(), Audience::default());
        let kernels = report.kernels;
        let inner = Inner {
            device,
            queue,
            ledger,
            pipelines,
            audience,
            #[cfg(target_arch = "wasm32")]
            unwanted: platform::Unwanted::default(),
            waiter,
            pending: AtomicU64::new(0),
            lost,
            adopted,
        };
        Self { inner: Arc::new(inner), report: Arc::new(report), kernels, here }
    }

    /// Returns the same device, whose plans use the kernels and tiles of devices of this kind and
    /// vendor, whatever it is itself. For tests and comparisons: what is compiled is shared.
    #[must_use]
    pub fn with_kernels_of(self, kind: DeviceKind, vendor: Vendor) -> Self {
        let report = adapter::with_kernels_of(AdapterReport::clone(&self.report), kind, vendor);
        Self { kernels: report.kernels, report: Arc::new(report), ..self }
    }

    /// Returns the same device with other `kernels` for its plans; see [`Self::tune`].
    ///
    /// # Errors
    /// [`Error::Input`] for kernels that neither the rules nor [`Self::tune`] could choose on this
    /// device.
    pub fn with_kernels(self, kernels: KernelChoice) -> Result<Self> {
        kernels.check(self.limits())?;
        Ok(Self { kernels, ..self })
    }

    /// Returns all kernels that [`Self::with_kernels`] accepts, the rules' kernels first.
    pub fn possible_kernels(&self) -> Vec<KernelChoice> {
        KernelChoice::possible(self.limits())
    }

    /// Returns the kernels that plans for this device use.
    pub fn kernels(&self) -> &KernelChoice {
        &self.kernels
    }

    /// Returns the adapter, with the limits and features that the device was opened with.
    pub fn adapter(&self) -> &AdapterReport {
        &self.report
    }

    /// Returns the limits that plans for this device must keep.
    pub fn limits(&self) -> &DeviceLimits {
        &self.report.limits
    }

    /// Returns the count of the bytes of all buffers that this crate created on this device.
    pub fn ledger(&self) -> &Ledger {
        &self.inner.ledger
    }

    /// Returns the bytes that the driver's allocator has handed out, and those that it has
    /// reserved. `None` if the backend cannot tell (only Vulkan and DX12 can).
    pub fn allocator_bytes(&self) -> Option<(u64, u64)> {
        let report = self.inner.device.generate_allocator_report()?;
        Some((report.total_allocated_bytes, report.total_reserved_bytes))
    }

    /// Sets the listener that hears the progress of loading weights and compiling kernels, from now
    /// on. It is called on the thread that does the work. `None` removes it. The progress of a run
    /// goes to [`crate::Control`] instead.
    pub fn watch(&self, listener: Option<Arc<Listener>>) {
        self.inner.audience.set(listener);
    }

    pub(crate) fn tell(&self, now: Preparing<'_>) {
        self.inner.audience.tell(now);
    }

    /// Returns the number of pipelines compiled so far, and the time that compiling took.
    pub fn compiled(&self) -> (usize, std::time::Duration) {
        self.inner.pipelines.compiled()
    }

    /// Waits until the device has finished all uploads and all submitted work. Dropped buffers and
    /// wgpu's copies of what was uploaded are free then.
    pub(crate) async fn idle(&self) -> Result<()> {
        const DOING: &str = "waiting for the device";
        let queue = &self.inner.queue;
        // Uploads begin with a submission.
        self.check_alive(DOING)?;
        queue.submit([]);
        self.inner.pending.store(0, Ordering::Relaxed);
        let mut wait = self.inner.waiter.wait(DOING, None, |done| queue.on_submitted_work_done(move || done.with(())));
        let ended = wait.end().await;
        self.check_alive(DOING)?;
        ended
    }

    /// Destroys the device: all later work fails with [`DeviceError::Lost`], as after a driver
    /// reset. A device that the caller made is kept.
    pub fn destroy(&self) {
        if !self.inner.adopted {
            self.inner.device.destroy();
        }
    }

    /// Returns an error if the device is lost.
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
        let scopes = Scopes::push(&self.inner.device);
        let value = work();
        self.reported(doing, value, scopes.pop().await)
    }

    /// Returns `value`, or the error that the device reported for it.
    fn reported<T>(&self, doing: &str, value: T, caught: Option<Caught>) -> Result<T> {
        match caught {
            None => Ok(value),
            Some(Caught::OutOfMemory(reason)) => {
                Err(Error::Device(DeviceError::OutOfMemory { doing: doing.to_owned(), reason }))
            }
            Some(Caught::Other(reason)) => Err(self.failure(doing, &reason)),
        }
    }

    /// Returns the error for a failed operation: a lost device, if that is the cause.
    fn failure(&self, doing: &str, reason: &dyn std::fmt::Display) -> Error {
        // A lost device answers with other errors first. Its callback comes when it is polled.
        if let Err(error) = self.inner.device.poll(wgpu::PollType::Poll) {
            log::warn!("polling the device: {error}");
        }
        let failed = || Error::Device(DeviceError::Failed { doing: doing.to_owned(), reason: reason.to_string() });
        self.check_alive(doing).err().unwrap_or_else(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs an adapter, as the tests in `tests/gpu` do. Adapters offer more than a device is
    /// opened with.
    #[test]
    fn plans_see_the_limits_that_the_device_was_opened_with() {
        for webgpu_default_limits in [false, true] {
            for without_shader_f16 in [false, true] {
                let options = GpuOptions { webgpu_default_limits, without_shader_f16, ..GpuOptions::default() };
                let gpu = pollster::block_on(Gpu::request(&options)).expect("an adapter");
                let (found, device) = (gpu.limits(), gpu.inner.device.limits());
                let features = gpu.inner.device.features();
                assert_eq!(found.max_storage_buffer_binding_size.0, device.max_storage_buffer_binding_size);
                assert_eq!(found.max_buffer_size.0, device.max_buffer_size);
                assert_eq!(found.max_storage_buffers_per_shader_stage, device.max_storage_buffers_per_shader_stage);
                assert_eq!(found.max_compute_workgroups_per_dimension, device.max_compute_workgroups_per_dimension);
                assert_eq!(found.max_compute_invocations_per_workgroup, device.max_compute_invocations_per_workgroup);
                let workgroup_storage = u64::from(device.max_compute_workgroup_storage_size);
                assert_eq!(found.max_compute_workgroup_storage_size.0, workgroup_storage);
                assert_eq!(found.min_uniform_buffer_offset_alignment, device.min_uniform_buffer_offset_alignment);
                assert_eq!(found.shader_f16, features.contains(wgpu::Features::SHADER_F16));
                assert_eq!(found.timestamp_query, features.contains(wgpu::Features::TIMESTAMP_QUERY));
                assert_eq!(
                    found.quads,
                    features.contains(wgpu::Features::SUBGROUP) && gpu.adapter().subgroup_size[0] >= 4
                );
                assert!(!(without_shader_f16 && found.shader_f16));
                assert_eq!(gpu.adapter().limits, *found, "what is reported of the adapter");
            }
        }
    }
}
