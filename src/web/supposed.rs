//! The options of a planner without a device, and of a model to load.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::direction::Directions;
use crate::error::Error;
use crate::limits::{DeviceLimits, Vendor};
use crate::model::config::{AutoencoderConfig, Family};
use crate::vae::Precision;

/// A model and a device that need not exist. Also the options to load a model that does: code to
/// read another structure would add to the download of a page.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Supposed {
    family: Option<String>,
    /// The text of config.json.
    config: Option<String>,
    /// The directions whose weights are loaded.
    pub(super) direction: Directions,
    /// True to plan clips. Ignored for a network without a time axis.
    pub(super) clips: bool,
    pub(super) precision: Precision,
    pub(super) unscaled: bool,
    /// True if weights may stay in host memory under a budget.
    pub(super) weights_on_host: bool,
    /// True to plan for the CPU.
    cores: bool,
    /// Limits that replace WebGPU's defaults. Names are as in the facts about an adapter.
    limits: Map<String, Value>,
}

impl Supposed {
    pub(super) fn config(&self) -> crate::error::Result<AutoencoderConfig> {
        let found = match (&self.family, &self.config) {
            (Some(name), None) => return Ok(Family::find(name)?.config()),
            (None, Some(text)) => return AutoencoderConfig::from_json(text),
            (None, None) => "neither",
            (Some(_), Some(_)) => "both",
        };
        Err(Error::input("model", "its family, or its config", found))
    }

    /// Returns the limits that `wgvae plan` uses without an adapter, with the given ones replaced.
    /// For a GPU with a vendor, memory counts as shared or not as in browsers.
    pub(super) fn limits(&self) -> crate::error::Result<DeviceLimits> {
        if self.cores {
            return Ok(DeviceLimits::host());
        }
        let vendor = self.limits.get("vendor").and_then(Value::as_str).map(Vendor::from_name);
        let defaults = DeviceLimits {
            shader_f16: true,
            unified_memory: vendor.is_some_and(Vendor::shares_memory),
            vendor: vendor.unwrap_or_default(),
            ..DeviceLimits::webgpu_default()
        };
        let mut all = json!(defaults);
        let mut limits = defaults;
        for (name, value) in self.limits.iter().filter(|(name, value)| *name != "vendor" || !value.is_string()) {
            let wrong = |expected| Error::input(format!("limits.{name}"), expected, value.to_string());
            match all.get_mut(name) {
                Some(place) => *place = value.clone(),
                None => return Err(wrong("a limit of a device, see AdapterInfo".to_owned())),
            }
            limits =
                serde_json::from_value(all.clone()).map_err(|problem| wrong(format!("a valid value ({problem})")))?;
        }
        Ok(limits)
    }
}
