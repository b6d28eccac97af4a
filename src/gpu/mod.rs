//! Runs plans. The only folder that names wgpu. It makes no decisions: what runs where and when is
//! the plan's.

mod adapter;
#[cfg(target_arch = "wasm32")]
mod browser;
mod buffers;
mod commands;
#[cfg(not(target_arch = "wasm32"))]
mod compiling;
mod control;
mod executor;
mod host;
mod host_bytes;
mod input;
mod ledger;
mod matrix_units;
mod pace;
mod pipelines;
mod prepared;
mod preparing;
mod readback;
mod recorder;
mod scopes;
mod source;
mod states;
mod timestamps;
mod upload;
mod wait;

use std::sync::Arc;

#[cfg(target_arch = "wasm32")]
pub(crate) use self::adapter::shares_memory;
pub use self::adapter::{AdapterReport, GpuOptions, adapters};
#[cfg(target_arch = "wasm32")]
pub use self::browser::ForeignBuffer;
#[cfg(target_arch = "wasm32")]
pub(crate) use self::browser::new_array;
pub use self::buffers::GpuBuffer;
pub use self::control::{Control, Progress, RunReport, Submission};
pub use self::executor::RowSink;
pub use self::host_bytes::HostBytes;
pub use self::input::Input;
pub use self::ledger::Ledger;
pub use self::prepared::{Prepared, Weight};
pub use self::preparing::{Listener, Preparing};
pub use self::states::States;

#[cfg(target_arch = "wasm32")]
use self::browser::{Scopes, Unwanted};
use self::pipelines::Pipelines;
use self::preparing::Audience;
use self::scopes::Caught;
#[cfg(not(target_arch = "wasm32"))]
use self::scopes::Scopes;
use self::wait::Waiter;
use crate::error::{DeviceError, Error, Result};
use crate::kernels::Variant;
use crate::kernels::choice::Choice;
use crate::limits::DeviceLimits;
use crate::tensor::Bytes;

/// A GPU device, ready to run plans. Cheap to clone; all clones are one device.
#[derive(Debug, Clone)]
pub struct Gpu {
    inner: Arc<Inner>,
    kernels: Choice,
}

#[derive(Debug)]
struct Inner {
    device: wgpu::Device,
    queue: wgpu::Queue,
    report: AdapterReport,
    ledger: Arc<Ledger>,
    pipelines: Pipelines,
    audience: Audience,
    #[cfg(target_arch = "wasm32")]
    unwanted: Unwanted,
    waiter: Waiter,
    lost: Arc<std::sync::Mutex<Option<String>>>,
    /// Whether the device is the caller's, who made it and will destroy it.
    adopted: bool,
}

// On the web, dropping a device's handle does nothing.
#[cfg(target_arch = "wasm32")]
impl Drop for Inner {
    fn drop(&mut self) {
        if !self.adopted {
            self.device.destroy();
        }
    }
}

/// A device that was just opened.
struct Opened {
    device: wgpu::Device,
    queue: wgpu::Queue,
    report: AdapterReport,
    adopted: bool,
}

impl Gpu {
    /// Opens the best adapter that `options` allow: a discrete GPU before an integrated one before
    /// a CPU driver.
    ///
    /// # Errors
    /// [`Error::Device`] when no adapter matches, the adapter is too small for any plan, or gives
    /// no device.
    pub async fn request(options: &GpuOptions) -> Result<Self> {
        let adapter = adapter::choose(options).await?;
        let report = adapter::report(&adapter);
        adapter::check(&report.name, &adapter::offered(&adapter))?;
        let (device, queue) = adapter::open(&adapter, options, &report).await?;
        let report = adapter::of_device(report, &device, options);
        Ok(Self::of(Opened { device, queue, report, adopted: false }, options.memory_limit))
    }

    /// Takes over a `GPUDevice` that the caller made and goes on using, with the features and
    /// limits that it has. It is never destroyed here. `gpu`: see [`GpuOptions::gpu`].
    ///
    /// # Errors
    /// [`Error::Device`] when it is no device, or one too small for any plan.
    #[cfg(target_arch = "wasm32")]
    pub async fn adopt(device: &wasm_bindgen::JsValue, gpu: Option<wasm_bindgen::JsValue>) -> Result<Self> {
        let options = GpuOptions { gpu, ..GpuOptions::default() };
        let adapter = adapter::choose(&options).await?;
        let (device, queue) = browser::adopt(&adapter, &wgpu::DeviceDescriptor::default(), device).await?;
        let report = adapter::of_device(adapter::report(&adapter), &device, &options);
        adapter::check(&report.name, &report.limits)?;
        Ok(Self::of(Opened { device, queue, report, adopted: true }, None))
    }

    #[cfg_attr(
        target_arch = "wasm32",
        expect(clippy::arc_with_non_send_sync, reason = "a browser has one thread; natively it is both")
    )]
    fn of(opened: Opened, memory_limit: Option<Bytes>) -> Self {
        let Opened { device, queue, report, adopted } = opened;
        let lost = Arc::new(std::sync::Mutex::new(None));
        let record = Arc::clone(&lost);
        device.set_device_lost_callback(move |_, reason| {
            record.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(reason);
        });
        if !adopted {
            // Whatever no scope catches is reported by the next check, not by a panic.
            let record = Arc::clone(&lost);
            let keep = move |error: String| {
                log::error!("uncaptured GPU error: {error}");
                record.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
            };
            #[cfg(target_arch = "wasm32")]
            browser::on_uncaptured_error(&device, keep);
            #[cfg(not(target_arch = "wasm32"))]
            device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| keep(error.to_string())));
        }
        let waiter = Waiter::new(&device);
        let ledger = Arc::new(Ledger::new(memory_limit));
        let (pipelines, audience) = (Pipelines::default(), Audience::default());
        let kernels = report.kernels;
        let inner = Inner {
            device,
            queue,
            report,
            ledger,
            pipelines,
            audience,
            #[cfg(target_arch = "wasm32")]
            unwanted: Unwanted::default(),
            waiter,
            lost,
            adopted,
        };
        Self { inner: Arc::new(inner), kernels }
    }

    /// The same device, of which plans use `kernels`: see [`Self::tune`].
    ///
    /// # Errors
    /// [`Error::Input`] for kernels that are neither the rules' nor any that measuring could find
    /// on this device.
    pub fn with_kernels(self, kernels: Choice) -> Result<Self> {
        kernels.check(self.limits())?;
        Ok(Self { kernels, ..self })
    }

    /// All kernels that [`Self::with_kernels`] takes, those of the rules first.
    pub fn possible_kernels(&self) -> Vec<Choice> {
        Choice::possible(self.limits())
    }

    /// The kernels that plans for this device use.
    pub fn kernels(&self) -> &Choice {
        &self.kernels
    }

    /// The adapter, with the limits and features that the device was opened with.
    pub fn adapter(&self) -> &AdapterReport {
        &self.inner.report
    }

    /// The limits that plans for this device must keep.
    pub fn limits(&self) -> &DeviceLimits {
        &self.inner.report.limits
    }

    /// The bytes of all buffers created on this device by this crate.
    pub fn ledger(&self) -> &Ledger {
        &self.inner.ledger
    }

    /// Bytes that the driver's allocator has handed out and has reserved, where the backend can
    /// tell (Vulkan, DX12).
    pub fn allocator_bytes(&self) -> Option<(u64, u64)> {
        let report = self.inner.device.generate_allocator_report()?;
        Some((report.total_allocated_bytes, report.total_reserved_bytes))
    }

    /// Compiles kernels, unless they are compiled already.
    pub(crate) async fn compile(&self, variants: &[Variant]) -> Result<()> {
        self.inner.pipelines.get(self, variants).await.map(drop)
    }

    /// From now on `listener` hears how far weights and kernels are, on the thread that works at
    /// them; `None`: nobody does. What a run has done, [`Control`] tells.
    pub fn watch(&self, listener: Option<Arc<Listener>>) {
        self.inner.audience.set(listener);
    }

    /// From now on compiling ends between two kernels with [`Error::Cancelled`] once `flag` is set;
    /// `None`: it goes on to its end.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn heed(&self, flag: Option<Arc<std::sync::atomic::AtomicBool>>) {
        self.inner.unwanted.heed(flag);
    }

    pub(crate) fn tell(&self, now: Preparing<'_>) {
        self.inner.audience.tell(now);
    }

    /// Pipelines compiled so far, and the time that took.
    pub fn compiled(&self) -> (usize, std::time::Duration) {
        self.inner.pipelines.compiled()
    }

    /// Waits until the device has done all that was submitted: buffers that were dropped are free
    /// then.
    pub(crate) async fn idle(&self) -> Result<()> {
        const DOING: &str = "waiting for the device";
        let queue = &self.inner.queue;
        let mut wait = self.inner.waiter.wait(DOING, None, |done| queue.on_submitted_work_done(move || done.with(())));
        wait.end().await?;
        self.check_alive(DOING)
    }

    /// Gives the device up, as a driver reset would: all later work fails with
    /// [`DeviceError::Lost`]. A device that the caller made stays.
    pub fn destroy(&self) {
        if !self.inner.adopted {
            self.inner.device.destroy();
        }
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
        let scopes = Scopes::push(&self.inner.device);
        let value = work();
        self.reported(doing, value, scopes.pop().await)
    }

    /// `value`, unless the device reported an error for it.
    fn reported<T>(&self, doing: &str, value: T, caught: Option<Caught>) -> Result<T> {
        match caught {
            None => Ok(value),
            Some(Caught::OutOfMemory(reason)) => {
                Err(Error::Device(DeviceError::OutOfMemory { doing: doing.to_owned(), reason }))
            }
            Some(Caught::Other(reason)) => Err(self.failure(doing, &reason)),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs an adapter, as the tests in `tests/gpu` do. Adapters offer more than is asked of a
    /// device.
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
