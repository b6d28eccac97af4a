//! Planning for JavaScript.

use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::decode::WebDecodeOptions;
use super::encode::WebEncodeOptions;
use super::vae::WebVae;
use super::{Result, from_js, to_js};
use crate::plan::{Plan, PlanFacts, RunFacts};
use crate::tensor::Size;
use crate::vae::Planner;

/// Plans decodes and encodes, also while one runs.
#[wasm_bindgen(js_name = Planner)]
#[derive(Debug)]
pub struct WebPlanner {
    pub(super) planner: Planner,
}

#[derive(Serialize)]
struct PlanWithTimeline {
    #[serde(flatten)]
    facts: PlanFacts,
    timeline: Vec<RunFacts>,
}

fn plan_js(plan: &Plan) -> JsValue {
    to_js(&PlanWithTimeline { facts: plan.facts(), timeline: plan.timeline() })
}

#[wasm_bindgen(js_class = Planner)]
impl WebPlanner {
    /// Plans a decode of so many latents across and down.
    pub fn plan(&self, width: u32, height: u32, options: &JsValue) -> Result<JsValue> {
        let options: WebDecodeOptions = from_js("plan options", options)?;
        Ok(plan_js(&self.planner.plan(Size { width, height }, &options.options())?))
    }

    /// Plans an encode of an image of so many pixels across and down.
    #[wasm_bindgen(js_name = planEncode)]
    pub fn plan_encode(&self, width: u32, height: u32, options: &JsValue) -> Result<JsValue> {
        let options: WebEncodeOptions = from_js("plan options", options)?;
        Ok(plan_js(&self.planner.plan_encode(Size { width, height }, &options.options())?))
    }
}

#[wasm_bindgen(js_class = Vae)]
impl WebVae {
    /// What plans its decodes and encodes.
    pub fn planner(&self) -> WebPlanner {
        WebPlanner { planner: self.vae.planner().clone() }
    }
}
