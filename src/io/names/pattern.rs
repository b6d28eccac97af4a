//! Patterns that rewrite tensor names from the left column of a table to the right column.
//!
//! Names are split at dots. A placeholder takes a part on the left, and the placeholders on the
//! right insert these parts in order:
//!
//! | placeholder | in the file | in diffusers |
//! |---|---|---|
//! | `#` | a number | the same number |
//! | `^` | a level | the level counted from the other end |
//! | `-` | a number | the number minus one |
//! | `&` | a block, numbered across levels | `LEVEL.resnets.NUMBER` |
//! | `~` | a resampler, numbered with the blocks | its level |
//! | `<` | a level | nothing |
//! | `>` | a block of that level, or its resampler | its number among the blocks of all levels |
//! | `*` | a number | nothing |
//! | `/` | a size change, numbered with the levels | the level that it belongs to |
//! | `=` | a level, numbered with the size changes | `LIST.NUMBER`, or `mid_block` |
//! | `{` | `stages` | the list of blocks of this half: `down_blocks` or `up_blocks` |
//! | `@` `;` `!` `_` `?` `%` `+` `,` `'` `:` `$` | a word of `WORDS` | its translation |

/// Words that a placeholder matches. `from>to` is one with a translation.
const WORDS: &[(&str, &str)] = &[
    ("@", "encoder decoder"),
    (";", "conv_in conv_out"),
    ("!", "weight bias"),
    ("_", "weight bias running_mean running_var"),
    ("?", "weight bias gamma"),
    ("%", "norm1 conv1 norm2 conv2 conv_shortcut nin_shortcut>conv_shortcut"),
    ("+", "norm to_q to_k to_v proj q>to_q k>to_k v>to_v proj_out>proj"),
    (",", "group_norm to_q to_k to_v query>to_q key>to_k value>to_v proj_attn>to_out.0"),
    ("'", "norm>group_norm q>to_q k>to_k v>to_v proj_out>to_out.0"),
    (":", "down_blocks up_blocks"),
    ("$", "0>norm1 2>conv1 3>norm2 6>conv2"),
];

/// The numbers that a file's numbering depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbering {
    /// Number of levels of an LDM decoder.
    levels: u32,
    /// Number of blocks in a level of Wan's decoder, including the resampler.
    blocks: u32,
    /// Number of blocks in a level of HunyuanImage's encoder and decoder, including the resampler.
    in_level: [u32; 2],
    /// Number of the last level of LTX's encoder, its middle block.
    last: u32,
}

impl Numbering {
    /// Derives the numbers from the names of a file.
    pub(super) fn of<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Self {
        let number = |name: &str, list: &str| {
            let (number, rest) = name.strip_prefix(list)?.split_once('.')?;
            Some((number.parse::<u16>().ok()?, rest.to_owned()))
        };
        let levels = names.clone().filter_map(|name| number(name, "decoder.up.")).map(|(level, _)| level).max();
        let resamplers = names
            .clone()
            .filter_map(|name| number(name, "decoder.upsamples."))
            .filter(|(_, rest)| rest.starts_with("resample.") || rest.starts_with("time_conv."));
        let first = resamplers.map(|(block, _)| block).min();
        let in_level = ["encoder.down.", "decoder.up."].map(|list| {
            let block = |name| number(number(name, list)?.1.as_str(), "block.").map(|(block, _)| block);
            names.clone().filter_map(block).max().map_or(1, |highest| u32::from(highest) + 2)
        });
        Self {
            levels: levels.map_or(0, |highest| u32::from(highest) + 1),
            blocks: first.map_or(u32::MAX, |block| u32::from(block) + 1),
            in_level,
            last: names
                .filter_map(|name| number(name, "encoder.down_blocks."))
                .map(|(level, _)| level)
                .max()
                .unwrap_or(0)
                .into(),
        }
    }
}

/// Rewrites `name` by the first row of `table` that matches.
pub(super) fn rewrite(table: &[(&str, &str)], name: &str, numbering: &Numbering) -> Option<String> {
    table.iter().find_map(|(from, to)| {
        let mut found = captures(from, name, numbering)?.into_iter();
        let segments =
            to.split('.').map(|segment| if is_placeholder(segment) { found.next() } else { Some(segment.to_owned()) });
        Some(segments.collect::<Option<Vec<_>>>()?.join("."))
    })
}

/// Returns the translated parts of `name` that the placeholders of `pattern` match, or `None` if
/// the name does not match.
fn captures(pattern: &str, name: &str, numbering: &Numbering) -> Option<Vec<String>> {
    let (mut wanted, mut segments) = (pattern.split('.'), name.split('.'));
    let (mut found, mut level) = (Vec::new(), 0);
    loop {
        match (wanted.next(), segments.next()) {
            (None, None) => return Some(found),
            (Some("*"), Some(segment)) if segment.parse::<u32>().is_ok() => {}
            (Some("<"), Some(segment)) => level = segment.parse::<u32>().ok()?,
            (Some(">"), Some(segment)) => {
                let blocks = numbering.in_level[usize::from(name.starts_with("decoder."))];
                // The resampler is the last of its level.
                let block = match segment {
                    "downsample" | "upsample" => blocks - 1,
                    _ => segment.parse().ok()?,
                };
                found.push(level.checked_mul(blocks)?.checked_add(block)?.to_string());
            }
            (Some("{"), Some("stages")) => {
                found.push(if name.starts_with("decoder.") { "up_blocks" } else { "down_blocks" }.to_owned());
            }
            (Some("="), Some(segment)) => {
                found.push(level_or_middle(name.starts_with("decoder."), segment.parse().ok()?, numbering)?);
            }
            (Some(wanted), Some(segment)) if is_placeholder(wanted) => {
                found.push(translated(wanted, segment, numbering)?);
            }
            (wanted, segment) if wanted == segment => {}
            _ => return None,
        }
    }
}

fn translated(placeholder: &str, segment: &str, numbering: &Numbering) -> Option<String> {
    let number = || segment.parse::<u32>().ok();
    Some(match placeholder {
        "#" => number()?.to_string(),
        "^" => numbering.levels.checked_sub(1)?.checked_sub(number()?)?.to_string(),
        "-" => number()?.checked_sub(1)?.to_string(),
        "&" => format!("{}.resnets.{}", number()? / numbering.blocks, number()? % numbering.blocks),
        "~" => (number()? / numbering.blocks).to_string(),
        "/" => number().filter(|number| number % 2 == 1).map(|number| (number / 2).to_string())?,
        _ => {
            let (_, words) = WORDS.iter().find(|(name, _)| *name == placeholder)?;
            let mut pairs = words.split(' ').map(|word| word.split_once('>').unwrap_or((word, word)));
            pairs.find(|(from, _)| *from == segment)?.1.to_owned()
        }
    })
}

/// Returns the blocks that LTX's level `number` of a half is. Levels have even numbers.
fn level_or_middle(decoder: bool, number: u32, numbering: &Numbering) -> Option<String> {
    if number % 2 == 1 {
        return None;
    }
    let middle = if decoder { 0 } else { numbering.last };
    Some(match (number == middle, decoder) {
        (true, _) => "mid_block".to_owned(),
        (false, true) => format!("up_blocks.{}", number / 2 - 1),
        (false, false) => format!("down_blocks.{}", number / 2),
    })
}

fn is_placeholder(segment: &str) -> bool {
    matches!(segment.as_bytes(), [sign] if sign.is_ascii_punctuation())
}
