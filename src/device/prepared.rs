//! A plan with its buffers on a device.

use std::future::ready;
use std::sync::Arc;

use super::{ClipStates, Device, DeviceBuffer, Work};
use crate::cpu;
use crate::error::Error;
use crate::execution::{ByteSink, Control, HasCores, HasGpus, RunReport};
use crate::gpu::{self, GpuBuffer, HostBytes, Input};
use crate::plan::Plan;
use crate::plan::turns::Turn;

/// The place of a plan's weight.
#[derive(Debug, Clone)]
pub(crate) enum LoadedWeight<'a> {
    /// In the memory of the device, for a plan that binds the weight.
    Device(&'a DeviceBuffer),
    /// Packed bytes in host memory, for a plan that fetches the weight. Not on the host itself,
    /// whose weights are always bound.
    Host(Arc<HostBytes>),
}

/// A plan with its buffers on a device, ready to run again and again.
#[derive(Debug)]
pub(crate) enum Prepared {
    Gpu(HasGpus, Box<gpu::Prepared>),
    Cpu(HasCores, Box<cpu::Prepared>),
}

impl Prepared {
    /// Allocates the plan's buffers and compiles its kernels. `weights` has one entry for each of
    /// the plan's weights, in its order, on the same device.
    ///
    /// # Errors
    /// [`crate::Error::Device`], which names the buffer or kernel; [`crate::Error::HostMemory`].
    pub(crate) fn new<'a>(device: &'a Device, plan: Arc<Plan>, weights: Vec<LoadedWeight<'a>>) -> Work<'a, Self> {
        match device {
            Device::Gpu(gpu) => Box::pin(async move {
                let weights = weights.into_iter().filter_map(on_gpu).collect();
                Ok(Self::Gpu(gpu.here, Box::new(gpu::Prepared::new(gpu, plan, weights).await?)))
            }),
            Device::Cpu(cpu) => {
                let weights = weights.into_iter().filter_map(on_cpu).collect();
                let prepared = cpu::Prepared::new(cpu, plan, weights);
                Box::pin(ready(prepared.map(|prepared| Self::Cpu(cpu.here, Box::new(prepared)))))
            }
        }
    }

    /// Runs the plan once on `input`, and hands the result to `sink` in pieces of whole rows, in
    /// order.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`], [`crate::Error::Device`], which names the stage that was
    /// reached, or an error of `sink`.
    pub(crate) fn run<'a>(
        &'a mut self,
        input: &'a Input<'_>,
        control: &'a mut Control<'_>,
        sink: &'a mut ByteSink<'_>,
    ) -> Work<'a, RunReport> {
        match self {
            Self::Gpu(_, prepared) => Box::pin(prepared.run(input, control, sink)),
            Self::Cpu(_, prepared) => Box::pin(async move {
                let Input::Host(inputs) = input else {
                    return Err(Error::input("latents", "values in host memory, on the CPU", "a buffer of a GPU"));
                };
                let inputs: Vec<&[f32]> = inputs.iter().map(|input| &**input).collect();
                prepared.run(&inputs, control, sink).await
            }),
        }
    }

    /// Returns the picture that runs leave on a GPU, if the plan leaves one.
    pub(crate) fn picture(&self) -> Option<&GpuBuffer> {
        match self {
            Self::Gpu(_, prepared) => prepared.picture(),
            Self::Cpu(..) => None,
        }
    }

    /// Reads the picture that the last run left on the device, with its padded rows. `None` if the
    /// plan leaves none.
    ///
    /// # Errors
    /// [`crate::Error::Device`].
    pub(crate) fn read_picture(&mut self) -> Work<'_, Option<Vec<u8>>> {
        match self {
            Self::Gpu(_, prepared) => Box::pin(prepared.read_picture()),
            Self::Cpu(_, prepared) => Box::pin(ready(Ok(prepared.picture().map(<[u8]>::to_vec)))),
        }
    }

    /// Sets the states of the clip, which the next run reads and writes, and its part of the clip.
    pub(crate) fn put_states(&mut self, states: ClipStates, turn: Turn) {
        match self {
            Self::Gpu(_, prepared) => prepared.put_states(states.on_gpu(), turn),
            Self::Cpu(_, prepared) => prepared.put_states(states.on_cpu(), turn),
        }
    }

    /// Takes out the states of the clip.
    pub(crate) fn take_states(&mut self) -> ClipStates {
        match self {
            Self::Gpu(here, prepared) => ClipStates::Gpu(*here, prepared.take_states()),
            Self::Cpu(here, prepared) => ClipStates::Cpu(*here, prepared.take_states()),
        }
    }

    /// Returns the plan.
    pub(crate) fn plan(&self) -> &Plan {
        match self {
            Self::Gpu(_, prepared) => prepared.plan(),
            Self::Cpu(_, prepared) => prepared.plan(),
        }
    }
}

/// Returns the place of a weight as a GPU's plan takes it. No weight of a GPU is elsewhere.
fn on_gpu(weight: LoadedWeight<'_>) -> Option<gpu::LoadedWeight<'_>> {
    match weight {
        LoadedWeight::Device(DeviceBuffer::Gpu(_, buffer)) => Some(gpu::LoadedWeight::Gpu(buffer)),
        LoadedWeight::Device(DeviceBuffer::Cpu(..)) => None,
        LoadedWeight::Host(bytes) => Some(gpu::LoadedWeight::Host(bytes)),
    }
}

/// Returns a weight as the host's plan takes it. No weight of the host is elsewhere.
fn on_cpu(weight: LoadedWeight<'_>) -> Option<Arc<cpu::CpuBuffer>> {
    match weight {
        LoadedWeight::Device(DeviceBuffer::Cpu(_, buffer)) => Some(Arc::clone(buffer)),
        LoadedWeight::Device(DeviceBuffer::Gpu(..)) | LoadedWeight::Host(_) => None,
    }
}
