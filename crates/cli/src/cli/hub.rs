//! Models of the Hugging Face Hub: resolves `--model hf:owner/name`, lists the files to download,
//! and downloads them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wgvae::files::Variant;
use wgvae::hub::{HubFile, HubModel, HubName, HubOptions, HubProgress};
use wgvae::{Bytes, Error, Result};

use super::stderr::{Phase, say};

/// Finds the hub's model that `path` names. Returns None for a path of the file system.
///
/// # Errors
/// For an invalid name, and see [`HubModel::find`].
pub(super) fn find(path: &Path, variant: Variant) -> Result<Option<HubModel>> {
    let Some(name) = path.to_str().filter(|name| HubName::is_meant(name)) else {
        return check_path(path).map(|()| None);
    };
    let model = HubModel::find(&name.parse()?, variant, &HubOptions::from_env())?;
    if let Some(why) = model.unreachable() {
        // The cache may have only fp16 weights where the hub has others, which would be preferred.
        let weights = model.files().iter().find(|file| !file.name.ends_with("config.json"));
        let weights = weights.map_or("", |file| &file.name);
        say(&format!("note: {name}: using the cache ({weights}), because the hub did not list the files: {why}"));
    }
    Ok(Some(model))
}

/// Fails if there is no such path. Asks whether `hf:` is missing before a name on the hub.
fn check_path(path: &Path) -> Result<()> {
    if path.try_exists().unwrap_or(true) {
        return Ok(());
    }
    let text = path.display().to_string();
    let hint = if names_repository(&text) { format!(" (did you mean hf:{text}?)") } else { String::new() };
    let found = format!("no such path{hint}");
    Err(Error::input(
        format!("model {text}"),
        "a .safetensors file, a folder, or hf:owner/name for one of the Hugging Face Hub",
        found,
    ))
}

/// True for `owner/name`, perhaps with a folder or a file, unless its first word is a folder here.
fn names_repository(text: &str) -> bool {
    let words: Vec<&str> = text.split('/').collect();
    words.len() > 1
        && words.iter().all(|word| !word.is_empty() && !word.starts_with('.'))
        && !Path::new(words[0]).exists()
}

/// Returns the local path of a model's files, downloading them if `path` is a name on the hub.
///
/// # Errors
/// See [`find`] and [`HubModel::download`].
pub(super) fn local(path: &Path, variant: Variant) -> Result<PathBuf> {
    let found = find(path, variant)?;
    found.map_or_else(|| Ok(path.to_owned()), |model| download(path, model))
}

/// Returns the local path of the files of `model`, which was found for `path`. Downloads the files
/// that the cache lacks.
///
/// # Errors
/// See [`HubModel::download`].
pub(super) fn download(path: &Path, mut model: HubModel) -> Result<PathBuf> {
    let missing: Vec<&HubFile> = model.files().iter().filter(|file| !file.kept).collect();
    if missing.is_empty() {
        return model.download(&mut |_| {});
    }
    let bytes: Bytes = missing.iter().filter_map(|file| file.bytes).sum();
    say(&format!("downloading {bytes} of {} ({} files)", path.display(), missing.len()));
    let phase = Phase::of_bytes("download");
    let bar = phase.bar();
    let opened = model.download(&mut |HubProgress { name, done, total }| bar.show(done.0, total.0, name))?;
    phase.end();
    Ok(opened)
}

/// Returns the facts that `inspect` prints about a model that is not downloaded yet.
pub(super) fn json_of(path: &Path, model: &HubModel) -> Value {
    let file = |file: &HubFile| json!({ "name": file.name, "bytes": file.bytes, "kept": file.kept });
    json!({
        "model": path.display().to_string(),
        "commit": model.commit(),
        "files": model.files().iter().map(file).collect::<Vec<_>>(),
        "download_bytes": download_bytes(model),
    })
}

/// Returns these facts as text.
pub(super) fn text_of(path: &Path, model: &HubModel) -> String {
    let mut text =
        format!("{}: {} would be downloaded, commit {}\n", path.display(), download_bytes(model), model.commit());
    for file in model.files() {
        let size = file.bytes.map_or_else(|| "unknown size".to_owned(), |bytes| bytes.to_string());
        let kept = if file.kept { ", in the cache" } else { "" };
        text.push_str(&format!("  {:>12}  {}{kept}\n", size, file.name));
    }
    text
}

fn download_bytes(model: &HubModel) -> Bytes {
    model.files().iter().filter(|file| !file.kept).filter_map(|file| file.bytes).sum()
}
