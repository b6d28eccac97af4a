//! Host memory of a run: packed weights that the plan fetches, and buffers that it parks.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::HostBytes;
use crate::error::{Error, Result};
use crate::plan::{HostSource, ParkedId, Plan};
use crate::tensor::Bytes;

pub(super) struct HostMemory {
    /// One entry for each weight of the plan; `None` if the weight is on the device.
    weights: Vec<Option<Arc<HostBytes>>>,
    parked: Vec<HostBytes>,
}

impl HostMemory {
    /// Reserves room for everything that `plan` parks.
    pub(super) fn new(plan: &Plan, weights: Vec<Option<Arc<HostBytes>>>) -> Result<Self> {
        let mut parked = Vec::new();
        for bytes in &plan.parked {
            parked.push(HostBytes::with_capacity(*bytes).ok_or_else(|| Error::HostMemory {
                what: "activations that the GPU has no room for".to_owned(),
                needed: plan.parked.iter().fold(Bytes(0), |sum, bytes| Bytes(sum.0.saturating_add(bytes.0))),
            })?);
        }
        Ok(Self { weights, parked })
    }

    /// Returns the length of the data to fetch; `None` while it is still on its way from the
    /// device. `bytes` is the full length of parked data.
    pub(super) fn fetched_len(&self, from: HostSource, bytes: Bytes) -> Option<u64> {
        let len = self.content(from)?.len();
        match from {
            HostSource::Weight(_) => Some(len),
            HostSource::Parked(_) | HostSource::Input(_) => (len >= bytes.0).then_some(len),
        }
    }

    /// Returns a part of the data to fetch.
    pub(super) fn read(&self, from: HostSource, range: Range<u64>) -> Cow<'_, [u8]> {
        self.content(from).map_or(Cow::Borrowed(&[]), |content| content.read(range))
    }

    fn content(&self, from: HostSource) -> Option<&HostBytes> {
        match from {
            HostSource::Weight(weight) => self.weights[weight].as_deref(),
            HostSource::Parked(place) => Some(&self.parked[place.0]),
            // The recorder has the inputs.
            HostSource::Input(_) => None,
        }
    }

    /// Removes the content of a parked buffer, to make room for new content.
    pub(super) fn clear(&mut self, place: ParkedId) {
        self.parked[place.0].clear();
    }

    /// Removes all parked content. Keeps the room for it.
    pub(super) fn clear_all(&mut self) {
        self.parked.iter_mut().for_each(HostBytes::clear);
    }

    /// Appends the next piece of a parked buffer.
    pub(super) fn append(&mut self, place: ParkedId, piece: &[u8]) {
        self.parked[place.0].append(piece);
    }
}
