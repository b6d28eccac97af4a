//! Comparison of two networks, field by field.

use std::fmt;

use super::Network;

/// A field in which two networks differ.
pub(crate) struct Difference {
    /// Name of the field in config.json.
    pub(crate) field: &'static str,
    /// The values of the first network and of the second, if config.json has the like.
    pub(crate) values: Option<[String; 2]>,
}

/// Returns a difference in `field`, where two networks have these `values`, unless they are the
/// `same`.
pub(super) fn compared(field: &'static str, same: bool, values: [&dyn fmt::Debug; 2]) -> Option<Difference> {
    (!same).then(|| Difference { field, values: Some(values.map(|value| format!("{value:?}"))) })
}

/// Returns a difference in `field`, which has other values or another order in config.json, unless
/// `same`.
pub(super) fn compared_by(field: &'static str, same: bool) -> Option<Difference> {
    (!same).then_some(Difference { field, values: None })
}

/// Returns the first difference of fields. One may have another name and other values in
/// config.json, and one row may follow that is not a field.
macro_rules! first {
    ($left:ident, $right:ident: $($field:ident $(as $name:literal)?),+ $(; $other:literal: $same:expr)?) => {
        None$(.or_else(|| first!(@ $left, $right, $field $($name)?)))+
        $(.or_else(|| compared_by($other, $same)))?
    };
    (@ $left:ident, $right:ident, $field:ident) => {
        compared(stringify!($field), $left.$field == $right.$field, [&$left.$field, &$right.$field])
    };
    (@ $left:ident, $right:ident, $field:ident $name:literal) => {
        compared_by($name, $left.$field == $right.$field)
    };
}

impl Network {
    /// Returns the first field in which two networks of one kind differ. It ignores groups and
    /// borders, because weights do not show them.
    pub(crate) fn difference(&self, other: &Self) -> Option<Difference> {
        match (self, other) {
            (Self::Kl(left), Self::Kl(right)) => first!(
                left, right: block_out_channels, decoder_block_out_channels as "decoder_block_out_channels",
                layers_per_block, decoder_layers_per_block as "decoder_layers_per_block", mid_block_add_attention, use_quant_conv, use_post_quant_conv
            ),
            (Self::Tiny(left), Self::Tiny(right)) => first!(
                left, right: encoder_block_out_channels, decoder_block_out_channels, num_encoder_blocks,
                num_decoder_blocks, use_midblock_gn, patch_size, temporal_downsample
            ),
            (Self::Wan(left), Self::Wan(right)) => first!(
                left, right: base_dim, decoder_base_dim, dim_mult, num_res_blocks, is_residual, patch_size,
                upscale as "out_channels";
                // Weights without a list do not tell.
                "temperal_downsample": !left.is_residual
                    || [left, right].iter().any(|wan| wan.temperal_downsample.is_empty())
                    || left.temperal_downsample == right.temperal_downsample
            ),
            // Weights tell neither shortcuts nor borders.
            (Self::Ltx2(left), Self::Ltx2(right)) => first!(
                left, right: block_out_channels, layers_per_block, downsample as "downsample_type",
                decoder_block_out_channels as "decoder_block_out_channels",
                decoder_layers_per_block as "decoder_layers_per_block", upsample as "upsample_type",
                upsample_factor as "upsample_factor", patch_size
            ),
            (Self::SeedVr(left), Self::SeedVr(right)) => {
                first!(left, right: block_out_channels, layers_per_block, temporal_scale_num)
            }
            (Self::Dc(left), Self::Dc(right)) => {
                left.compared(right).into_iter().find_map(|(field, same)| compared_by(field, same))
            }
            (Self::HunyuanVideo(left), Self::HunyuanVideo(right)) => first!(
                left, right: block_out_channels, layers_per_block, time_changes as "temporal_compression_ratio"
            ),
            _ => None,
        }
    }
}
