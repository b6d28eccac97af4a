//! Validation of configs: ranges of the fields, and relations between them.

use std::ops::RangeInclusive;

use super::{
    AutoencoderConfig, Dc, DcBlock, DcLevel, HunyuanVideo, Kl, Ltx2, Network, OwnLatents, SeedVr, SizeChange, Tiny,
    Wan, invalid, single,
};
use crate::error::Result;
use crate::model::graph::Resize;

/// Limits beyond which a config counts as corrupt. The largest published values are 6 levels, 2048
/// channels, 6 layers and 128 latent channels.
const LEVELS: RangeInclusive<u32> = 1..=8;
const CHANNELS: RangeInclusive<u32> = 1..=16_384;
const LAYERS: RangeInclusive<u32> = 1..=16;
const LATENT_CHANNELS: RangeInclusive<u32> = 1..=1024;
const PATCH: RangeInclusive<u32> = 1..=2;
// Each doubles the frames of a tiny autoencoder for video, which are tensors of their own.
const MOST_CHANGES_OF_TIME: usize = 3;
// Red, green, blue, and perhaps opacity.
const IMAGE_CHANNELS: RangeInclusive<u32> = 3..=4;

/// Checks all fields of `config`.
pub(super) fn check(config: &AutoencoderConfig) -> Result<()> {
    check_range("in_channels", "channels", config.in_channels, &IMAGE_CHANNELS)?;
    check_range("out_channels", "channels", config.out_channels, &IMAGE_CHANNELS)?;
    check_range("latent_channels", "channels", config.latent_channels, &LATENT_CHANNELS)?;
    check_range("patch_size", "latents", config.patch, &PATCH)?;
    match &config.network {
        Network::Kl(kl) => {
            check_kl(kl)?;
            check_pixel_shortcuts(kl, config.latent_channels)?;
        }
        Network::Tiny(tiny) => check_tiny(tiny)?,
        Network::Wan(wan) => check_wan(wan)?,
        Network::SeedVr(seedvr) => check_seedvr(seedvr)?,
        Network::Ltx2(ltx2) => check_ltx2(ltx2, config.latent_channels)?,
        Network::HunyuanVideo(hunyuan) => check_hunyuan_video(hunyuan, config.latent_channels)?,
        Network::Dc(dc) => check_dc(dc, config)?,
    }
    check_scale(config)?;
    check_own_latents(config.own_latents, config.latent_channels)?;
    check_statistics(config)
}

fn check_kl(kl: &Kl) -> Result<()> {
    check_levels("block_out_channels", &kl.block_out_channels)?;
    check_range("layers_per_block", "resnets", kl.layers_per_block, &LAYERS)?;
    if let Some(layers) = kl.decoder_layers_per_block {
        check_range("decoder_layers_per_block", "resnets", layers, &LAYERS)?;
    }
    check_groups("block_out_channels", &kl.block_out_channels, kl.norm_num_groups)?;
    let Some(decoder) = &kl.decoder_block_out_channels else { return Ok(()) };
    check_same_levels(("decoder_block_out_channels", decoder), ("block_out_channels", &kl.block_out_channels))?;
    check_groups("decoder_block_out_channels", decoder, kl.norm_num_groups)
}

/// Checks that the shortcuts of `kl`, if it has any, fit the channels of its levels and `latents`
/// channels of latents.
fn check_pixel_shortcuts(kl: &Kl, latents: u32) -> Result<()> {
    if !kl.has_shortcuts {
        return Ok(());
    }
    if kl.use_quant_conv || kl.use_post_quant_conv {
        return Err(invalid("has_shortcuts", "false with use_quant_conv or use_post_quant_conv", true));
    }
    for (field, channels, made) in [
        ("block_out_channels", kl.block_out_channels.as_slice(), latents * 2),
        ("decoder_block_out_channels", kl.decoder_channels(), latents),
    ] {
        for pair in channels.windows(2) {
            if !(pair[0] | pair[1]).is_multiple_of(4) || !(pair[0] * 4).is_multiple_of(pair[1]) {
                let expected = "multiples of 4 that divide four times the channels of the level before";
                return Err(invalid(field, expected, format!("{} after {}", pair[1], pair[0])));
            }
        }
        let last = channels.last().copied().unwrap_or_default();
        if !last.is_multiple_of(made) {
            let expected = format!("multiples of {made} in the last level, by the channels of latents");
            return Err(invalid(field, expected, last));
        }
    }
    Ok(())
}

fn check_tiny(tiny: &Tiny) -> Result<()> {
    let encoder = ("num_encoder_blocks", tiny.num_encoder_blocks.as_slice());
    let decoder = ("num_decoder_blocks", tiny.num_decoder_blocks.as_slice());
    check_levels("encoder_block_out_channels", &tiny.encoder_block_out_channels)?;
    check_same_levels(encoder, ("encoder_block_out_channels", &tiny.encoder_block_out_channels))?;
    check_same_levels(decoder, encoder)?;
    check_same_levels(("decoder_block_out_channels", &tiny.decoder_block_out_channels), decoder)?;
    // TAEHV's highest level has no blocks, and TAESANA's encoder none in its first levels.
    let stem = tiny.encoder_block_out_channels[0] == 0 && !tiny.is_video();
    for ((field, counts), free) in [(encoder, stem), (decoder, false)] {
        let least = if free || tiny.is_video() { 0 } else { 1 };
        counts.iter().try_for_each(|count| check_range(field, "blocks", *count, &(least..=*LAYERS.end())))?;
    }
    for (field, channels) in [
        ("encoder_block_out_channels", &tiny.encoder_block_out_channels[usize::from(stem)..]),
        ("decoder_block_out_channels", &tiny.decoder_block_out_channels),
    ] {
        channels.iter().try_for_each(|count| check_range(field, "channels", *count, &CHANNELS))?;
    }
    if stem && (tiny.num_encoder_blocks[0] > 0 || tiny.num_encoder_blocks.len() == 1 || tiny.patch_size > 1) {
        return Err(invalid("encoder_block_out_channels", "channels of each level that has blocks", 0));
    }
    if ![1, 2, 4].contains(&tiny.patch_size) {
        return Err(invalid("patch_size", "1, 2 or 4 pixels", tiny.patch_size));
    }
    check_frames(tiny, decoder)
}

/// Checks the size changes of a tiny autoencoder that also change time.
fn check_frames(tiny: &Tiny, (field, levels): (&str, &[u32])) -> Result<()> {
    if !tiny.is_video() {
        return Ok(());
    }
    let changes = levels.len() - 1;
    let doubled = tiny.temporal_downsample.iter().filter(|changes| **changes).count();
    if [tiny.temporal_downsample.len(), tiny.grow_frames.len()] != [changes; 2] || doubled > MOST_CHANGES_OF_TIME {
        let expected = format!(
            "{changes} values, one less than levels in {field}, as grow_frames has, and at most {MOST_CHANGES_OF_TIME} true"
        );
        return Err(invalid("temporal_downsample", expected, format!("{:?}", tiny.temporal_downsample)));
    }
    for (change, frames) in tiny.grow_frames.iter().rev().enumerate() {
        check_range("grow_frames", "frames", *frames, &(tiny.times(change)..=2))?;
    }
    let grows = |level: &usize| tiny.times(changes - 1 - level) > 1;
    let widths = (0..changes).filter(grows).map(|level| tiny.decoder_block_out_channels[level]);
    match widths.into_iter().find(|width| !width.is_multiple_of(4)) {
        // Frames lie next to each other, in groups of four channels.
        Some(width) => Err(invalid("decoder_block_out_channels", "multiples of 4 channels where time changes", width)),
        None => Ok(()),
    }
}

fn check_wan(wan: &Wan) -> Result<()> {
    check_levels("dim_mult", &wan.dim_mult)?;
    check_range("base_dim", "channels", wan.base_dim, &CHANNELS)?;
    check_range("num_res_blocks", "resnets", wan.num_res_blocks, &LAYERS)?;
    check_range("decoder_base_dim", "channels", wan.decoder_base_dim, &CHANNELS)?;
    check_range("patch_size", "pixels", wan.patch_size, &PATCH)?;
    check_range("upscale", "pixels", wan.upscale, &PATCH)?;
    if wan.upscale > 1 && (wan.is_residual || wan.patch_size > 1) {
        return Err(invalid("upscale", "1 pixel, with residual levels or patches", wan.upscale));
    }
    let (channels, decoder) = (wan.channels(), wan.decoder_channels());
    channels.iter().chain(&decoder).try_for_each(|count| check_range("dim_mult", "channels", *count, &CHANNELS))?;
    if wan.is_residual {
        return check_shortcuts(wan, &channels, &decoder);
    }
    if wan.decoder_base_dim != wan.base_dim {
        let expected = format!("base_dim ({}), without residual levels", wan.base_dim);
        return Err(invalid("decoder_base_dim", expected, wan.decoder_base_dim));
    }
    // Doubling the size halves the channels, rounded down.
    match channels.iter().skip(1).find(|count| **count < 2) {
        Some(one) => Err(invalid("dim_mult", "at least 2 channels where the size changes", one)),
        None => Ok(()),
    }
}

/// Checks that the shortcuts around levels fit the levels' channels, highest resolution first.
fn check_shortcuts(wan: &Wan, channels: &[u32], decoder: &[u32]) -> Result<()> {
    let last = channels.len() - 1;
    if wan.temperal_downsample.len() != last {
        let expected = format!("{last} values, which a config.json has, or weights of time_conv to tell them");
        return Err(invalid("temperal_downsample", expected, format!("{:?}", wan.temperal_downsample)));
    }
    for level in 0..=last {
        let down = (wan.down_shortcut(level), channels[level.saturating_sub(1)], channels[level]);
        // The decoder begins with the lowest resolution. The highest has no shortcut.
        let up = (level > 0).then(|| (wan.up_shortcut(level - 1), decoder[(level + 1).min(last)], decoder[level]));
        for (shortcut, from, to) in std::iter::once(down).chain(up) {
            // The encoder takes means only.
            let grows = shortcut.resize == Resize::Keep && from < to;
            if shortcut.count(from, to) == 0 || grows {
                let expected = "channels of successive levels that are multiples of each other";
                return Err(invalid("dim_mult", expected, format!("{from} and {to}")));
            }
        }
    }
    Ok(())
}

fn check_seedvr(seedvr: &SeedVr) -> Result<()> {
    let channels = &seedvr.block_out_channels;
    check_levels("block_out_channels", channels)?;
    check_range("layers_per_block", "resnets", seedvr.layers_per_block, &LAYERS)?;
    check_groups("block_out_channels", channels, seedvr.norm_num_groups)?;
    let changes = u32::try_from(channels.len() - 1).unwrap_or(u32::MAX);
    check_range("temporal_scale_num", "size changes", seedvr.temporal_scale_num, &(0..=changes))?;
    // Doubling the size keeps groups of four channels together.
    match channels.iter().skip(1).find(|count| !count.is_multiple_of(4)) {
        Some(odd) => Err(invalid("block_out_channels", "multiples of 4", odd)),
        None => Ok(()),
    }
}

/// Checks that the channels of the levels fit the shortcuts around size changes, and `latents`
/// channels of latents.
fn check_hunyuan_video(hunyuan: &HunyuanVideo, latents: u32) -> Result<()> {
    let channels = &hunyuan.block_out_channels;
    check_levels("block_out_channels", channels)?;
    channels.iter().try_for_each(|count| check_range("block_out_channels", "channels", *count, &CHANNELS))?;
    check_range("layers_per_block", "resnets", hunyuan.layers_per_block, &LAYERS)?;
    let changes = u32::try_from(channels.len() - 1).unwrap_or(u32::MAX);
    let most = changes.min(u32::try_from(MOST_CHANGES_OF_TIME).unwrap_or(u32::MAX));
    check_range("temporal_compression_ratio", "doublings", hunyuan.time_changes, &(0..=most))?;
    for (level, pair) in channels.windows(2).enumerate() {
        let &[high, low] = pair else { continue };
        let places = if hunyuan.changes_time(level) { 8 } else { 4 };
        // The first frame has four places in any case.
        if !low.is_multiple_of(places) || !(high * 4).is_multiple_of(low) {
            let expected = format!("a multiple of {places} that divides four times the channels of the level before");
            return Err(invalid("block_out_channels", expected, format!("{low} after {high}")));
        }
    }
    let last = channels[channels.len() - 1];
    if !last.is_multiple_of(latents * 2) {
        let expected = format!("a last level with a multiple of {} channels, twice those of latents", latents * 2);
        return Err(invalid("block_out_channels", expected, last));
    }
    Ok(())
}

/// Checks the levels of DC-AE's network.
fn check_dc(dc: &Dc, config: &AutoencoderConfig) -> Result<()> {
    if dc.encoder.len() != dc.decoder.len() {
        let expected = format!("{} levels, as in encoder_block_out_channels", dc.encoder.len());
        return Err(invalid("decoder_block_out_channels", expected, dc.decoder.len()));
    }
    if !dc.attention_head_dim.is_multiple_of(4) || !(4..=32).contains(&dc.attention_head_dim) {
        return Err(invalid("attention_head_dim", "a multiple of 4 up to 32", dc.attention_head_dim));
    }
    for (half, levels, shortcut) in
        [("encoder", &dc.encoder, dc.encoder_out_shortcut), ("decoder", &dc.decoder, dc.decoder_in_shortcut)]
    {
        check_dc_levels(half, levels, dc.attention_head_dim)?;
        let field = format!("{half}_block_out_channels");
        let last = levels.last().map_or(0, |level| level.channels);
        if shortcut && !last.is_multiple_of(config.latent_channels) {
            let expected =
                format!("a last level with a multiple of {} channels, those of latents", config.latent_channels);
            return Err(invalid(&field, expected, last));
        }
    }
    Ok(())
}

/// Checks the levels of a half of DC-AE's network, with heads of `head_dim` channels.
fn check_dc_levels(half: &str, levels: &[DcLevel], head_dim: u32) -> Result<()> {
    let field = |what: &str| format!("{half}_{what}");
    let channels = field("block_out_channels");
    // The size changes in a first level, and another one has the latents.
    check_range(&channels, "levels", u32::try_from(levels.len()).unwrap_or(u32::MAX), &(2..=*LEVELS.end()))?;
    for (index, level) in levels.iter().enumerate() {
        let least = if index == 0 { 0 } else { *LAYERS.start() };
        check_range(&field("layers_per_block"), "blocks", level.layers, &(least..=*LAYERS.end()))?;
        if level.layers == 0 {
            continue;
        }
        check_range(&channels, "channels", level.channels, &CHANNELS)?;
        let multiple = if matches!(level.block, DcBlock::EfficientVit { .. }) { head_dim } else { 4 };
        if !level.channels.is_multiple_of(multiple) {
            return Err(invalid(&channels, format!("a multiple of {multiple} channels"), level.channels));
        }
        if let DcBlock::EfficientVit { qkv_multiscales } = &level.block
            && let Some(side) = qkv_multiscales.iter().find(|side| ![3, 5].contains(*side))
        {
            return Err(invalid(&field("qkv_multiscales"), "filters of 3 or 5 pixels", side));
        }
    }
    let with_blocks: Vec<u32> = levels.iter().filter(|level| level.layers > 0).map(|level| level.channels).collect();
    for pair in with_blocks.windows(2) {
        if !(pair[0] * 4).is_multiple_of(pair[1]) {
            let expected = "channels that divide four times those of the level before";
            return Err(invalid(&channels, expected, format!("{} after {}", pair[1], pair[0])));
        }
    }
    Ok(())
}

/// Checks the levels of LTX-2's network, for latents of `latents` channels.
fn check_ltx2(ltx2: &Ltx2, latents: u32) -> Result<()> {
    let encoder = ("block_out_channels", &ltx2.block_out_channels);
    let decoder = ("decoder_block_out_channels", &ltx2.decoder_block_out_channels);
    for ((field, channels), counts, layers, changes) in [
        (encoder, "layers_per_block", &ltx2.layers_per_block, ltx2.downsample.len()),
        (decoder, "decoder_layers_per_block", &ltx2.decoder_layers_per_block, ltx2.upsample.len()),
    ] {
        check_levels(field, channels)?;
        channels.iter().try_for_each(|count| check_range(field, "channels", *count, &CHANNELS))?;
        layers.iter().try_for_each(|count| check_range(counts, "resnets", *count, &LAYERS))?;
        if layers.len() != channels.len() + 1 || changes != channels.len() {
            let expected = format!("{} values, and as many size changes as levels", channels.len() + 1);
            return Err(invalid(counts, expected, format!("{} and {changes}", layers.len())));
        }
    }
    if ![1, 2, 4].contains(&ltx2.patch_size) {
        return Err(invalid("patch_size", "1, 2 or 4 pixels", ltx2.patch_size));
    }
    for (field, count) in
        [("upsample_factor", ltx2.upsample_factor.len()), ("upsample_residual", ltx2.upsample_residual.len())]
    {
        if count != ltx2.upsample.len() {
            return Err(invalid(field, format!("{} values", ltx2.upsample.len()), count));
        }
    }
    let counts = |changes: &[SizeChange]| {
        let count = |of: fn(&SizeChange) -> bool| changes.iter().filter(|change| of(change)).count();
        (count(|change| change.space), count(|change| change.time))
    };
    let changes = ltx2.downsample.iter().chain(&ltx2.upsample);
    if changes.into_iter().any(|change| change.places() == 1) {
        return Err(invalid("upsample_type", "changes of size or of time", "none"));
    }
    let (down, up) = (counts(&ltx2.downsample), counts(&ltx2.upsample));
    if down != up || up.1 > MOST_CHANGES_OF_TIME {
        let expected = format!("{down:?} changes of size and of time, at most {MOST_CHANGES_OF_TIME} of time");
        return Err(invalid("upsample_type", expected, format!("{up:?}")));
    }
    check_ltx2_encoder(ltx2, latents)?;
    check_ltx2_decoder(ltx2)
}

/// Checks that the channels of the encoder's levels fit its shortcuts, from `latents` channels on.
fn check_ltx2_encoder(ltx2: &Ltx2, latents: u32) -> Result<()> {
    let mut before = latents;
    for (change, &made) in ltx2.downsample.iter().zip(&ltx2.block_out_channels) {
        let places = change.places();
        if !made.is_multiple_of(places) || !before.saturating_mul(places).is_multiple_of(made) {
            let expected = format!("multiples of {places} that divide {places} times the channels before ({before})");
            return Err(invalid("block_out_channels", expected, made));
        }
        before = made;
    }
    Ok(())
}

/// Checks that the channels of the decoder's levels fit its factors and shortcuts.
fn check_ltx2_decoder(ltx2: &Ltx2) -> Result<()> {
    let mut before = ltx2.decoder_block_out_channels[0];
    for level in ltx2.decoder_levels() {
        let places = level.change.places();
        let fits = level.factor > 0
            && level.channels == before
            && before.is_multiple_of(level.factor)
            && (!level.residual || (before.is_multiple_of(places) && places.is_multiple_of(level.factor)));
        if !fits {
            let expected = format!(
                "{before} channels, a multiple of upsample_factor; with a shortcut a multiple of {places}, which upsample_factor divides"
            );
            return Err(invalid(
                "decoder_block_out_channels",
                expected,
                format!("{} and a factor of {}", level.channels, level.factor),
            ));
        }
        before /= level.factor;
    }
    Ok(())
}

fn check_scale(config: &AutoencoderConfig) -> Result<()> {
    if !is_positive(config.scaling_factor) {
        return Err(invalid("scaling_factor", "a positive number", config.scaling_factor));
    }
    if !single(config.shift()).is_finite() {
        return Err(invalid("shift_factor", "a finite number", config.shift()));
    }
    match config.batch_norm_eps {
        Some(eps) if !is_positive(eps) => Err(invalid("batch_norm_eps", "a positive number", eps)),
        _ => Ok(()),
    }
}

/// True if f32 holds `number` as a positive number.
fn is_positive(number: f64) -> bool {
    let number = single(number);
    number.is_finite() && number > 0.0
}

fn check_own_latents(own: OwnLatents, channels: u32) -> Result<()> {
    let (wanted, finite) = (channels as usize, |number: &f64| number.is_finite());
    match own {
        OwnLatents::Normalised { mean, std }
            if mean.len() != wanted
                || std.len() != wanted
                || !mean.iter().all(finite)
                || !std.iter().all(|std| is_positive(*std)) =>
        {
            let expected = format!("{channels} finite means and positive deviations");
            Err(invalid("own_latents", &expected, format!("{} and {}", mean.len(), std.len())))
        }
        OwnLatents::StandIn { scaling_factor, shift_factor }
            if !(scaling_factor.is_finite() && scaling_factor > 0.0 && shift_factor.is_finite()) =>
        {
            let found = format!("{scaling_factor} and {shift_factor}");
            Err(invalid("own_latents", "a positive factor and a finite shift", found))
        }
        _ => Ok(()),
    }
}

fn check_statistics(config: &AutoencoderConfig) -> Result<()> {
    if config.latents_mean.is_some() != config.latents_std.is_some() {
        let found = if config.latents_mean.is_some() { "only latents_mean" } else { "only latents_std" };
        return Err(invalid("latents_mean", "latents_mean and latents_std, or neither", found));
    }
    for (field, values) in [("latents_mean", &config.latents_mean), ("latents_std", &config.latents_std)] {
        let Some(values) = values else { continue };
        if values.len() != config.statistics() as usize {
            let expected = format!("{} numbers, one for each latent channel", config.statistics());
            return Err(invalid(field, expected, values.len()));
        }
        let (fits, expected): (fn(f64) -> bool, _) = match field {
            "latents_std" => (is_positive, "positive numbers"),
            _ => (|value| single(value).is_finite(), "finite numbers"),
        };
        if let Some(bad) = values.iter().find(|&&value| !fits(value)) {
            return Err(invalid(field, expected, bad));
        }
    }
    Ok(())
}

fn check_levels(field: &str, levels: &[u32]) -> Result<()> {
    check_range(field, "levels", count(levels), &LEVELS)
}

/// Checks that two lists have an entry for each level.
fn check_same_levels((field, levels): (&str, &[u32]), (other_field, other): (&str, &[u32])) -> Result<()> {
    if levels.len() == other.len() {
        return Ok(());
    }
    Err(invalid(field, format!("{} levels, as in {other_field}", other.len()), levels.len()))
}

fn check_groups(field: &str, channels: &[u32], groups: u32) -> Result<()> {
    check_range("norm_num_groups", "groups", groups, &CHANNELS)?;
    for &count in channels {
        check_range(field, "channels", count, &CHANNELS)?;
        if count % groups != 0 {
            return Err(invalid(field, format!("multiples of norm_num_groups ({groups})"), count));
        }
    }
    Ok(())
}

fn check_range(field: &str, what: &str, value: u32, range: &RangeInclusive<u32>) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    Err(invalid(field, format!("{} to {} {what}", range.start(), range.end()), value))
}

fn count(values: &[u32]) -> u32 {
    u32::try_from(values.len()).unwrap_or(u32::MAX)
}
