//! Names of tensors in a checkpoint, translated by tables to the names of diffusers. Kinds of VAE
//! that are known but not supported are an error that names the kind.
//!
//! Each network has two spellings: that of diffusers, and that of the code that trained it
//! ([`Layout`]). A file of a whole pipeline may put a prefix before either.

mod dc;
mod pattern;
mod sign;
mod spellings;
mod unsupported;

use std::collections::BTreeMap;
use std::fmt;

use self::pattern::{Numbering, rewrite};
use self::spellings::{SPELLINGS, Spelling};
use crate::error::{Error, Result};
use crate::ordered::Map;

/// Naming scheme of a checkpoint's tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// `decoder.up_blocks.0.resnets.0.conv1.weight`; level 0 is the lowest resolution.
    Diffusers,
    /// `decoder.up.3.block.0.conv1.weight`; level 0 is the highest resolution, or the lowest in
    /// HunyuanImage 2.1's decoder.
    Ldm,
    /// `3.conv.0.weight`, with encoder and decoder in separate files. In one file:
    /// `taesd_decoder.3.conv.0.weight` or `decoder.3.conv.0.weight`.
    Taesd,
    /// `decoder.upsamples.0.residual.2.weight`; blocks are numbered across all levels.
    Wan,
    /// `decoder.up_blocks.2.res_blocks.0.conv1.conv.weight`; levels and the size changes between
    /// them are numbered together.
    Ltx,
    /// `decoder.stages.3.op_list.1.context_module.main.qkv.conv.weight`, of DC-AE.
    DcAe,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Diffusers => "diffusers",
            Self::Ldm => "LDM",
            Self::Taesd => "TAESD",
            Self::Wan => "Wan",
            Self::Ltx => "LTX",
            Self::DcAe => "DC-AE",
        })
    }
}

/// The tensor names of a checkpoint's VAE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Naming scheme of the file.
    pub layout: Layout,
    /// Names as written, by name in diffusers' spelling.
    pub written: BTreeMap<String, String>,
    /// Names, as written, of tensors that begin like the encoder but are no part of the network.
    pub strange_in_encoder: Vec<String>,
}

/// Finds the VAE among the tensors `shapes` (name as written -> shape) of the checkpoint `file`,
/// and translates its names.
///
/// Tensors of other parts of a pipeline and leftovers of training are ignored. An unknown tensor in
/// the decoder is an error, because the image would change without it. An unknown tensor in the
/// encoder is only noted, because decodes do not need it.
///
/// # Errors
/// [`Error::Format`] for an unsupported kind of VAE, with its likely name, for an unknown tensor in
/// the decoder, and for two tensors of the same translated name.
pub fn translate(file: &str, shapes: &BTreeMap<String, Vec<u64>>) -> Result<Names> {
    let fail = |problem| Error::Format { file: file.to_owned(), problem };
    let prefix = find_prefix(shapes);
    let inside: Map<&str, &[u64]> = shapes
        .iter()
        .filter_map(|(name, shape)| Some((name.strip_prefix(prefix)?, shape.as_slice())))
        .filter(|(name, _)| !is_leftover(name))
        .collect();
    unsupported::check(&inside).map_err(fail)?;
    let spelling = find_spelling(&inside).map_err(fail)?;

    let numbering = Numbering::of(inside.keys().copied());
    let mut names = Names { layout: spelling.layout, written: BTreeMap::new(), strange_in_encoder: Vec::new() };
    let [encoder, decoder] = spelling.halves;
    for name in inside.keys() {
        let as_written = format!("{prefix}{name}");
        let Some(translated) = rewrite(spelling.table, name, &numbering) else {
            if is_in(decoder, name) {
                return Err(fail(not_part(&as_written, spelling.network, "decoder")));
            }
            if is_in(encoder, name) {
                names.strange_in_encoder.push(as_written);
            }
            continue;
        };
        if let Some(other) = names.written.get(&translated) {
            return Err(fail(format!("tensors \"{other}\" and \"{as_written}\" are both \"{translated}\"")));
        }
        names.written.insert(translated, as_written);
    }
    Ok(names)
}

/// Returns the prefix that tells encoder names from decoder names. It is empty, except in files of
/// one half: TAESD's own, whose names begin with a number, and BFL's small decoder of FLUX.2.
pub fn half_prefix<'a>(names: impl Iterator<Item = &'a str> + Clone) -> &'static str {
    let is_block = |name: &str| {
        name.split_once('.').is_some_and(|(number, rest)| number.parse::<u16>().is_ok() && rest.starts_with("conv."))
    };
    // taeqi2_1's encoder has no weights in its first layer, either. It changes the size at layers
    // that are blocks in a decoder.
    let changes = || names.clone().filter(|name| ["4.weight", "8.weight", "16.weight"].contains(name)).count() > 1;
    let has = |start: &str| names.clone().any(|name| name.starts_with(start));
    match (has("up.0.block."), has("down.0.block.")) {
        (true, false) => return "decoder.",
        (false, true) => return "encoder.",
        _ => {}
    }
    match (names.clone().any(is_block), names.clone().any(|name| name.starts_with("0.")) || changes()) {
        (false, _) => "",
        (true, true) => "taesd_encoder.",
        // The first layer of the decoder has no weights.
        (true, false) => "taesd_decoder.",
    }
}

/// Makes the message for a tensor `name` that is no part of the `half` of `network`.
pub(super) fn not_part(name: &str, network: &str, half: &str) -> String {
    format!("not supported: tensor \"{name}\" is not part of {network} {half}")
}

/// Returns the family of the pipeline, if tensors outside the VAE show it. Names are as written.
pub fn family_hint(shapes: &BTreeMap<String, Vec<u64>>) -> Option<&'static str> {
    let fits = |(start, width, _): &&(&str, Option<u64>, &str)| {
        let mut found = shapes.iter().filter(|(name, _)| name.starts_with(start));
        found.any(|(_, shape)| width.is_none_or(|width| shape.first() == Some(&width)))
    };
    HINTS.iter().find(fits).map(|(_, _, family)| *family)
}

/// Rows of the start of a tensor name outside the VAE, its first extent if that counts, and the
/// family that it proves. The first row that matches wins. SD 2.1 and the refiner of SDXL may both
/// have a single text encoder of `OpenCLIP`, and its width tells which. SDXL has two, so a single
/// one of `transformers` proves nothing.
const HINTS: &[(&str, Option<u64>, &str)] = &[
    ("edm_mean", None, "playground"),
    ("conditioner.embedders.0.model.ln_final.weight", Some(1024), "sd21"),
    ("conditioner.embedders.0.model.ln_final.weight", Some(1280), "sdxl"),
    ("conditioner.embedders.1.", None, "sdxl"),
    ("cond_stage_model.transformer.", None, "sd15"),
    ("cond_stage_model.model.", None, "sd21"),
    ("model.diffusion_model.joint_blocks.", None, "sd3"),
    ("model.diffusion_model.double_blocks.", None, "flux1"),
];

/// Prefixes of a VAE's tensors in a file: of a whole pipeline (original code, `ComfyUI`), or none.
const PREFIXES: &[&str] = &["first_stage_model.", "vae.", ""];

/// True for the names of tensors that training left behind, and of those of an
/// `AsymmetricAutoencoderKL` that only a mask needs.
fn is_leftover(name: &str) -> bool {
    name.starts_with("decoder.condition_encoder.")
        || name.starts_with("loss")
        || name.starts_with("model_ema")
        || name.ends_with(".num_batches_tracked")
}

/// Returns the first prefix that an encoder or a decoder has, or an empty one.
fn find_prefix(shapes: &BTreeMap<String, Vec<u64>>) -> &'static str {
    let holds_vae = |prefix: &str| {
        let mut inside = shapes.keys().filter_map(|name| name.strip_prefix(prefix));
        inside.any(|name| name.starts_with("encoder.") || name.starts_with("decoder."))
    };
    PREFIXES.iter().find(|prefix| holds_vae(prefix)).unwrap_or(&"")
}

fn find_spelling(inside: &Map<&str, &[u64]>) -> std::result::Result<&'static Spelling, String> {
    let has = |start: &str| inside.keys().any(|name| name.starts_with(start));
    let spelled = |spelling: &&Spelling| spelling.signs.iter().any(|sign| sign.fits(inside));
    SPELLINGS.iter().find(spelled).ok_or_else(|| match (has("decoder."), has("encoder.")) {
        (true, _) => "not supported: its decoder is of an unknown kind".to_owned(),
        (false, true) => "not supported: its encoder is of an unknown kind".to_owned(),
        (false, false) => {
            format!("it holds no VAE: none of its {} tensors is named encoder.* or decoder.*", inside.len())
        }
    })
}

fn is_in(starts: &[&str], name: &str) -> bool {
    starts.iter().any(|start| name.starts_with(start))
}
