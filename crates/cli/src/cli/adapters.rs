//! `wgvae adapters`.

use serde_json::json;
use wgvae::Result;
use wgvae::device::AdapterReport;
use wgvae::kernels::choice::KernelChoice;

use super::{AdaptersArgs, report::bytes_text};

/// Lists the adapters.
pub(super) async fn run(args: &AdaptersArgs) -> Result<String> {
    let shown = wgvae::device::adapters(args.adapter.as_deref()).await?;
    if args.json {
        let reports: Vec<&AdapterReport> = shown.iter().map(|(_, adapter)| adapter).collect();
        return Ok(super::to_json(&json!(reports)));
    }
    let texts: Vec<String> = shown.iter().map(|(index, adapter)| text(*index, adapter)).collect();
    Ok(texts.join("\n"))
}

fn text(index: usize, adapter: &AdapterReport) -> String {
    let limits = &adapter.limits;
    let yes = |flag: bool| if flag { "yes" } else { "no" };
    let rows = [
        ("driver", format!("{}, {}, {}", adapter.backend, adapter.device_type, adapter.driver)),
        ("pci id", adapter.pci_id.clone()),
        ("largest buffer", bytes_text(limits.max_buffer_size)),
        ("largest storage binding", bytes_text(limits.max_storage_buffer_binding_size)),
        ("storage buffers per stage", limits.max_storage_buffers_per_shader_stage.to_string()),
        ("workgroup memory", bytes_text(limits.max_compute_workgroup_storage_size)),
        ("invocations per workgroup", limits.max_compute_invocations_per_workgroup.to_string()),
        ("workgroups per dimension", limits.max_compute_workgroups_per_dimension.to_string()),
        ("shader-f16", yes(limits.shader_f16).to_owned()),
        ("timestamp-query", yes(limits.timestamp_query).to_owned()),
        (
            "subgroups",
            format!("{}, {} to {}", yes(adapter.subgroups), adapter.subgroup_size[0], adapter.subgroup_size[1]),
        ),
        (
            "cooperative matrices",
            if adapter.cooperative_matrices.is_empty() {
                "none".to_owned()
            } else {
                adapter.cooperative_matrices.join(", ")
            },
        ),
        (
            "matrix units",
            adapter.matrix_units.map_or_else(
                || "none that kernels use".to_owned(),
                |units| format!("{0}x{0}, subgroups of {1}: --matrix-units", units.side, units.lanes),
            ),
        ),
        ("kernels", kernels(&adapter.kernels)),
    ];
    let mut text = format!("{index}: {}\n", adapter.name);
    for (name, value) in rows {
        text.push_str(&format!("   {name:<27}{value}\n"));
    }
    text
}

/// Formats a choice of kernels as one line.
pub(super) fn kernels(choice: &KernelChoice) -> String {
    format!(
        "3x3 winograd {}, within {}; products {}; direct {} pixels x {} vec4",
        choice.winograd_tile,
        wgvae::Bytes(choice.winograd_scratch_bytes),
        choice.matmul_tile,
        choice.direct_tile.pixels,
        choice.direct_tile.columns4,
    )
}
