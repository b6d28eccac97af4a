//! Model files for JavaScript.

use serde::Serialize;
use serde_json::{Value, json};
use wasm_bindgen::prelude::*;

use super::latents::latent_facts;
use super::source::{JsSource, Rejection, Source};
use super::{Result, to_js};
use crate::direction::Directions;
use crate::error::Error;
use crate::io::{ByteSource, Checkpoint};
use crate::model::config::{LatentSpace, PaddingMode};
use crate::named::Named;

/// A part of one of a model's files, in bytes.
#[derive(Serialize)]
struct Read {
    source: usize,
    offset: u64,
    length: u64,
}

/// A model whose file headers were read.
#[wasm_bindgen(js_name = Checkpoint)]
#[derive(Debug)]
pub struct WebCheckpoint {
    pub(super) checkpoint: Checkpoint,
    pub(super) rejection: Rejection,
    /// The directions that it was opened for.
    pub(super) directions: Directions,
    /// True if it was opened for clips.
    pub(super) clips: bool,
    has_config: bool,
}

#[wasm_bindgen(js_class = Checkpoint)]
impl WebCheckpoint {
    /// Reads the headers of one file, or of all its shards. `config` is the text of config.json.
    /// `directions` says which weights are needed: `decode`, `encode` or `both`; for clips with
    /// `clips`, else for images. `preview_rate`: see [`Checkpoint::at_preview_rate`]; `border`: see
    /// [`Checkpoint::with_border`].
    pub async fn open(
        sources: Vec<Source>,
        config: Option<String>,
        family: Option<String>,
        directions: &str,
        clips: bool,
        preview_rate: bool,
        border: Option<String>,
    ) -> Result<Self> {
        let directions = parsed(directions)?;
        let rejection = Rejection::default();
        let sources: Vec<Box<dyn ByteSource>> = sources
            .into_iter()
            .map(|source| Box::new(JsSource::new(source, &rejection)) as Box<dyn ByteSource>)
            .collect();
        let opened = Checkpoint::from_sources(sources, config.as_deref()).await;
        let mut checkpoint = rejection.pass_on(opened)?;
        if let Some(family) = family {
            checkpoint = checkpoint.with_family(&family)?;
        }
        if let Some(border) = border {
            checkpoint = checkpoint.with_border(PaddingMode::named(&border)?)?;
        }
        if preview_rate {
            checkpoint = checkpoint.at_preview_rate()?;
        }
        // Reports missing tensors before anything is loaded.
        checkpoint.weight_reads(directions, clips)?;
        Ok(Self { checkpoint, rejection, directions, clips, has_config: config.is_some() })
    }

    /// Returns the parts of the files that loading reads, in its order.
    pub fn reads(&self) -> Result<JsValue> {
        let reads = self.checkpoint.weight_reads(self.directions, self.clips)?;
        let reads = reads.into_iter().map(|(source, offset, length)| Read { source, offset, length });
        Ok(to_js(&reads.collect::<Vec<_>>()))
    }

    /// Returns facts about the model: files, layout, network, scale of the latents.
    pub fn info(&self) -> JsValue {
        let mut info = self.checkpoint.facts();
        info["assumed"] = json!(if self.has_config { None } else { self.checkpoint.assumed_groups() });
        let latents = latent_facts(self.checkpoint.config(), LatentSpace::Model);
        if let (Value::Object(info), Value::Object(latents)) = (&mut info, latents) {
            info.extend(latents);
        }
        to_js(&info)
    }
}

fn parsed(directions: &str) -> Result<Directions> {
    serde_json::from_value(directions.into()).map_err(|problem| {
        let expected = "decode, encode or both".to_owned();
        Error::input("directions", expected, problem.to_string()).into()
    })
}
