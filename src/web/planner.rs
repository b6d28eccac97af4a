//! Plans for JavaScript.

use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::latents::latent_facts;
use super::options::WebOptions;
use super::vae::WebVae;
use super::{Result, to_js};
use crate::direction::Direction;
use crate::model::config::{AutoencoderConfig, LatentSpace};
use crate::plan::{Plan, PlanFacts, RunFacts};
use crate::tensor::Bytes;
use crate::vae::{Frames, Planner, Plans};

/// A planner of decodes and encodes, which also works while a job runs.
#[wasm_bindgen(js_name = Planner)]
#[derive(Debug)]
pub struct WebPlanner {
    pub(super) planner: Planner,
    pub(super) space: LatentSpace,
}

/// A plan, or the plan of the tiles that take the most memory.
#[derive(Serialize)]
struct PlanWithTimeline {
    #[serde(flatten)]
    facts: PlanFacts,
    timeline: Vec<RunFacts>,
}

impl PlanWithTimeline {
    fn of(plan: &Plan) -> Self {
        Self { facts: plan.facts(), timeline: plan.timeline() }
    }
}

/// The facts about the plan of a picture. Work and transfers are those of all tiles.
#[derive(Serialize)]
struct PictureFacts {
    #[serde(flatten)]
    plan: PlanWithTimeline,
    tiles: u64,
}

impl PictureFacts {
    fn of(plans: &Plans) -> Self {
        let PlanWithTimeline { facts, timeline } = PlanWithTimeline::of(plans.first());
        let facts = PlanFacts {
            macs: plans.macs(1),
            transferred_bytes: plans.transferred(1),
            predicted_seconds: plans.predicted_seconds(1),
            ..facts
        };
        Self { plan: PlanWithTimeline { facts, timeline }, tiles: plans.count() }
    }
}

/// The facts about the plans of a clip.
#[derive(Serialize)]
struct ClipFacts {
    predicted_peak_bytes: Bytes,
    host_bytes: Bytes,
    state_bytes: Bytes,
    width: u32,
    height: u32,
    /// The number of frames of every part but the first, which has one (as many, in an encode by
    /// TAEHV and a decode by LTX-2).
    frames: u32,
    /// The number of parts after that of the last latent, in which a decoder that sees later frames
    /// gives its last ones.
    parts_after: u32,
    /// The plan of the first part. In tiles, `first` and `next` are the plans of the tile that
    /// takes the most memory.
    first: PlanWithTimeline,
    /// The plan of every other part.
    next: PlanWithTimeline,
}

impl ClipFacts {
    fn of(plans: &Plans, direction: Direction) -> Self {
        let next = plans.later();
        let frames = match direction {
            Direction::Decode => next.result,
            Direction::Encode => next.input(),
        };
        Self {
            predicted_peak_bytes: plans.peak(),
            host_bytes: plans.host_bytes(),
            state_bytes: plans.state_bytes(),
            width: frames.size.width,
            height: frames.size.height,
            frames: frames.frames,
            parts_after: next.result.parts_after(),
            first: PlanWithTimeline::of(plans.first()),
            next: PlanWithTimeline::of(next),
        }
    }
}

impl WebPlanner {
    /// Returns the model's configuration.
    pub(super) fn config(&self) -> &AutoencoderConfig {
        self.planner.config()
    }
}

#[wasm_bindgen(js_class = Planner)]
impl WebPlanner {
    /// Returns facts about the latents: channels, pixels for each, and whether there is a time
    /// axis.
    pub fn latents(&self) -> JsValue {
        to_js(&latent_facts(self.planner.config(), self.space))
    }

    /// Plans a decode or an encode.
    pub fn plan(&self, options: &JsValue) -> Result<JsValue> {
        let request = WebOptions::read(options)?.request(self.planner.config(), self.space)?;
        let plans = self.planner.plan(&request)?;
        Ok(match request.frames {
            Frames::Image => to_js(&PictureFacts::of(&plans)),
            Frames::Clip => to_js(&ClipFacts::of(&plans, request.direction)),
        })
    }
}

#[wasm_bindgen(js_class = Vae)]
impl WebVae {
    /// Returns the planner of this model's decodes and encodes.
    pub fn planner(&self) -> WebPlanner {
        WebPlanner { planner: self.vae.planner().clone(), space: self.space }
    }
}
