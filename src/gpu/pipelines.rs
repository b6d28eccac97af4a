//! Compiles each kernel once. The cache's key is the final WGSL text, so no part of the key can be
//! forgotten, hashed wrongly or collide.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use web_time::Instant;

use super::kernel_text::{KernelText, Pipeline};
use super::platform::compile_all;
use super::{Gpu, Preparing};
use crate::error::{Error, Result};
use crate::kernels::Variant;

#[derive(Debug, Default)]
pub(super) struct Pipelines {
    cache: Mutex<HashMap<String, Arc<Pipeline>>>,
    time: Mutex<Duration>,
}

impl Pipelines {
    pub(super) fn compiled(&self) -> (usize, Duration) {
        (self.cache().len(), *self.time.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the pipelines of `variants`. Compiles those that are not in the cache.
    pub(super) async fn get(&self, gpu: &Gpu, variants: &[Variant]) -> Result<Vec<Arc<Pipeline>>> {
        let sources = variants.iter().map(KernelText::new).collect::<Result<Vec<_>>>()?;
        let mut missing: Vec<&KernelText> = Vec::new();
        for source in &sources {
            if self.known(source).is_none() && missing.iter().all(|other| other.text != source.text) {
                missing.push(source);
            }
        }
        let total = missing.len();
        if total > 0 {
            let start = Instant::now();
            let pipelines = compile_all(gpu, &missing).await?;
            *self.time.lock().unwrap_or_else(PoisonError::into_inner) += start.elapsed();
            let is_cut = pipelines.len() < total;
            let texts = missing.into_iter().map(|source| source.text.clone());
            self.cache().extend(texts.zip(pipelines.into_iter().map(Arc::new)));
            if is_cut {
                return Err(Error::Cancelled);
            }
            gpu.tell(Preparing::Kernels { done: total, total, kernel: "" });
        }
        Ok(sources.iter().filter_map(|source| self.known(source)).collect())
    }

    fn known(&self, source: &KernelText) -> Option<Arc<Pipeline>> {
        self.cache().get(&source.text).map(Arc::clone)
    }

    fn cache(&self) -> MutexGuard<'_, HashMap<String, Arc<Pipeline>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
