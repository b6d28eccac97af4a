//! Numbers that several tensors show, decided by majority.

use std::collections::BTreeMap;

use crate::ordered::{Set, by_key};

/// Most levels that are looked at, which is one more than any network may have: each takes a search
/// of all names, which a file may have a million of.
pub(super) const LEVELS: u32 = 9;

/// Most values that are candidates of a vote: each vote is compared with all of them.
const CANDIDATES: usize = 64;

/// Name of a tensor that is needed to derive a number.
pub(super) type Needed = &'static str;

/// Names and shapes of a VAE's tensors.
pub(super) struct Shapes<'a>(&'a BTreeMap<String, Vec<u64>>);

impl<'a> Shapes<'a> {
    pub(super) fn new(shapes: &'a BTreeMap<String, Vec<u64>>) -> Self {
        Self(shapes)
    }

    /// True if a tensor has a name that `fits`.
    pub(super) fn any(&self, fits: &dyn Fn(&str) -> bool) -> bool {
        self.0.keys().any(|name| fits(name))
    }

    /// Counts `PREFIX.0.`, `PREFIX.1.` and so on, up to the first gap.
    pub(super) fn count(&self, prefix: &str) -> u32 {
        let numbers = self.numbers(prefix, &|_| true);
        (0..).take_while(|number| numbers.contains(number)).count().try_into().unwrap_or(u32::MAX)
    }

    /// Collects the numbers after `prefix` in names whose rest after the number `fits`.
    pub(super) fn numbers(&self, prefix: &str, fits: &dyn Fn(&str) -> bool) -> Set<u32> {
        let number =
            |name: &String| number_after(prefix, name).filter(|(_, rest)| fits(rest)).map(|(number, _)| number);
        let numbers: Vec<u32> = self.0.keys().filter_map(number).collect();
        by_key(numbers.iter().map(|number| u64::from(*number))).map(|index| numbers[index]).collect()
    }

    /// Returns the extent of an axis of one tensor.
    pub(super) fn extent(&self, name: &str, axis: usize) -> Option<u32> {
        u32::try_from(*self.0.get(name)?.get(axis)?).ok()
    }

    /// Returns the most common first extent of tensors with names that fit.
    pub(super) fn most_common_first_extent(&self, fits: &dyn Fn(&str) -> bool) -> Option<u32> {
        self.most_common_extent(0, fits)
    }

    /// Returns the most common extent of an axis of tensors with names that fit.
    pub(super) fn most_common_extent(&self, axis: usize, fits: &dyn Fn(&str) -> bool) -> Option<u32> {
        let names = self.0.keys().filter(|name| fits(name));
        most_common(names.filter_map(|name| self.extent(name, axis)))
    }

    /// Returns the most common number of axes of tensors with names that fit.
    pub(super) fn most_common_rank(&self, fits: &dyn Fn(&str) -> bool) -> Option<u32> {
        let shapes = self.0.iter().filter(|(name, _)| fits(name));
        most_common(shapes.map(|(_, shape)| u32::try_from(shape.len()).unwrap_or(u32::MAX)))
    }

    /// True if most first filters of resnets reach over three frames.
    pub(super) fn reach_over_frames(&self) -> bool {
        let filters = self.0.iter().filter(|(name, _)| name.ends_with(".conv1.weight"));
        let reach = filters.map(|(_, shape)| u32::from(matches!(shape[..], [_, _, 3, 3, 3])));
        most_common(reach) == Some(1)
    }

    /// Returns the channels of the levels of `blocks`, in order: the most common of each level's
    /// `resnets`.
    pub(super) fn levels(&self, blocks: &str) -> Option<Vec<u32>> {
        let level = |level: u32| {
            let prefix = format!("{blocks}.{level}.resnets.");
            self.most_common_first_extent(&|name| name.starts_with(&prefix) && shows_channels(name))
        };
        (0..self.count(blocks).clamp(1, LEVELS)).map(level).collect()
    }

    /// Returns the channels of the levels of `blocks`, in order, and the number of resnets in the
    /// first level. Blocks are numbered throughout: resnets, and between the levels `resampler`s.
    pub(super) fn numbered_levels(&self, blocks: &str, resampler: &str) -> Option<(Vec<u32>, u32)> {
        let changes = self.numbers(blocks, &|rest| rest.starts_with(resampler));
        let mut resnets = self.numbers(blocks, &|_| true);
        resnets.retain(|number| !changes.contains(number));
        let channels = |first: u32, end: u32| {
            let is_inside = |number| (first..end).contains(&number) && resnets.contains(&number);
            self.most_common_first_extent(&|name| {
                shows_channels(name) && number_after(blocks, name).is_some_and(|(number, _)| is_inside(number))
            })
        };
        let mut first = 0;
        let mut levels = Vec::new();
        for end in changes.items().iter().copied().chain([u32::MAX]) {
            if levels.len() == LEVELS as usize {
                break;
            }
            levels.push(channels(first, end)?);
            first = end.saturating_add(1);
        }
        let end = changes.items().first().copied().unwrap_or(u32::MAX);
        let in_first_level = resnets.items().iter().filter(|number| **number < end).count();
        Some((levels, in_first_level.try_into().unwrap_or(u32::MAX)))
    }

    /// Derives the channels of the images to encode, and of decoded ones. If one half is missing,
    /// the other half's.
    pub(super) fn image_channels(&self) -> (u32, u32) {
        let (taken, made) = self.image_extents();
        let channels = |extent: Option<u32>| extent.map(|extent| if extent.is_multiple_of(3) { 3 } else { 4 });
        (channels(taken.or(made)).unwrap_or(3), channels(made.or(taken)).unwrap_or(3))
    }

    /// Derives the side of the squares of pixels that a decoder makes of one pixel.
    pub(super) fn upscale(&self) -> u32 {
        if matches!(self.image_extents().1, Some(12 | 16)) { 2 } else { 1 }
    }

    /// Derives the side of the squares of image pixels that a network holds in channels.
    pub(super) fn image_patch(&self) -> u32 {
        let (taken, made) = self.image_extents();
        match made.or(taken) {
            Some(12 | 16) => 2,
            Some(48) => 4,
            _ => 1,
        }
    }

    /// Returns the channels of the first convolution's input and of the last one's output. Those of
    /// a tiny autoencoder hold a square of 1, 2 or 4 pixels a side.
    fn image_extents(&self) -> (Option<u32>, Option<u32>) {
        let last = self.numbers("decoder.layers", &|_| true).items().last().copied().unwrap_or_default();
        let seen = |name: &str, axis| self.extent(name, axis).filter(|extent| matches!(extent, 3 | 4 | 12 | 16 | 48));
        let made = |part: &str| {
            [format!("decoder.conv_out.{part}"), format!("decoder.layers.{last}.{part}")].map(|name| seen(&name, 0))
        };
        let taken = ["encoder.conv_in.weight", "encoder.layers.0.weight", "encoder.layers.1.weight"];
        (vote(&taken.map(|name| seen(name, 1))), vote(&[made("weight"), made("bias")].concat()))
    }

    /// Derives the number of latent channels from the tensors next to the latents. Each row has a
    /// name, an axis, and the factor between its extent and the channels.
    pub(super) fn latent_channels(&self) -> Result<u32, Needed> {
        const WITNESSES: [(&str, usize, u32); 7] = [
            ("decoder.conv_in.weight", 1, 1),
            ("post_quant_conv.weight", 0, 1),
            ("post_quant_conv.bias", 0, 1),
            ("encoder.conv_out.weight", 0, 2),
            ("encoder.conv_out.bias", 0, 2),
            ("quant_conv.weight", 0, 2),
            ("quant_conv.bias", 0, 2),
        ];
        let channels = |&(name, axis, times): &(&str, usize, u32)| {
            self.extent(name, axis).filter(|extent| extent.is_multiple_of(times)).map(|extent| extent / times)
        };
        let has_decoder = self.any(&|name| name.starts_with("decoder."));
        let needed = if has_decoder { "decoder.conv_in.weight" } else { "encoder.conv_out.weight" };
        most_common(WITNESSES.iter().filter_map(channels)).ok_or(needed)
    }
}

/// Returns the number after `prefix` and a dot in `name`, and what comes after the next dot.
fn number_after<'a>(prefix: &str, name: &'a str) -> Option<(u32, &'a str)> {
    let (number, rest) = name.strip_prefix(prefix)?.strip_prefix('.')?.split_once('.')?;
    Some((number.parse().ok()?, rest))
}

/// True if `name` is a tensor of a resnet whose first extent is the number of output channels.
pub(super) fn shows_channels(name: &str) -> bool {
    name.rsplit('.').nth(1).is_some_and(|module| matches!(module, "conv1" | "conv2" | "norm2"))
}

/// Returns the most common of the known votes, and the first of several.
pub(super) fn vote(votes: &[Option<u32>]) -> Option<u32> {
    most_common(votes.iter().flatten().copied())
}

/// Returns the most common of the first 64 different values, and the first of several.
pub(super) fn most_common(values: impl Iterator<Item = u32>) -> Option<u32> {
    most_common_of(&values.collect::<Vec<u32>>())
}

fn most_common_of(values: &[u32]) -> Option<u32> {
    let mut counts: Vec<(u32, usize)> = Vec::new();
    for value in values {
        if let Some((_, count)) = counts.iter_mut().find(|(known, _)| known == value) {
            *count += 1;
        } else if counts.len() < CANDIDATES {
            counts.push((*value, 1));
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(value, _)| value)
}
