//! The options of a planner without a device, and of a model to load.

use serde::Deserialize;

use crate::direction::Directions;
use crate::vae::Precision;

/// A model and a device that need not exist. Also the options to load a model that does: code to
/// read another structure would add to the download of a page. The modules for the CPU only load
/// models.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Supposed {
    #[cfg(not(feature = "cores"))]
    pub(super) family: Option<String>,
    /// The text of config.json.
    #[cfg(not(feature = "cores"))]
    pub(super) config: Option<String>,
    /// The directions whose weights are loaded.
    pub(super) direction: Directions,
    /// True to plan clips. Ignored for a network without a time axis.
    pub(super) clips: bool,
    pub(super) precision: Precision,
    pub(super) unscaled: bool,
    /// True if weights may stay in host memory under a budget.
    pub(super) weights_on_host: bool,
    /// True to plan for the CPU.
    #[cfg(not(feature = "cores"))]
    pub(super) cores: bool,
    /// Limits that replace WebGPU's defaults. Names are as in the facts about an adapter.
    #[cfg(not(feature = "cores"))]
    pub(super) limits: serde_json::Map<String, serde_json::Value>,
}
