//! What a checkpoint calls its tensors, translated to diffusers' names by tables. Other kinds of VAE are recognised and
//! refused.
//!
//! Two spellings exist: diffusers' own, and that of the original LDM code (also used by FLUX's `ae.safetensors`, A1111
//! and `ComfyUI`), either of them perhaps under a prefix in a file that holds a whole pipeline.

mod unsupported;

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Result};

/// Whose names a checkpoint uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Layout {
    /// `decoder.up_blocks.0.resnets.0.conv1.weight`; level 0 is the lowest resolution.
    Diffusers,
    /// `decoder.up.3.block.0.conv1.weight`; level 0 is the highest resolution.
    Ldm,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Diffusers => "diffusers",
            Self::Ldm => "LDM",
        })
    }
}

/// The names of one checkpoint's VAE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Whose names they are.
    pub layout: Layout,
    /// Name in diffusers' spelling -> name as written.
    pub written: BTreeMap<String, String>,
}

/// Finds the VAE among the tensors `shapes` (name as written -> shape) of the checkpoint `file` and translates its
/// names.
///
/// Anything that is not an `AutoencoderKL` is an error that says what it looks like. Tensors of other parts of a
/// pipeline and leftovers of training are passed over, but an unknown tensor inside the decoder is an error: leaving it
/// out would change the image.
pub fn translate(file: &str, shapes: &BTreeMap<String, Vec<u64>>) -> Result<Names> {
    let fail = |problem| Error::Format { file: file.to_owned(), problem };
    let prefix = find_prefix(shapes);
    let inside: BTreeMap<&str, &[u64]> = shapes
        .iter()
        .filter_map(|(name, shape)| Some((name.strip_prefix(prefix)?, shape.as_slice())))
        .filter(|(name, _)| !LEFTOVERS.iter().any(|leftover| name.starts_with(leftover)))
        .collect();
    unsupported::check(&inside).map_err(fail)?;
    let layout = find_layout(&inside).map_err(fail)?;

    let levels = inside.keys().filter_map(|name| level(name)).max().map_or(0, |highest| highest + 1);
    let mut written: BTreeMap<String, String> = BTreeMap::new();
    for name in inside.keys() {
        let translated = rewrite(
            match layout {
                Layout::Diffusers => DIFFUSERS,
                Layout::Ldm => LDM,
            },
            name,
            levels,
        );
        let Some(translated) = translated else {
            if name.starts_with("decoder.") || name.starts_with("post_quant_conv.") {
                return Err(fail(format!(
                    "not supported: tensor \"{prefix}{name}\" is not part of an AutoencoderKL decoder"
                )));
            }
            continue;
        };
        if let Some(other) = written.get(&translated) {
            return Err(fail(format!("tensors \"{other}\" and \"{prefix}{name}\" are both \"{translated}\"")));
        }
        written.insert(translated, format!("{prefix}{name}"));
    }
    Ok(Names { layout, written })
}

/// The family of the pipeline that `names` (as written) come from, as far as tensors outside the VAE tell.
pub fn family_hint<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<&'static str> {
    let found = names.into_iter().filter_map(|name| HINTS.iter().position(|(start, _)| name.starts_with(start)));
    found.min().map(|index| HINTS[index].1)
}

/// Starts of tensor names outside the VAE -> the family they prove. The first row that matches wins.
const HINTS: &[(&str, &str)] = &[
    ("edm_mean", "playground"),
    ("conditioner.embedders.", "sdxl"),
    ("cond_stage_model.transformer.", "sd15"),
    ("cond_stage_model.model.", "sd21"),
    ("model.diffusion_model.joint_blocks.", "sd3"),
    ("model.diffusion_model.double_blocks.", "flux1"),
];

/// Where a VAE sits in a file: of a whole pipeline (original code, `ComfyUI`), or on its own.
const PREFIXES: &[&str] = &["first_stage_model.", "vae.", ""];

/// Tensors that training left behind.
const LEFTOVERS: &[&str] = &["loss", "model_ema"];

/// Patterns of the names of diffusers' files -> the name used here. Both spellings of the attention exist in files.
///
/// In a pattern `#` is a number, `^` a level counted from the other end, `@` `%` `!` one of the words in `WORDS`; a
/// placeholder stands for the same text on both sides, in order.
const DIFFUSERS: &[(&str, &str)] = &[
    ("@.conv_in.!", "@.conv_in.!"),
    ("@.conv_out.!", "@.conv_out.!"),
    ("@.conv_norm_out.!", "@.conv_norm_out.!"),
    ("@.mid_block.resnets.#.%.!", "@.mid_block.resnets.#.%.!"),
    ("@.mid_block.attentions.#.group_norm.!", "@.mid_block.attentions.#.group_norm.!"),
    ("@.mid_block.attentions.#.to_q.!", "@.mid_block.attentions.#.to_q.!"),
    ("@.mid_block.attentions.#.to_k.!", "@.mid_block.attentions.#.to_k.!"),
    ("@.mid_block.attentions.#.to_v.!", "@.mid_block.attentions.#.to_v.!"),
    ("@.mid_block.attentions.#.to_out.0.!", "@.mid_block.attentions.#.to_out.0.!"),
    ("@.mid_block.attentions.#.query.!", "@.mid_block.attentions.#.to_q.!"),
    ("@.mid_block.attentions.#.key.!", "@.mid_block.attentions.#.to_k.!"),
    ("@.mid_block.attentions.#.value.!", "@.mid_block.attentions.#.to_v.!"),
    ("@.mid_block.attentions.#.proj_attn.!", "@.mid_block.attentions.#.to_out.0.!"),
    ("encoder.down_blocks.#.resnets.#.%.!", "encoder.down_blocks.#.resnets.#.%.!"),
    ("encoder.down_blocks.#.downsamplers.0.conv.!", "encoder.down_blocks.#.downsamplers.0.conv.!"),
    ("decoder.up_blocks.#.resnets.#.%.!", "decoder.up_blocks.#.resnets.#.%.!"),
    ("decoder.up_blocks.#.upsamplers.0.conv.!", "decoder.up_blocks.#.upsamplers.0.conv.!"),
    ("quant_conv.!", "quant_conv.!"),
    ("post_quant_conv.!", "post_quant_conv.!"),
];

/// The same for the original names.
const LDM: &[(&str, &str)] = &[
    ("@.conv_in.!", "@.conv_in.!"),
    ("@.conv_out.!", "@.conv_out.!"),
    ("@.norm_out.!", "@.conv_norm_out.!"),
    ("@.mid.block_1.%.!", "@.mid_block.resnets.0.%.!"),
    ("@.mid.block_2.%.!", "@.mid_block.resnets.1.%.!"),
    ("@.mid.attn_1.norm.!", "@.mid_block.attentions.0.group_norm.!"),
    ("@.mid.attn_1.q.!", "@.mid_block.attentions.0.to_q.!"),
    ("@.mid.attn_1.k.!", "@.mid_block.attentions.0.to_k.!"),
    ("@.mid.attn_1.v.!", "@.mid_block.attentions.0.to_v.!"),
    ("@.mid.attn_1.proj_out.!", "@.mid_block.attentions.0.to_out.0.!"),
    ("encoder.down.#.block.#.%.!", "encoder.down_blocks.#.resnets.#.%.!"),
    ("encoder.down.#.downsample.conv.!", "encoder.down_blocks.#.downsamplers.0.conv.!"),
    ("decoder.up.^.block.#.%.!", "decoder.up_blocks.^.resnets.#.%.!"),
    ("decoder.up.^.upsample.conv.!", "decoder.up_blocks.^.upsamplers.0.conv.!"),
    ("quant_conv.!", "quant_conv.!"),
    ("post_quant_conv.!", "post_quant_conv.!"),
    // BFL's code of FLUX.2 has them inside.
    ("encoder.quant_conv.!", "quant_conv.!"),
    ("decoder.post_quant_conv.!", "post_quant_conv.!"),
];

/// Words that a placeholder of a pattern matches -> what they become.
const WORDS: &[(&str, &[(&str, &str)])] = &[
    ("@", &[("encoder", "encoder"), ("decoder", "decoder")]),
    ("!", &[("weight", "weight"), ("bias", "bias")]),
    (
        "%",
        &[
            ("norm1", "norm1"),
            ("conv1", "conv1"),
            ("norm2", "norm2"),
            ("conv2", "conv2"),
            ("conv_shortcut", "conv_shortcut"),
            ("nin_shortcut", "conv_shortcut"),
        ],
    ),
];

/// The first prefix under which there is an encoder or a decoder; else none.
fn find_prefix(shapes: &BTreeMap<String, Vec<u64>>) -> &'static str {
    let holds_vae = |prefix: &str| {
        let mut inside = shapes.keys().filter_map(|name| name.strip_prefix(prefix));
        inside.any(|name| name.starts_with("encoder.") || name.starts_with("decoder."))
    };
    PREFIXES.iter().find(|prefix| holds_vae(prefix)).unwrap_or(&"")
}

fn find_layout(inside: &BTreeMap<&str, &[u64]>) -> std::result::Result<Layout, String> {
    let has = |start| inside.keys().any(|name: &&str| name.starts_with(start));
    if has("decoder.up_blocks.") {
        Ok(Layout::Diffusers)
    } else if has("decoder.up.") {
        Ok(Layout::Ldm)
    } else if has("decoder.") {
        Err("not supported: its decoder is not that of an AutoencoderKL".to_owned())
    } else if has("encoder.") {
        Err("it holds an encoder but no decoder".to_owned())
    } else {
        Err(format!("it holds no VAE: none of its {} tensors is named encoder.* or decoder.*", inside.len()))
    }
}

/// The level that an original decoder name speaks of.
fn level(name: &str) -> Option<u32> {
    name.strip_prefix("decoder.up.")?.split('.').next()?.parse::<u16>().ok().map(u32::from)
}

/// `name` by the first row of `table` that fits.
fn rewrite(table: &[(&str, &str)], name: &str, levels: u32) -> Option<String> {
    table.iter().find_map(|(from, to)| {
        let mut found = captures(from, name, levels)?.into_iter();
        let segments =
            to.split('.').map(|segment| if is_placeholder(segment) { found.next() } else { Some(segment.to_owned()) });
        Some(segments.collect::<Option<Vec<_>>>()?.join("."))
    })
}

/// What the placeholders of `pattern` stand for in `name`, translated; `None` if the name does not fit.
fn captures(pattern: &str, name: &str, levels: u32) -> Option<Vec<String>> {
    if pattern.split('.').count() != name.split('.').count() {
        return None;
    }
    let mut found = Vec::new();
    for (wanted, segment) in pattern.split('.').zip(name.split('.')) {
        if !is_placeholder(wanted) {
            if wanted != segment {
                return None;
            }
            continue;
        }
        found.push(match wanted {
            "#" => segment.parse::<u32>().ok()?.to_string(),
            "^" => levels.checked_sub(1)?.checked_sub(segment.parse().ok()?)?.to_string(),
            _ => {
                let (_, words) = WORDS.iter().find(|(placeholder, _)| *placeholder == wanted)?;
                words.iter().find(|(from, _)| *from == segment)?.1.to_owned()
            }
        });
    }
    Some(found)
}

fn is_placeholder(segment: &str) -> bool {
    matches!(segment, "#" | "^" | "@" | "%" | "!")
}
