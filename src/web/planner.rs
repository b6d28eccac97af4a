//! Plans for JavaScript: for a model on a device, or for a model and a device that need not exist.

use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::latents::latent_facts;
use super::options::WebOptions;
use super::supposed::Supposed;
use super::vae::WebVae;
use super::{Result, from_js, to_js};
use crate::model::config::LatentSpace;
use crate::plan::{Plan, PlanFacts, RunFacts};
use crate::tensor::Size;
use crate::vae::{LoadOptions, Planner};

/// A planner of decodes and encodes, which also works while a job runs.
#[wasm_bindgen(js_name = Planner)]
#[derive(Debug)]
pub struct WebPlanner {
    pub(super) planner: Planner,
    pub(super) space: LatentSpace,
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
    /// Makes a planner for a model and a device that need not exist. `preview_rate`: see
    /// [`crate::Checkpoint::at_preview_rate`]; `border`: see [`crate::Checkpoint::with_border`].
    pub fn suppose(options: &JsValue, preview_rate: bool, border: Option<String>) -> Result<Self> {
        let supposed: Supposed = from_js("plan options", options)?;
        let (mut config, limits) = (supposed.config()?, supposed.limits()?);
        if let Some(border) = border {
            config.set_border(border.parse()?)?;
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
