//! Models that can be measured: the embedded one, published families with made-up weights, and
//! files.

use std::path::PathBuf;

use wgvae::config::{FAMILIES, Family};
use wgvae::demo;
use wgvae::{Checkpoint, Error, Result};
use wgvae_memory_report::WeightSource;

use super::made_up;
use crate::cli::open;

/// Name of the embedded model.
const DEMO: &str = "demo";

/// Model as the command line names it.
#[derive(Debug, Clone)]
pub(super) enum Model {
    /// The embedded model.
    Demo,
    /// Published family, with made-up weights.
    Family(&'static Family),
    /// File or folder.
    Path(PathBuf),
}

impl Model {
    /// Finds the model that `name` means. Names of families come before names of files.
    pub(super) fn find(name: &str) -> Result<Self> {
        if name == DEMO {
            return Ok(Self::Demo);
        }
        if let Ok(family) = Family::find(name) {
            return Ok(Self::Family(family));
        }
        let path = PathBuf::from(name);
        if path.exists() {
            return Ok(Self::Path(path));
        }
        let families: Vec<&str> = FAMILIES.iter().map(|family| family.name).collect();
        Err(Error::input("--models", format!("{DEMO}, {}, or an existing file or folder", families.join(", ")), name))
    }

    /// Opens the model's files. A family is opened as if it had files.
    pub(super) async fn open(&self) -> Result<Checkpoint> {
        match self {
            Self::Demo => demo::checkpoint().await,
            Self::Family(family) => made_up::checkpoint(family).await,
            Self::Path(path) => open(path, None, None).await,
        }
    }

    /// Returns the model's name in a report. Of a path this is only the last part, because the rest
    /// is private.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Demo => DEMO.to_owned(),
            Self::Family(family) => family.name.to_owned(),
            Self::Path(path) => path
                .canonicalize()
                .ok()
                .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
                .unwrap_or_else(|| "file".to_owned()),
        }
    }

    /// Returns the source of the weights.
    pub(super) fn weights(&self) -> WeightSource {
        match self {
            Self::Demo => WeightSource::Embedded,
            Self::Family(_) => WeightSource::Random,
            Self::Path(_) => WeightSource::File,
        }
    }
}
