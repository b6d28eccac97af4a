//! Every shader text that a plan can ask for is valid WGSL, and so is every file as it stands.

use std::collections::BTreeSet;

use naga::valid::{Capabilities, ValidationFlags, Validator};
use wgvae::kernels::source::{kernel_files, specialize};
use wgvae::kernels::{INTERFACES, Variant};
use wgvae::model::autoencoder_kl;
use wgvae::plan::{Plan, PlanOptions};
use wgvae::{AutoencoderConfig, Bytes, DeviceKind, DeviceLimits, FAMILIES, Output, Size, Storage};

/// `text` as a valid module, or what is wrong with it.
pub(crate) fn module(text: &str) -> Result<naga::Module, String> {
    let module = naga::front::wgsl::parse_str(text).map_err(|error| error.emit_to_string(text))?;
    let capabilities = Capabilities::SHADER_FLOAT16 | Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    let checked = Validator::new(ValidationFlags::all(), capabilities).validate(&module);
    checked.map_err(|error| error.emit_to_string(text))?;
    Ok(module)
}

/// The file `stem` with its parts behind it, nothing specialised and no loop written out.
pub(crate) fn file_with_parts(stem: &str) -> String {
    let read = |stem: &str| {
        let path = format!("{}/shaders/{stem}.wgsl", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let mut text = read(stem);
    let parts: Vec<String> =
        text.lines().filter_map(|line| line.strip_prefix("//#parts ")).map(str::to_owned).collect();
    for part in parts.iter().flat_map(|line| line.split_whitespace()) {
        text.push_str(&read(&format!("parts/{part}")));
    }
    text
}

/// A small network with what the published ones lack: uneven groups, few channels, one level.
pub(crate) fn toy(channels: &[u32], groups: u32, attention: bool) -> AutoencoderConfig {
    AutoencoderConfig {
        out_channels: 3,
        latent_channels: 4,
        block_out_channels: channels.to_vec(),
        layers_per_block: 1,
        norm_num_groups: groups,
        mid_block_add_attention: attention,
        use_post_quant_conv: true,
        scaling_factor: 1.0,
        shift_factor: 0.0,
        latents_mean: None,
        latents_std: None,
        force_upcast: true,
        sample_size: None,
    }
}

/// All variants of all plans: families and toys, storages, kinds of devices, outputs, limits, sizes.
pub(crate) fn all_variants() -> BTreeSet<Variant> {
    let mut configs: Vec<AutoencoderConfig> = FAMILIES.iter().map(|family| family.config()).collect();
    configs.extend([
        toy(&[8], 4, true),
        toy(&[12, 24], 6, false),
        toy(&[16, 32, 64, 64], 8, true),
        toy(&[20, 40], 4, true),
    ]);
    let mut variants = BTreeSet::new();
    for config in &configs {
        for storage in [Storage::F32, Storage::F16, Storage::PackedF16] {
            for (kind, output, chunk, size) in [
                (DeviceKind::Cpu, Output::Rgba8, 64 << 20, 8),
                (DeviceKind::Cpu, Output::Raw, 1 << 20, 33),
                (DeviceKind::Gpu, Output::Rgba8, 64 << 20, 64),
                (DeviceKind::Gpu, Output::Raw, 4 << 20, 13),
            ] {
                let graph = autoencoder_kl::decoder(config, Size { width: size, height: size }, false);
                for limits in [DeviceLimits::webgpu_default(), roomy()] {
                    let limits = DeviceLimits { kind, shader_f16: storage == Storage::F16, ..limits };
                    let options = PlanOptions { chunk_limit: Bytes(chunk), ..PlanOptions::new(storage, output) };
                    variants.extend(Plan::new(&graph, &limits, &options).unwrap().variants);
                }
            }
        }
    }
    variants
}

/// A device with much more than WebGPU's defaults.
fn roomy() -> DeviceLimits {
    DeviceLimits {
        max_storage_buffer_binding_size: Bytes(4 << 30),
        max_buffer_size: Bytes(8 << 30),
        max_compute_invocations_per_workgroup: 1024,
        max_compute_workgroup_storage_size: Bytes(48 << 10),
        ..DeviceLimits::webgpu_default()
    }
}

#[test]
fn every_variant_of_every_plan_is_valid() {
    let variants = all_variants();
    let mut failures = Vec::new();
    for variant in &variants {
        if let Err(problem) = specialize(variant).and_then(|text| module(&text).map(|_| ())) {
            failures.push(format!("shaders/{}.wgsl with {:?}:\n{problem}", variant.file, variant.values));
        }
    }
    println!("{} variants", variants.len());
    assert!(failures.is_empty(), "{} of {} variants:\n{}", failures.len(), variants.len(), failures.join("\n"));
    let unused: Vec<&str> =
        kernel_files().filter(|file| !variants.iter().any(|variant| variant.file == *file)).collect();
    assert!(unused.is_empty(), "no plan here uses {unused:?}: add a config to all_variants()");
}

#[test]
fn every_file_is_valid_as_it_stands() {
    let mut failures = Vec::new();
    for interface in INTERFACES {
        let default = Variant { file: interface.file, values: Vec::new() };
        for (how, text) in
            [("as it stands", Ok(file_with_parts(interface.file))), ("with loops written out", specialize(&default))]
        {
            if let Err(problem) = text.and_then(|text| module(&text).map(|_| ())) {
                failures.push(format!("shaders/{}.wgsl {how}:\n{problem}", interface.file));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
