//! The tensor names of DC-AE.

use crate::ordered::Map;

/// Names of diffusers' `AutoencoderDC`. Queries, keys and values are joined later.
pub(super) const DIFFUSERS: &[(&str, &str)] = &[
    ("@.;.!", "@.;.!"),
    ("@.;.conv.!", "@.;.conv.!"),
    ("decoder.norm_out.!", "decoder.norm_out.!"),
    ("@.:.#.#.conv.!", "@.:.#.#.conv.!"),
    ("@.:.#.#.conv1.!", "@.:.#.#.conv1.!"),
    ("@.:.#.#.conv2.weight", "@.:.#.#.conv2.weight"),
    ("@.:.#.#.norm._", "@.:.#.#.norm._"),
    ("@.:.#.#.attn.to_q.weight", "@.:.#.#.attn.to_q.weight"),
    ("@.:.#.#.attn.to_k.weight", "@.:.#.#.attn.to_k.weight"),
    ("@.:.#.#.attn.to_v.weight", "@.:.#.#.attn.to_v.weight"),
    ("@.:.#.#.attn.to_qkv_multiscale.#.proj_in.weight", "@.:.#.#.attn.to_qkv_multiscale.#.proj_in.weight"),
    ("@.:.#.#.attn.to_qkv_multiscale.#.proj_out.weight", "@.:.#.#.attn.to_qkv_multiscale.#.proj_out.weight"),
    ("@.:.#.#.attn.to_out.weight", "@.:.#.#.attn.to_out.weight"),
    ("@.:.#.#.attn.norm_out.!", "@.:.#.#.attn.norm_out.!"),
    ("@.:.#.#.conv_out.conv_inverted.!", "@.:.#.#.conv_out.conv_inverted.!"),
    ("@.:.#.#.conv_out.conv_depth.!", "@.:.#.#.conv_out.conv_depth.!"),
    ("@.:.#.#.conv_out.conv_point.weight", "@.:.#.#.conv_out.conv_point.weight"),
    ("@.:.#.#.conv_out.norm.!", "@.:.#.#.conv_out.norm.!"),
];

/// Names of the same network in the code that trained it. `main` is left out, but a module has it
/// only inside a shortcut.
pub(super) const ORIGINAL: &[(&str, &str)] = &[
    ("encoder.project_in.conv.!", "encoder.conv_in.!"),
    ("encoder.project_in.conv.conv.!", "encoder.conv_in.conv.!"),
    ("encoder.project_out.main.op_list.0.conv.!", "encoder.conv_out.!"),
    ("encoder.project_out.op_list.0.conv.!", "encoder.conv_out.!"),
    ("decoder.project_in.main.conv.!", "decoder.conv_in.!"),
    ("decoder.project_in.conv.!", "decoder.conv_in.!"),
    ("decoder.project_out.op_list.0.!", "decoder.norm_out.!"),
    ("decoder.project_out.op_list.2.conv.!", "decoder.conv_out.!"),
    ("decoder.project_out.op_list.2.conv.conv.!", "decoder.conv_out.conv.!"),
    ("@.{.#.op_list.#.main.conv.!", "@.{.#.#.conv.!"),
    ("@.{.#.op_list.#.main.conv.conv.!", "@.{.#.#.conv.!"),
    ("@.{.#.op_list.#.main.conv1.conv.!", "@.{.#.#.conv1.!"),
    ("@.{.#.op_list.#.main.conv2.conv.weight", "@.{.#.#.conv2.weight"),
    ("@.{.#.op_list.#.main.conv2.norm._", "@.{.#.#.norm._"),
    ("@.{.#.op_list.#.context_module.main.qkv.conv.weight", "@.{.#.#.attn.to_qkv.weight"),
    ("@.{.#.op_list.#.context_module.main.aggreg.#.0.weight", "@.{.#.#.attn.to_qkv_multiscale.#.proj_in.weight"),
    ("@.{.#.op_list.#.context_module.main.aggreg.#.1.weight", "@.{.#.#.attn.to_qkv_multiscale.#.proj_out.weight"),
    ("@.{.#.op_list.#.context_module.main.proj.conv.weight", "@.{.#.#.attn.to_out.weight"),
    ("@.{.#.op_list.#.context_module.main.proj.norm.!", "@.{.#.#.attn.norm_out.!"),
    ("@.{.#.op_list.#.local_module.main.inverted_conv.conv.!", "@.{.#.#.conv_out.conv_inverted.!"),
    ("@.{.#.op_list.#.local_module.main.depth_conv.conv.!", "@.{.#.#.conv_out.conv_depth.!"),
    ("@.{.#.op_list.#.local_module.main.point_conv.conv.weight", "@.{.#.#.conv_out.conv_point.weight"),
    ("@.{.#.op_list.#.local_module.main.point_conv.norm.!", "@.{.#.#.conv_out.norm.!"),
];

/// True if a block ends with a norm, or a gated convolution has diffusers' names.
pub(super) fn ends_with_norms(inside: &Map<&str, &[u64]>) -> bool {
    let is_block = |name: &str| name.starts_with("decoder.up_blocks.") || name.starts_with("encoder.down_blocks.");
    inside.keys().any(|name| is_block(name) && name.ends_with(".norm.weight"))
}
