//! The states of a clip on a device.

use super::Device;
#[cfg(not(target_arch = "wasm32"))]
use crate::cpu;
use crate::error::Result;
use crate::gpu;
use crate::plan::StateUse;

/// The states of a clip, initially zeros. `None` for an image.
#[derive(Debug, Default)]
pub(crate) enum ClipStates {
    #[default]
    None,
    Gpu(gpu::ClipStates),
    #[cfg(not(target_arch = "wasm32"))]
    Cpu(cpu::ClipStates),
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
            Self::Gpu(kept) => kept.hold(states),
            #[cfg(not(target_arch = "wasm32"))]
            Self::Cpu(kept) => kept.hold(states),
        }
    }

    /// Allocates the `states` of a plan that are not allocated yet.
    ///
    /// # Errors
    /// [`crate::Error::Device`], [`crate::Error::HostMemory`].
    pub(crate) async fn add(&mut self, device: &Device, states: &[StateUse]) -> Result<()> {
        match (&mut *self, device) {
            (Self::Gpu(kept), Device::Gpu(gpu)) => kept.add(gpu, states).await,
            (_, Device::Gpu(gpu)) => {
                *self = Self::Gpu(gpu::ClipStates::new(gpu, states).await?);
                Ok(())
            }
            #[cfg(not(target_arch = "wasm32"))]
            (Self::Cpu(kept), Device::Cpu(cpu)) => kept.add(cpu, states),
            #[cfg(not(target_arch = "wasm32"))]
            (_, Device::Cpu(cpu)) => {
                let mut kept = cpu::ClipStates::default();
                kept.add(cpu, states)?;
                *self = Self::Cpu(kept);
                Ok(())
            }
        }
    }

    /// Takes out the states on a GPU; none if there are none.
    pub(super) fn on_gpu(self) -> gpu::ClipStates {
        match self {
            Self::Gpu(states) => states,
            _ => gpu::ClipStates::default(),
        }
    }

    /// Takes out the states on the host; none if there are none.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn on_cpu(self) -> cpu::ClipStates {
        match self {
            Self::Cpu(states) => states,
            _ => cpu::ClipStates::default(),
        }
    }
}
