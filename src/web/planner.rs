//! Plans for JavaScript: for a model on a device, or for a model and a device that need not exist.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use wasm_bindgen::prelude::*;

use super::latents::latent_facts;
use super::options::WebOptions;
use super::vae::WebVae;
use super::{Result, from_js, to_js};
use crate::direction::Directions;
use crate::error::Error;
use crate::limits::{DeviceLimits, Vendor};
use crate::model::config::{AutoencoderConfig, Family, LatentSpace};
use crate::plan::{Plan, PlanFacts, RunFacts};
use crate::tensor::Size;
use crate::vae::{LoadOptions, Planner, Precision};

/// A planner of decodes and encodes, which also works while a job runs.
#[wasm_bindgen(js_name = Planner)]
#[derive(Debug)]
pub struct WebPlanner {
    pub(super) planner: Planner,
    pub(super) space: LatentSpace,
}

/// A model and a device that need not exist. Also the options to load a model that does: code to
/// read another structure would add to the download of a page.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Supposed {
    family: Option<String>,
    /// The text of config.json.
    config: Option<String>,
    /// The directions whose weights are loaded.
    direction: Directions,
    /// True to plan clips. Ignored for a network without a time axis.
    clips: bool,
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

/// A plan, or the plan of the tiles that take the most memory.
#[derive(Serialize)]
pub(super) struct PlanWithTimeline {
    #[serde(flatten)]
    facts: PlanFacts,
    timeline: Vec<RunFacts>,
}

impl PlanWithTimeline {
    pub(super) fn of(plan: &Plan) -> Self {
        Self { facts: plan.facts(), timeline: plan.timeline() }
    }
}

/// The facts about the plan of a picture's decode.
#[derive(Serialize)]
struct PictureFacts {
    #[serde(flatten)]
    plan: PlanWithTimeline,
    tiles: u64,
}

#[wasm_bindgen(js_class = Planner)]
impl WebPlanner {
    /// Makes a planner for a model and a device that need not exist.
    pub fn suppose(options: &JsValue) -> Result<Self> {
        let supposed: Supposed = from_js("plan options", options)?;
        let (config, limits) = (supposed.config()?, supposed.limits()?);
        let Supposed { direction: directions, precision, unscaled, weights_on_host, .. } = supposed;
        let clips = supposed.clips && config.has_time();
        let options = LoadOptions { directions, precision, weights_on_host, clips };
        let planner = Planner::without_device(config, limits, options)?;
        Ok(Self { planner, space: LatentSpace::from_unscaled(unscaled) })
    }

    /// Returns facts about the latents: channels, pixels for each, and whether there is a time
    /// axis.
    pub fn latents(&self) -> JsValue {
        to_js(&latent_facts(self.planner.config(), self.space))
    }

    /// Plans a decode of `width` by `height` latents. Work and transfers are those of all tiles.
    pub fn plan(&self, width: u32, height: u32, options: &JsValue) -> Result<JsValue> {
        let options = WebOptions::read(options)?;
        let output = options.image();
        let options = options.decode(self.planner.config())?;
        let plans = self.planner.plan(&options.request(Size { width, height }, self.space, output))?;
        let PlanWithTimeline { facts, timeline } = PlanWithTimeline::of(plans.first());
        let facts = PlanFacts {
            macs: plans.macs(1),
            transferred_bytes: plans.transferred(1),
            predicted_seconds: plans.predicted_seconds(1),
            ..facts
        };
        Ok(to_js(&PictureFacts { plan: PlanWithTimeline { facts, timeline }, tiles: plans.count() }))
    }

    /// Plans an encode of an image of `width` by `height` pixels.
    #[wasm_bindgen(js_name = planEncode)]
    pub fn plan_encode(&self, width: u32, height: u32, options: &JsValue) -> Result<JsValue> {
        let options = WebOptions::read(options)?;
        let plans = self.planner.plan(&options.encode().request(Size { width, height }))?;
        Ok(to_js(&PlanWithTimeline::of(plans.first())))
    }
}

#[wasm_bindgen(js_class = Vae)]
impl WebVae {
    /// Returns the planner of this model's decodes and encodes.
    pub fn planner(&self) -> WebPlanner {
        WebPlanner { planner: self.vae.planner().clone(), space: self.space }
    }
}
