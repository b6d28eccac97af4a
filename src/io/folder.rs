//! Discovery of the files of a model at a path: a single file, a diffusers folder, or the folder of
//! a pipeline, with or without shards. Native only.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::checkpoint::Checkpoint;
use super::file::FileSource;
use super::shard_index::shard_names;
use super::source::ByteSource;
use super::weight_files::{PICKLES, Variant, file_name, has_ending, is_standard, pickle, weight_files};
use crate::error::{Error, Result};
use crate::model::config::{AutoencoderConfig, Family, is_supported_class};

impl Checkpoint {
    /// Opens a .safetensors file, a diffusers VAE folder, or the folder of a pipeline that has a
    /// VAE.
    ///
    /// A file with the name of weights in diffusers' folders (`diffusion_pytorch_model`) needs the
    /// config.json beside it as much as its folder does. Beside a file of another name, config.json
    /// adds what the weights do not tell, unless it contradicts them.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] for a folder without weights, with several candidates, or
    /// with Python pickles only; the errors of [`Self::from_sources`].
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_variant(path, Variant::Default).await
    }

    /// Opens the files of one `variant` of a model. See [`Self::open`].
    ///
    /// # Errors
    /// See [`Self::open`].
    pub async fn open_variant(path: impl AsRef<Path>, variant: Variant) -> Result<Self> {
        let ModelFiles { name, sources, config } = find(path.as_ref(), variant)?;
        match config {
            FoundConfig::None => Self::assemble(name, sources, None).await,
            FoundConfig::Stated(config) => Self::assemble(name, sources, Some(config)).await,
            FoundConfig::OfFile(config) => {
                let checkpoint = Self::assemble(name, sources, Some(config)).await?;
                log::info!("{}: using config.json beside it", checkpoint.name());
                Ok(checkpoint)
            }
            FoundConfig::Beside(config) => Self::assemble_beside(name, sources, config).await,
        }
    }
}

/// The files of one model.
struct ModelFiles {
    /// File or folder, for errors.
    name: String,
    sources: Vec<Box<dyn ByteSource>>,
    config: FoundConfig,
}

/// The config that came with the weights.
enum FoundConfig {
    /// No config, or the config of something else.
    None,
    /// A config in the model's folder. It must fit the weights.
    Stated(AutoencoderConfig),
    /// A config beside a file that the caller named, which has the name of weights in diffusers'
    /// folders. It must fit the weights.
    OfFile(AutoencoderConfig),
    /// A config, or the error of reading it, beside a file of another name. It may belong to
    /// another file of the folder.
    Beside(Result<AutoencoderConfig>),
}

/// Longest JSON file that is read, in bytes. The index of a model with very many shards has about
/// one million.
const MAX_JSON_BYTES: u64 = 16 << 20;

/// Finds and opens the files of the model at `path`.
fn find(path: &Path, variant: Variant) -> Result<ModelFiles> {
    let metadata = std::fs::metadata(path).map_err(|source| Error::io(path.display(), source))?;
    if metadata.is_dir() { find_in_folder(path, variant) } else { find_file(path) }
}

/// Opens a file that the caller named.
fn find_file(path: &Path) -> Result<ModelFiles> {
    if has_ending(path, PICKLES) {
        return Err(pickle(path));
    }
    let config = match path.parent().map(|folder| folder.join("config.json")) {
        Some(config) if is_standard(path) && config.is_file() => FoundConfig::OfFile(read_config(&config)?),
        Some(config) if config.is_file() && may_be_of_vae(&config) => FoundConfig::Beside(read_config(&config)),
        _ => FoundConfig::None,
    };
    Ok(ModelFiles { name: path.display().to_string(), sources: open_weights(&[path.to_owned()])?, config })
}

fn find_in_folder(folder: &Path, variant: Variant) -> Result<ModelFiles> {
    let name = file_name(&folder.canonicalize().unwrap_or_else(|_| folder.to_owned()));
    if let Some((owner, name)) = name.strip_prefix("models--").and_then(|id| id.split_once("--"))
        && folder.join("snapshots").is_dir()
    {
        let problem = format!(
            "expected a model's files, found a repository in the cache of the Hugging Face Hub: use the name hf:{owner}/{name}"
        );
        return Err(Error::format(folder.display(), problem));
    }
    let vae = folder.join("vae");
    let config = folder.join("config.json");
    if folder.join("model_index.json").is_file() || (!config.is_file() && vae.is_dir()) {
        if !vae.is_dir() {
            return Err(Error::format(folder.display(), "a pipeline's folder without a vae folder in it"));
        }
        return find_in_vae(&vae, variant);
    }
    find_in_vae(folder, variant)
}

fn find_in_vae(folder: &Path, variant: Variant) -> Result<ModelFiles> {
    let config = folder.join("config.json");
    let config = if config.is_file() { FoundConfig::Stated(read_config(&config)?) } else { FoundConfig::None };
    let weights = find_weights(folder, variant)?;
    Ok(ModelFiles { name: folder.display().to_string(), sources: open_weights(&weights)?, config })
}

/// Pipelines by their class name in diffusers, and the family of their latents. They share FLUX.2's
/// VAE.
const PIPELINES: &[(&str, &str)] = &[("Ideogram4Pipeline", "ideogram4"), ("BriaFibo2Pipeline", "fibo2")];

/// Reads config.json of a VAE, and takes the packing of its latents from the pipeline around it.
fn read_config(path: &Path) -> Result<AutoencoderConfig> {
    let config = AutoencoderConfig::from_json(&read_text(path)?)?;
    if config.batch_norm_eps.is_none() {
        return Ok(config);
    }
    let folder = path.parent().filter(|folder| folder.file_name().is_some_and(|name| name == "vae"));
    let class = folder.and_then(Path::parent).and_then(|pipeline| class_name(&pipeline.join("model_index.json")));
    let found = PIPELINES.iter().find(|(pipeline, _)| class.as_deref() == Some(pipeline));
    let Some((_, family)) = found else { return Ok(config) };
    Ok(AutoencoderConfig { packing: Family::find(family)?.config().packing, ..config })
}

/// Lists the weight files in `folder`, or the index of its shards.
fn find_weights(folder: &Path, variant: Variant) -> Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|source| Error::io(folder.display(), source))? {
        names.push(file_name(&entry.map_err(|source| Error::io(folder.display(), source))?.path()));
    }
    Ok(weight_files(folder, names, variant)?.iter().map(|name| folder.join(name)).collect())
}

/// Opens weight files. For an index, opens all the shards that it lists.
fn open_weights(paths: &[PathBuf]) -> Result<Vec<Box<dyn ByteSource>>> {
    let mut sources: Vec<Box<dyn ByteSource>> = Vec::new();
    for path in paths {
        if has_ending(path, &["json"]) {
            sources.extend(open_shards(path)?);
        } else {
            sources.push(Box::new(FileSource::open(path)?));
        }
    }
    Ok(sources)
}

fn open_shards(path: &Path) -> Result<Vec<Box<dyn ByteSource>>> {
    let mut sources: Vec<Box<dyn ByteSource>> = Vec::new();
    for shard in shard_names(&path.display().to_string(), &read_text(path)?)? {
        let file = path.with_file_name(&shard);
        if !file.is_file() {
            return Err(Error::format(path.display(), format!("shard \"{shard}\" is missing")));
        }
        sources.push(Box::new(FileSource::open(&file)?));
    }
    Ok(sources)
}

/// True if the config at `path` describes a VAE, or nobody can tell because it is no JSON.
fn may_be_of_vae(path: &Path) -> bool {
    let is_json = read_text(path).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(&text).is_ok());
    !is_json || class_name(path).is_some_and(|class| is_supported_class(&class))
}

/// Returns `_class_name` of the config at `path`, if it can be read. The file may belong to
/// anything, so its other fields are ignored.
fn class_name(path: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Config {
        _class_name: Option<String>,
    }
    serde_json::from_str::<Config>(&read_text(path).ok()?).ok()?._class_name
}

fn read_text(path: &Path) -> Result<String> {
    let bytes = std::fs::metadata(path).map_err(|source| Error::io(path.display(), source))?.len();
    if bytes > MAX_JSON_BYTES {
        let problem = format!("expected a JSON file of at most {MAX_JSON_BYTES} bytes, found {bytes}");
        return Err(Error::format(path.display(), problem));
    }
    std::fs::read_to_string(path).map_err(|source| Error::io(path.display(), source))
}
