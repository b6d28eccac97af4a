//! Compiles kernels on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use super::Scopes;
use crate::error::Result;
use crate::gpu::kernel_text::{KernelText, Parts, Pipeline};
use crate::gpu::scopes::Caught;
use crate::gpu::{Gpu, Preparing};

/// Returns the pipelines of `sources`, in their order.
pub(in crate::gpu) async fn compile_all(gpu: &Gpu, sources: &[&KernelText]) -> Result<Vec<Pipeline>> {
    gpu.check_alive("compiling kernels")?;
    let mut compiled = compile_on_all_cores(gpu, sources);
    compiled.sort_unstable_by_key(|(index, ..)| *index);
    let mut pipelines = Vec::new();
    for (index, pipeline, caught) in compiled {
        pipelines.push(gpu.reported(&sources[index].doing, pipeline, caught.await)?);
    }
    Ok(pipelines)
}

/// Compiles all `sources`. Returns each pipeline with its index in `sources` and a future of the
/// device's error.
fn compile_on_all_cores(
    gpu: &Gpu,
    sources: &[&KernelText],
) -> Vec<(usize, Pipeline, impl Future<Output = Option<Caught>>)> {
    let device = &gpu.inner.device;
    let next = AtomicUsize::new(0);
    let work = |finished: mpsc::Sender<_>| {
        while let index = next.fetch_add(1, Ordering::Relaxed)
            && let Some(source) = sources.get(index)
        {
            // Error scopes belong to the thread that pushed them.
            let scopes = Scopes::push(device);
            let parts = Parts::new(device, source);
            let pipeline = parts.pipeline(device, source.interface.file);
            // The receiver is gone if another thread has panicked.
            drop(finished.send((index, parts.with(pipeline), scopes.pop())));
        }
    };
    let (sender, finished) = mpsc::channel();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let spawn = |sender| {
            let thread = thread::Builder::new().name("wgvae-compile".to_owned());
            thread.spawn_scoped(scope, || work(sender)).is_ok()
        };
        let threads = (0..cores.min(sources.len())).filter(|_| spawn(sender.clone())).count();
        if threads == 0 {
            work(sender);
        } else {
            drop(sender);
        }
        let (mut compiled, mut is_done) = (Vec::new(), vec![false; sources.len()]);
        loop {
            if let Some(index) = is_done.iter().position(|done| !done) {
                let kernel = sources[index].interface.file;
                gpu.tell(Preparing::Kernels { done: compiled.len(), total: sources.len(), kernel });
            }
            match finished.recv() {
                Ok(one) => {
                    is_done[one.0] = true;
                    compiled.push(one);
                }
                Err(mpsc::RecvError) => return compiled,
            }
        }
    })
}
