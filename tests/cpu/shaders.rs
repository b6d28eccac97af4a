//! Validity of shaders: every text that a plan can ask for is valid WGSL, and so is every file as
//! it stands.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use naga::back::{hlsl, msl};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use test_kit::repository;
use wgvae::config::{FAMILIES, Family};
use wgvae::device::{DeviceKind, DeviceLimits, Vendor};
use wgvae::images::Output;
use wgvae::internals::{every_variant, variants_for};
use wgvae::kernels::source::specialize;
use wgvae::kernels::{INTERFACES, Variant};
use wgvae::model::blocks::Part;
use wgvae::model::networks::{decoder, encoder, part_of_decoder, part_of_encoder};
use wgvae::plan::{Plan, PlanOptions};
use wgvae::{Bytes, LatentSpace, Size, Storage};

/// Parses and validates `text`. Returns the module, or the error as text.
pub(crate) fn module(text: &str) -> Result<naga::Module, String> {
    validated(text).map(|(module, _)| module)
}

fn validated(text: &str) -> Result<(naga::Module, ModuleInfo), String> {
    let module = naga::front::wgsl::parse_str(text).map_err(|error| error.emit_to_string(text))?;
    let capabilities = Capabilities::SHADER_FLOAT16
        | Capabilities::SHADER_FLOAT16_IN_FLOAT32
        | Capabilities::SUBGROUP
        | Capabilities::COOPERATIVE_MATRIX;
    let checked = Validator::new(ValidationFlags::all(), capabilities).validate(&module);
    let info = checked.map_err(|error| error.emit_to_string(text))?;
    Ok((module, info))
}

/// Translates a module to MSL `version`, with checks of indices, as browsers want them.
fn metal(module: &naga::Module, info: &ModuleInfo, version: (u8, u8)) -> Result<(), String> {
    let restrict = BoundsCheckPolicy::Restrict;
    let options = msl::Options {
        lang_version: version,
        bounds_check_policies: BoundsCheckPolicies { index: restrict, buffer: restrict, ..Default::default() },
        ..Default::default()
    };
    msl::write_string(module, info, &options, &msl::PipelineOptions::default())
        .map(|_| ())
        .map_err(|error| error.to_string())
}

/// Translates a module to HLSL for `shader_model`, with naga's default options.
fn direct3d(module: &naga::Module, info: &ModuleInfo, shader_model: hlsl::ShaderModel) -> Result<(), String> {
    let options = hlsl::Options { shader_model, ..Default::default() };
    let pipeline = hlsl::PipelineOptions::default();
    let mut text = String::new();
    let written = hlsl::Writer::new(&mut text, &options, &pipeline).write(module, info, None);
    written.map(|_| ()).map_err(|error| error.to_string())
}

/// Returns the file `stem` followed by its parts, without specialisation and with loops as written.
pub(crate) fn file_with_parts(stem: &str) -> String {
    let read = |stem: &str| {
        let path = repository().join(format!("shaders/{stem}.wgsl"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let mut text = read(stem);
    let parts: Vec<String> =
        text.lines().filter_map(|line| line.strip_prefix("//#parts ")).map(str::to_owned).collect();
    for part in parts.iter().flat_map(|line| line.split_whitespace()) {
        text.push_str(&read(&format!("parts/{part}")));
    }
    text
}

/// All variants of all plans, found once for all tests.
pub(crate) static ALL_VARIANTS: LazyLock<BTreeSet<Variant>> = LazyLock::new(|| {
    [Storage::F32, Storage::F16, Storage::PackedF16, Storage::FastF16]
        .into_iter()
        .flat_map(|storage| every_variant(storage).unwrap())
        .collect()
});

#[test]
fn every_variant_of_every_plan_is_valid() {
    let variants = &*ALL_VARIANTS;
    let mut failures = Vec::new();
    for variant in variants {
        if let Err(problem) = specialize(variant).and_then(|text| module(&text).map(|_| ())) {
            failures.push(format!("shaders/{}.wgsl with {:?}:\n{problem}", variant.file, variant.values));
        }
    }
    println!("{} variants", variants.len());
    assert!(failures.is_empty(), "{} of {} variants:\n{}", failures.len(), variants.len(), failures.join("\n"));
    let unused: Vec<&str> = INTERFACES
        .iter()
        .map(|kernel| kernel.file)
        .filter(|file| !variants.iter().any(|variant| variant.file == *file))
        .collect();
    assert!(unused.is_empty(), "no plan here uses {unused:?}: add a config to every_variant()");
}

/// `every_variant` plans small pictures for devices with WebGPU's default limits.
#[test]
fn larger_pictures_and_roomy_devices_use_no_other_variants() {
    let roomy = DeviceLimits {
        max_storage_buffer_binding_size: Bytes(4 << 30),
        max_buffer_size: Bytes(8 << 30),
        max_compute_invocations_per_workgroup: 1024,
        max_compute_workgroup_storage_size: Bytes(48 << 10),
        ..DeviceLimits::webgpu_default()
    };
    let image = Size { width: 512, height: 384 };
    let mut others = BTreeSet::new();
    for (kind, vendor, storage) in [
        (DeviceKind::Gpu, Vendor::Other, Storage::F16),
        (DeviceKind::Gpu, Vendor::Nvidia, Storage::PackedF16),
        (DeviceKind::Gpu, Vendor::Arm, Storage::FastF16),
        (DeviceKind::Cpu, Vendor::Other, Storage::F32),
    ] {
        let known: BTreeSet<Variant> = variants_for(kind, vendor, None, storage).unwrap().into_iter().collect();
        let limits = DeviceLimits { kind, vendor, shader_f16: storage.needs_shader_f16(), ..roomy.clone() };
        for config in FAMILIES.iter().map(Family::config) {
            let latents = config.latent_size(image, LatentSpace::Vae);
            let parts: &[Part] = if config.has_time() { &[Part::First, Part::Next] } else { &[] };
            let decoders = parts.iter().map(|part| part_of_decoder(&config, *part, latents, LatentSpace::Vae));
            let decoders =
                decoders.chain([LatentSpace::Model, LatentSpace::Vae].map(|space| decoder(&config, latents, space)));
            let encoders =
                parts.iter().map(|part| part_of_encoder(&config, *part, image)).chain([encoder(&config, image)]);
            let outputs =
                decoders.map(|graph| (graph, Output::Rgba8)).chain(encoders.map(|graph| (graph, Output::Raw)));
            for (graph, output) in outputs {
                let output = if kind == DeviceKind::Gpu { Output::Raw } else { output };
                let plan = Plan::new(&graph, &limits, &PlanOptions::new(storage, output)).unwrap();
                others.extend(plan.variants.into_iter().filter(|variant| !known.contains(variant)));
            }
        }
    }
    assert!(others.is_empty(), "every_variant() lacks {others:?}");
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

/// Tests the languages in which wgpu passes shaders to Metal and DX12. Halves need shader model
/// 6.2, and naga 30 cannot write matrix units in HLSL.
#[test]
fn every_variant_translates_to_metal_and_direct3d() {
    use hlsl::ShaderModel::{V5_1, V6_2, V6_6};
    let mut failures = Vec::new();
    let mut count = 0;
    for variant in &*ALL_VARIANTS {
        let text = specialize(variant).unwrap();
        let (module, info) = validated(&text).unwrap();
        let mut note = |language: &str, written: Result<(), String>| {
            count += 1;
            if let Err(problem) = written {
                failures.push(format!("shaders/{}.wgsl in {language}: {problem}", variant.file));
            }
        };
        for version in [(2, 4), (3, 1)] {
            note(&format!("MSL {version:?}"), metal(&module, &info, version));
        }
        if text.contains("wgpu_cooperative_matrix") {
            continue;
        }
        let halves = text.contains("enable f16");
        for shader_model in [V5_1, V6_2, V6_6].into_iter().filter(|model| *model >= V6_2 || !halves) {
            note(&format!("HLSL {shader_model:?}"), direct3d(&module, &info, shader_model));
        }
    }
    println!("{count} translations");
    assert!(failures.is_empty(), "{} of {count} translations:\n{}", failures.len(), failures.join("\n"));
}
