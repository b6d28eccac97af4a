//! A plan with its buffers on a device.

use std::sync::Arc;

use super::{ClipStates, Device, DeviceBuffer};
#[cfg(not(target_arch = "wasm32"))]
use crate::cpu;
use crate::error::Result;
use crate::execution::{Control, RowSink, RunReport};
use crate::gpu::{self, GpuBuffer, HostBytes, Input};
use crate::plan::Plan;

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
    Gpu(Box<gpu::Prepared>),
    #[cfg(not(target_arch = "wasm32"))]
    Cpu(cpu::Prepared),
}

impl Prepared {
    /// Allocates the plan's buffers and compiles its kernels. `weights` has one entry for each of
    /// the plan's weights, in its order, on the same device.
    ///
    /// # Errors
    /// [`crate::Error::Device`], which names the buffer or kernel; [`crate::Error::HostMemory`].
    pub(crate) async fn new(device: &Device, plan: Arc<Plan>, weights: Vec<LoadedWeight<'_>>) -> Result<Self> {
        Ok(match device {
            Device::Gpu(gpu) => {
                let weights = weights.into_iter().filter_map(on_gpu).collect();
                Self::Gpu(Box::new(gpu::Prepared::new(gpu, plan, weights).await?))
            }
            #[cfg(not(target_arch = "wasm32"))]
            Device::Cpu(cpu) => {
                let weights = weights.into_iter().filter_map(on_cpu).collect();
                Self::Cpu(cpu::Prepared::new(cpu, plan, weights)?)
            }
        })
    }

    /// Runs the plan once on `input`, and hands the result to `sink` in pieces of whole rows, in
    /// order.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`], [`crate::Error::Device`], which names the stage that was
    /// reached, or an error of `sink`.
    pub(crate) async fn run(
        &mut self,
        input: &Input<'_>,
        control: &mut Control<'_>,
        sink: &mut RowSink<'_>,
    ) -> Result<RunReport> {
        match self {
            Self::Gpu(prepared) => prepared.run(input, control, sink).await,
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cpu(prepared) => match input {
                Input::Host(inputs) => {
                    let inputs: Vec<&[f32]> = inputs.iter().map(|input| &**input).collect();
                    prepared.run(&inputs, control, sink)
                }
                Input::Foreign { buffer, .. } => match **buffer {},
            },
        }
    }

    /// Returns the picture that runs leave on a GPU, if the plan leaves one.
    pub(crate) fn picture(&self) -> Option<&GpuBuffer> {
        match self {
            Self::Gpu(prepared) => prepared.picture(),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cpu(_) => None,
        }
    }

    /// Reads the picture that the last run left on the device, with its padded rows. `None` if the
    /// plan leaves none.
    ///
    /// # Errors
    /// [`crate::Error::Device`].
    pub(crate) async fn read_picture(&mut self) -> Result<Option<Vec<u8>>> {
        match self {
            Self::Gpu(prepared) => prepared.read_picture().await,
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cpu(prepared) => Ok(prepared.picture().map(<[u8]>::to_vec)),
        }
    }

    /// Sets the states of the clip, which the next run reads and writes.
    pub(crate) fn put_states(&mut self, states: ClipStates) {
        match self {
            Self::Gpu(prepared) => prepared.put_states(states.on_gpu()),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cpu(prepared) => prepared.put_states(states.on_cpu()),
        }
    }

    /// Takes out the states of the clip.
    pub(crate) fn take_states(&mut self) -> ClipStates {
        match self {
            Self::Gpu(prepared) => ClipStates::Gpu(prepared.take_states()),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cpu(prepared) => ClipStates::Cpu(prepared.take_states()),
        }
    }

    /// Returns the plan.
    pub(crate) fn plan(&self) -> &Plan {
        match self {
            Self::Gpu(prepared) => prepared.plan(),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cpu(prepared) => prepared.plan(),
        }
    }
}

/// Returns the place of a weight as a GPU's plan takes it. No weight of a GPU is elsewhere.
fn on_gpu(weight: LoadedWeight<'_>) -> Option<gpu::LoadedWeight<'_>> {
    match weight {
        LoadedWeight::Device(DeviceBuffer::Gpu(buffer)) => Some(gpu::LoadedWeight::Gpu(buffer)),
        #[cfg(not(target_arch = "wasm32"))]
        LoadedWeight::Device(DeviceBuffer::Cpu(_)) => None,
        LoadedWeight::Host(bytes) => Some(gpu::LoadedWeight::Host(bytes)),
    }
}

/// Returns a weight as the host's plan takes it. No weight of the host is elsewhere.
#[cfg(not(target_arch = "wasm32"))]
fn on_cpu(weight: LoadedWeight<'_>) -> Option<Arc<cpu::CpuBuffer>> {
    match weight {
        LoadedWeight::Device(DeviceBuffer::Cpu(buffer)) => Some(Arc::clone(buffer)),
        LoadedWeight::Device(DeviceBuffer::Gpu(_)) | LoadedWeight::Host(_) => None,
    }
}
