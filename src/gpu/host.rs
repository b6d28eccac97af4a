//! What a run keeps in host memory: packed weights that the plan fetches, and what it parks.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::plan::{HostSource, ParkedId, Plan};
use crate::tensor::Bytes;

pub(super) struct HostMemory {
    /// For each weight of the plan; `None` where it is on the device.
    weights: Vec<Option<Arc<[u8]>>>,
    parked: Vec<Vec<u8>>,
}

impl HostMemory {
    /// Reserves room for all that `plan` parks.
    pub(super) fn new(plan: &Plan, weights: Vec<Option<Arc<[u8]>>>) -> Result<Self> {
        let mut parked = Vec::new();
        for bytes in &plan.parked {
            let mut place = Vec::new();
            let reserved = usize::try_from(bytes.0).ok().and_then(|bytes| place.try_reserve_exact(bytes).ok());
            if reserved.is_none() {
                return Err(Error::HostMemory {
                    what: "what the plan keeps there while the GPU has no room for it".to_owned(),
                    needed: plan.parked.iter().fold(Bytes(0), |sum, bytes| Bytes(sum.0.saturating_add(bytes.0))),
                });
            }
            parked.push(place);
        }
        Ok(Self { weights, parked })
    }

    /// The first `bytes` of what is to be fetched; `None` while that is still on its way here.
    pub(super) fn content(&self, from: HostSource, bytes: Bytes) -> Option<&[u8]> {
        match from {
            HostSource::Weight(weight) => self.weights[weight].as_deref(),
            HostSource::Parked(place) => {
                let content = self.parked[place.0].as_slice();
                (content.len() as u64 >= bytes.0).then_some(content)
            }
        }
    }

    /// Makes room for new content.
    pub(super) fn clear(&mut self, place: ParkedId) {
        self.parked[place.0].clear();
    }

    /// Forgets everything that was parked, not the room for it.
    pub(super) fn clear_all(&mut self) {
        self.parked.iter_mut().for_each(Vec::clear);
    }

    /// Adds the next piece of what is parked.
    pub(super) fn append(&mut self, place: ParkedId, piece: &[u8]) {
        self.parked[place.0].extend_from_slice(piece);
    }
}
