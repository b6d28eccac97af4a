//! Choice of a model's weight files among the files of a folder. Native only.

use std::path::Path;

use super::safetensors::how_to_convert;
use crate::error::{Error, Result};

/// Choice between several precisions of the same weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Variant {
    /// Plain files, or files marked fp16 if there are no others.
    #[default]
    Default,
    /// Files marked fp16.
    Fp16,
}

/// Name of weight files in diffusers' folders, without the ending.
const STEM: &str = "diffusion_pytorch_model";

/// Endings of plain weights, as an index of shards or whole. diffusers looks for the index first.
const PLAIN: &[&str] = &[".safetensors.index.json", ".safetensors"];

/// Endings of fp16 weights, in diffusers' order too.
const FP16: &[&str] = &[".fp16.safetensors.index.json", ".safetensors.index.fp16.json", ".fp16.safetensors"];

/// Endings of Python pickles, which can run code when opened.
pub(super) const PICKLES: &[&str] = &["bin", "ckpt", "pt", "pth"];

/// Chooses the weight files, or the index of shards, among the files `names` of a folder. `folder`
/// is for errors.
///
/// # Errors
/// [`Error::Format`] if there are none, or several without the name that diffusers uses.
pub(crate) fn weight_files(folder: &Path, mut names: Vec<String>, variant: Variant) -> Result<Vec<String>> {
    let standard = |endings: &[&str]| {
        let wanted = endings.iter().map(|ending| format!("{STEM}{ending}"));
        wanted.into_iter().find(|wanted| names.contains(wanted))
    };
    let found = match variant {
        Variant::Default => standard(PLAIN).or_else(|| standard(FP16)),
        Variant::Fp16 => {
            return standard(FP16)
                .map(|name| vec![name])
                .ok_or_else(|| Error::format(folder.display(), format!("no {STEM}.fp16.safetensors in this folder")));
        }
    };
    if let Some(name) = found {
        return Ok(vec![name]);
    }
    names.sort();
    let weights: Vec<&String> = names.iter().filter(|name| has_ending(Path::new(name), &["safetensors"])).collect();
    match *weights {
        [only] => Ok(vec![only.clone()]),
        [decoder, encoder] if are_halves(encoder, decoder) => Ok(vec![encoder.clone(), decoder.clone()]),
        [] => Err(match names.iter().find(|name| has_ending(Path::new(name), PICKLES)) {
            Some(name) => pickle(&folder.join(name)),
            None if names.is_empty() => Error::format(folder.display(), "the folder is empty"),
            None => Error::format(folder.display(), "no .safetensors file in this folder"),
        }),
        [first, second, ..] => Err(Error::format(
            folder.display(),
            format!(
                "{} .safetensors files and none is {STEM}.safetensors: name one of them ({first}, {second}, ...)",
                weights.len(),
            ),
        )),
    }
}

/// True if the file at `path` has the name of weights in diffusers' folders: whole, a shard, or the
/// index of shards.
pub(super) fn is_standard(path: &Path) -> bool {
    file_name(path).strip_prefix(STEM).is_some_and(|rest| rest.starts_with(['.', '-']))
}

/// True if two files are the halves of one model, such as TAESD's `taesd_encoder.safetensors` and
/// `taesd_decoder.safetensors`.
fn are_halves(encoder: &str, decoder: &str) -> bool {
    encoder.contains("encoder") && encoder.replace("encoder", "decoder") == decoder
}

pub(super) fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension().is_some_and(|found| endings.iter().any(|ending| found.eq_ignore_ascii_case(ending)))
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Makes the error for a Python pickle, with code that converts it.
pub(super) fn pickle(path: &Path) -> Error {
    let converted = path.with_extension("safetensors");
    let problem = "a Python pickle, which can run code when opened: convert it to .safetensors, in Python with torch and safetensors";
    let code = how_to_convert(&path.display().to_string(), &converted.display().to_string());
    Error::format(path.display(), format!("{problem}: {code}"))
}
