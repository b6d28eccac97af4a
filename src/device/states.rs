//! The states of a clip on a device.

use std::future::ready;

use super::{Device, Work};
use crate::cpu;
use crate::error::Result;
use crate::execution::{HasCores, HasGpus};
use crate::gpu;
use crate::plan::StateUse;

/// The states of a clip, initially zeros. `None` for an image.
#[derive(Debug, Default)]
pub(crate) enum ClipStates {
    #[default]
    None,
    Gpu(HasGpus, gpu::ClipStates),
    Cpu(HasCores, cpu::ClipStates),
}

impl ClipStates {
    /// Allocates the `states` of a plan of a clip.
    ///
    /// # Errors
    /// See [`Self::add`].
    pub(crate) async fn new(device: &Device, states: &[StateUse]) -> Result<Self> {
        let mut kept = Self::None;
        kept.add(device, states).await?;
        Ok(kept)
    }

    /// True if all `states` of a plan are allocated.
    pub(crate) fn hold(&self, states: &[StateUse]) -> bool {
        match self {
            Self::None => states.is_empty(),
            Self::Gpu(_, kept) => kept.hold(states),
            Self::Cpu(_, kept) => kept.hold(states),
        }
    }

    /// Allocates the `states` of a plan that are not allocated yet.
    ///
    /// # Errors
    /// [`crate::Error::Device`], [`crate::Error::HostMemory`].
    pub(crate) fn add<'a>(&'a mut self, device: &'a Device, states: &'a [StateUse]) -> Work<'a, ()> {
        match device {
            Device::Gpu(gpu) => Box::pin(async move {
                if let Self::Gpu(_, kept) = self {
                    return kept.add(gpu, states).await;
                }
                *self = Self::Gpu(gpu.here, gpu::ClipStates::new(gpu, states).await?);
                Ok(())
            }),
            Device::Cpu(cpu) => {
                if !matches!(self, Self::Cpu(..)) {
                    *self = Self::Cpu(cpu.here, cpu::ClipStates::default());
                }
                let Self::Cpu(_, kept) = self else { return Box::pin(ready(Ok(()))) };
                Box::pin(ready(kept.add(cpu, states)))
            }
        }
    }

    /// Takes out the states on a GPU; none if there are none.
    pub(super) fn on_gpu(self) -> gpu::ClipStates {
        match self {
            Self::Gpu(_, states) => states,
            _ => gpu::ClipStates::default(),
        }
    }

    /// Takes out the states on the host; none if there are none.
    pub(super) fn on_cpu(self) -> cpu::ClipStates {
        match self {
            Self::Cpu(_, states) => states,
            _ => cpu::ClipStates::default(),
        }
    }
}
