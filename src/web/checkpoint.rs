//! Models for JavaScript.

use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::source::{JsSource, Rejection, Source};
use super::{Result, to_js};
use crate::io::{ByteSource, Checkpoint};

/// A part of one of a model's files.
#[derive(Serialize)]
struct Read {
    source: usize,
    offset: u64,
    length: u64,
}

/// A model whose headers were read.
#[wasm_bindgen(js_name = Checkpoint)]
#[derive(Debug)]
pub struct WebCheckpoint {
    pub(super) checkpoint: Checkpoint,
    pub(super) rejection: Rejection,
}

#[wasm_bindgen(js_class = Checkpoint)]
impl WebCheckpoint {
    /// Reads the headers of one file, or of all its shards. `config` is the text of config.json.
    pub async fn open(sources: Vec<Source>, config: Option<String>, family: Option<String>) -> Result<Self> {
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
        crate::vae::check_decoder(&checkpoint)?;
        Ok(Self { checkpoint, rejection })
    }

    /// The parts of the files that loading reads, in its order.
    pub fn reads(&self) -> Result<JsValue> {
        let reads = crate::vae::weight_reads(&self.checkpoint, crate::vae::Directions::Decode)?;
        let reads = reads.into_iter().map(|(source, offset, length)| Read { source, offset, length });
        Ok(to_js(&reads.collect::<Vec<_>>()))
    }

    /// What it is: files, layout, network, scale of the latents.
    pub fn info(&self) -> JsValue {
        to_js(&self.checkpoint.facts())
    }
}
