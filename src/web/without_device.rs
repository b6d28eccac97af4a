//! Plans for a model and a device that need not exist. The modules for the CPU have none of this.

use serde_json::{Value, json};
use wasm_bindgen::prelude::*;

use super::planner::WebPlanner;
use super::supposed::Supposed;
use super::{Result, from_js};
use crate::error::Error;
use crate::limits::{DeviceLimits, Vendor};
use crate::model::config::{AutoencoderConfig, Family, LatentSpace, PaddingMode};
use crate::named::Named;
use crate::vae::{LoadOptions, Planner};

#[wasm_bindgen(js_class = Planner)]
impl WebPlanner {
    /// Makes a planner for a model and a device that need not exist. `preview_rate`: see
    /// [`crate::Checkpoint::at_preview_rate`]; `border`: see [`crate::Checkpoint::with_border`].
    pub fn suppose(options: &JsValue, preview_rate: bool, border: Option<String>) -> Result<Self> {
        let supposed: Supposed = from_js("plan options", options)?;
        let (mut config, limits) = (supposed.config()?, supposed.limits()?);
        if let Some(border) = border {
            config.set_border(PaddingMode::named(&border)?)?;
        }
        if preview_rate {
            config.set_preview_rate()?;
        }
        let Supposed { direction: directions, precision, unscaled, weights_on_host, .. } = supposed;
        let clips = supposed.clips && config.has_time();
        let options = LoadOptions { directions, precision, weights_on_host, clips };
        let planner = Planner::without_device(config, limits, options)?;
        Ok(Self { planner, space: LatentSpace::from_unscaled(unscaled) })
    }
}

impl Supposed {
    fn config(&self) -> crate::error::Result<AutoencoderConfig> {
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
    fn limits(&self) -> crate::error::Result<DeviceLimits> {
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
