//! Which files make up the model at a path: a single file, a diffusers folder, a pipeline's folder, with or without
//! shards. Native only.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::checkpoint::Checkpoint;
use super::file::FileSource;
use super::safetensors::how_to_convert;
use super::shard_index::shard_names;
use super::source::ByteSource;
use crate::error::{Error, Result};
use crate::model::config::{AutoencoderConfig, is_supported_class};

/// Which of several precisions of the same weights to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Variant {
    /// The plain files; those marked fp16 if there are no others.
    #[default]
    Default,
    /// The files marked fp16.
    Fp16,
}

impl Checkpoint {
    /// Opens a .safetensors file, a diffusers VAE folder, or the folder of a pipeline with a VAE in it.
    pub async fn open(path: impl AsRef<Path>, variant: Variant) -> Result<Self> {
        let ModelFiles { name, sources, config } = find(path.as_ref(), variant)?;
        match config {
            FoundConfig::None => Self::assemble(name, sources, None).await,
            FoundConfig::Stated(config) => Self::assemble(name, sources, Some(config)).await,
            FoundConfig::Beside(config) => {
                let mut checkpoint = Self::assemble(name, sources, None).await?;
                match checkpoint.difference(&config) {
                    None => checkpoint.settle(config, "config.json beside the file".to_owned())?,
                    Some(field) => {
                        log::warn!("{}: config.json beside it describes another model ({field})", checkpoint.name());
                    }
                }
                Ok(checkpoint)
            }
        }
    }
}

/// The files of one model.
struct ModelFiles {
    /// The file or folder, for errors.
    name: String,
    sources: Vec<Box<dyn ByteSource>>,
    config: FoundConfig,
}

/// Config that came with the weights.
enum FoundConfig {
    /// None, or one of something else.
    None,
    /// Belongs to the weights: it must fit them.
    Stated(AutoencoderConfig),
    /// Lies beside a file that was named itself. Holds if it fits.
    Beside(AutoencoderConfig),
}

/// Weight files in diffusers' folders, without the ending.
const STEM: &str = "diffusion_pytorch_model";

/// Endings of the plain weights, whole or as the index of shards.
const PLAIN: &[&str] = &[".safetensors", ".safetensors.index.json"];

/// The same for fp16.
const FP16: &[&str] = &[".fp16.safetensors", ".fp16.safetensors.index.json", ".safetensors.index.fp16.json"];

/// Endings of Python pickles, which can run code when opened.
const PICKLES: &[&str] = &["bin", "ckpt", "pt", "pth"];

/// Longest JSON file read, in bytes. The index of a model with very many shards has about one million.
const MAX_JSON_BYTES: u64 = 16 << 20;

/// Finds and opens the files of the model at `path`.
fn find(path: &Path, variant: Variant) -> Result<ModelFiles> {
    let metadata = std::fs::metadata(path).map_err(|source| io_error(path, source))?;
    if metadata.is_dir() { find_in_folder(path, variant) } else { find_file(path) }
}

/// A file that the caller named itself.
fn find_file(path: &Path) -> Result<ModelFiles> {
    if has_ending(path, PICKLES) {
        return Err(pickle(path));
    }
    let config = match path.parent().map(|folder| folder.join("config.json")) {
        Some(config) if class_name(&config).is_some_and(|class| is_supported_class(&class)) => {
            FoundConfig::Beside(AutoencoderConfig::from_json(&read_text(&config)?)?)
        }
        _ => FoundConfig::None,
    };
    Ok(ModelFiles { name: path.display().to_string(), sources: open_weights(&[path.to_owned()])?, config })
}

fn find_in_folder(folder: &Path, variant: Variant) -> Result<ModelFiles> {
    let vae = folder.join("vae");
    let config = folder.join("config.json");
    if folder.join("model_index.json").is_file() || (!config.is_file() && vae.is_dir()) {
        if !vae.is_dir() {
            return Err(format_error(folder, "a pipeline's folder without a vae folder in it"));
        }
        return find_in_vae(&vae, variant);
    }
    find_in_vae(folder, variant)
}

fn find_in_vae(folder: &Path, variant: Variant) -> Result<ModelFiles> {
    let config = folder.join("config.json");
    let config = if config.is_file() {
        FoundConfig::Stated(AutoencoderConfig::from_json(&read_text(&config)?)?)
    } else {
        FoundConfig::None
    };
    let weights = find_weights(folder, variant)?;
    Ok(ModelFiles { name: folder.display().to_string(), sources: open_weights(&weights)?, config })
}

/// The weight files or the index in `folder` to open.
fn find_weights(folder: &Path, variant: Variant) -> Result<Vec<PathBuf>> {
    let standard = |endings: &[&str]| {
        let paths = endings.iter().map(|ending| folder.join(format!("{STEM}{ending}")));
        paths.into_iter().find(|path| path.is_file())
    };
    let found = match variant {
        Variant::Default => standard(PLAIN).or_else(|| standard(FP16)),
        Variant::Fp16 => {
            return standard(FP16)
                .map(|path| vec![path])
                .ok_or_else(|| format_error(folder, &format!("no {STEM}.fp16.safetensors in this folder")));
        }
    };
    if let Some(path) = found {
        return Ok(vec![path]);
    }

    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|source| io_error(folder, source))? {
        files.push(entry.map_err(|source| io_error(folder, source))?.path());
    }
    files.sort();
    let weights: Vec<&PathBuf> = files.iter().filter(|path| has_ending(path, &["safetensors"])).collect();
    match *weights {
        [only] => Ok(vec![only.clone()]),
        [decoder, encoder] if are_halves(encoder, decoder) => Ok(vec![encoder.clone(), decoder.clone()]),
        [] => Err(match files.iter().find(|path| has_ending(path, PICKLES)) {
            Some(path) => pickle(path),
            None if files.is_empty() => format_error(folder, "the folder is empty"),
            None => format_error(folder, "no .safetensors file in this folder"),
        }),
        [first, second, ..] => Err(format_error(
            folder,
            &format!(
                "{} .safetensors files and none is {STEM}.safetensors: name one of them ({}, {}, ...)",
                weights.len(),
                file_name(first),
                file_name(second)
            ),
        )),
    }
}

/// Whether two files are the halves of one model, as TAESD's are: `taesd_encoder.safetensors` and `taesd_decoder.safetensors`.
fn are_halves(encoder: &Path, decoder: &Path) -> bool {
    let (encoder, decoder) = (file_name(encoder), file_name(decoder));
    encoder.contains("encoder") && encoder.replace("encoder", "decoder") == decoder
}

/// Opens weight files, or of an index all the shards that it lists.
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
            return Err(format_error(path, &format!("shard \"{shard}\" is missing")));
        }
        sources.push(Box::new(FileSource::open(&file)?));
    }
    Ok(sources)
}

/// `_class_name` of the config at `path`, if there is a readable one. It may be of anything: the rest of it is passed over.
fn class_name(path: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Config {
        _class_name: Option<String>,
    }
    serde_json::from_str::<Config>(&read_text(path).ok()?).ok()?._class_name
}

fn read_text(path: &Path) -> Result<String> {
    let bytes = std::fs::metadata(path).map_err(|source| io_error(path, source))?.len();
    if bytes > MAX_JSON_BYTES {
        return Err(format_error(path, &format!("{bytes} bytes are too many for a JSON file")));
    }
    std::fs::read_to_string(path).map_err(|source| io_error(path, source))
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension().is_some_and(|found| endings.iter().any(|ending| found.eq_ignore_ascii_case(ending)))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn pickle(path: &Path) -> Error {
    let converted = path.with_extension("safetensors");
    let problem = "a Python pickle, which can run code when opened: convert it to .safetensors, in Python with torch and safetensors";
    let code = how_to_convert(&path.display().to_string(), &converted.display().to_string());
    format_error(path, &format!("{problem}: {code}"))
}

fn format_error(path: &Path, problem: &str) -> Error {
    Error::Format { file: path.display().to_string(), problem: problem.to_owned() }
}

fn io_error(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.display().to_string(), source }
}
