//! Runs plans on the host's own cores, without a driver: the same steps, slots, bands, budgets and
//! states as `gpu/`. It makes no decisions: the plan says which kernels run where and when.

mod buffer;
mod call;
mod executor;
mod kernels;
mod lanes;
mod parallel;
mod prepared;
mod states;
mod stored;
mod threads;
mod turn;

use std::sync::Arc;

pub use self::buffer::CpuBuffer;
pub use self::call::{Binding, Call};
pub use self::kernels::run;
pub use self::prepared::Prepared;
pub use self::states::ClipStates;
use self::threads::Threads;
#[cfg(all(target_arch = "wasm32", feature = "threads"))]
pub(crate) use self::threads::{break_thread, run_thread, thread_broke};
use crate::error::{DeviceError, Error, Result};
use crate::execution::{AdapterReport, Audience, HasCores, Ledger, Listener, Preparing};
use crate::kernels::choice::KernelChoice;
use crate::limits::DeviceLimits;
use crate::tensor::Bytes;

/// Most threads. More than there are cores only wait for each other: 4096 took over a minute for a
/// small picture on two cores.
const MOST_THREADS: usize = 1024;

/// Options of the host as a device.
#[derive(Debug, Clone, Default)]
pub struct CpuOptions {
    /// The number of threads that compute. `None` means one thread for each core that the process
    /// may use; in a browser, one thread. There, all devices share the threads of the first.
    pub threads: Option<usize>,
    /// The most bytes that all buffers may take. Allocations beyond it fail, as on a host without
    /// more memory.
    pub memory_limit: Option<Bytes>,
}

/// The host's cores as a device that can run plans. Cheap to clone; all clones are one device.
#[derive(Debug, Clone)]
pub struct Cpu {
    inner: Arc<Inner>,
    pub(crate) here: HasCores,
}

#[derive(Debug)]
struct Inner {
    threads: Threads,
    arch: pulp::Arch,
    report: AdapterReport,
    ledger: Arc<Ledger>,
    audience: Audience,
}

impl Cpu {
    /// Starts the threads that will compute.
    ///
    /// # Errors
    /// [`Error::Input`] for zero threads or more than 1024; [`Error::Device`] if the host cannot
    /// start them.
    #[cfg_attr(
        target_arch = "wasm32",
        expect(
            clippy::arc_with_non_send_sync,
            reason = "in a browser it stays on one thread; natively it is `Send` and `Sync`"
        )
    )]
    pub fn new(options: &CpuOptions) -> Result<Self> {
        let failed =
            |doing: &str, reason: String| Error::Device(DeviceError::Failed { doing: doing.to_owned(), reason });
        let here =
            HasCores::check().ok_or_else(|| failed("opening the CPU", "this module computes on a GPU".to_owned()))?;
        if let Some(threads) = options.threads.filter(|threads| !(1..=MOST_THREADS).contains(threads)) {
            return Err(Error::input("number of threads", format!("1 to {MOST_THREADS}"), threads.to_string()));
        }
        let threads = Threads::start(options.threads).map_err(|error| failed("starting threads", error.to_string()))?;
        let arch = pulp::Arch::new();
        let report = report(threads.count(), arch);
        let ledger = Arc::new(Ledger::new(options.memory_limit));
        let inner = Inner { threads, arch, report, ledger, audience: Audience::default() };
        Ok(Self { inner: Arc::new(inner), here })
    }

    /// Returns the number of threads that compute.
    pub(crate) fn threads(&self) -> usize {
        self.inner.threads.count()
    }

    /// Returns the limits that plans for this device must keep.
    pub fn limits(&self) -> &DeviceLimits {
        &self.inner.report.limits
    }

    /// Returns the kernels that plans for this device use.
    pub fn kernels(&self) -> &KernelChoice {
        &self.inner.report.kernels
    }

    /// Returns the count of the bytes of all buffers that this crate created on this device.
    pub fn ledger(&self) -> &Ledger {
        &self.inner.ledger
    }

    /// Returns the description: the number of threads and the vector instructions that kernels use.
    pub fn adapter(&self) -> &AdapterReport {
        &self.inner.report
    }

    /// Sets the listener that hears the progress of loading weights, from now on. `None` removes
    /// it.
    pub fn watch(&self, listener: Option<Arc<Listener>>) {
        self.inner.audience.set(listener);
    }

    pub(crate) fn tell(&self, now: Preparing<'_>) {
        self.inner.audience.tell(now);
    }
}

/// Returns every set of vector instructions that kernels can use on this processor, the best first.
/// For tests.
pub fn architectures() -> Vec<pulp::Arch> {
    #[cfg(target_arch = "x86_64")]
    let mut all: Vec<pulp::Arch> = pulp::x86::V4::try_new()
        .map(pulp::Arch::V4)
        .into_iter()
        .chain(pulp::x86::V3::try_new().map(pulp::Arch::V3))
        .collect();
    #[cfg(not(target_arch = "x86_64"))]
    let mut all = vec![pulp::Arch::new()];
    all.push(pulp::Arch::Scalar);
    all
}

fn report(threads: usize, arch: pulp::Arch) -> AdapterReport {
    let limits = DeviceLimits::host();
    AdapterReport {
        name: format!("CPU ({threads} thread{}, {})", if threads == 1 { "" } else { "s" }, instructions(arch)),
        backend: "Cpu".to_owned(),
        device_type: "Cpu".to_owned(),
        driver: concat!("wgvae ", env!("CARGO_PKG_VERSION")).to_owned(),
        pci_id: String::new(),
        subgroup_size: [1, 1],
        subgroups: false,
        cooperative_matrices: Vec::new(),
        matrix_units: None,
        kernels: KernelChoice::for_device(&limits),
        limits,
    }
}

/// Returns the name of a set of vector instructions: `AVX-512`, `AVX2`, `NEON`, `SIMD128`, `SSE` or
/// `none`.
pub fn instructions(arch: pulp::Arch) -> &'static str {
    match lanes::count(arch) {
        16 => "AVX-512",
        8 => "AVX2",
        4 if cfg!(target_arch = "aarch64") => "NEON",
        4 if cfg!(target_arch = "wasm32") => "SIMD128",
        4 => "SSE",
        _ => "none",
    }
}
