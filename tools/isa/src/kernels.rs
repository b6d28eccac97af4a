//! The kernels that plans for GPUs use, each with a name.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, ensure};
use wgvae::Storage;
use wgvae::device::DeviceKind;
use wgvae::internals::variants_for;
use wgvae::kernels::source::specialize;
use wgvae::kernels::{Value, Variant, interface};

use crate::devices::Maker;

/// A kernel that is ready to be compiled.
pub(crate) struct Kernel {
    /// The file, then the values that are set: `winograd_out ACCUMULATE MOMENTS f32`.
    pub(crate) name: String,
    pub(crate) text: String,
    /// Number of storage buffers, which are bindings 1, 2, and so on.
    pub(crate) buffers: u32,
    /// True if browsers use it, too.
    pub(crate) in_browsers: bool,
}

/// Lists all kernels of plans for `maker`'s GPUs whose name contains `part`, sorted by name. This
/// includes kernels for its matrix units, which browsers do not have.
pub(crate) fn kernels(maker: Maker, part: &str) -> Result<Vec<Kernel>> {
    let storages = [Storage::F32, Storage::F16, Storage::PackedF16, Storage::FastF16].map(|storage| (storage, None));
    let on_units = maker.units().map(|units| (Storage::FastF16, Some(units)));
    let mut found: BTreeMap<String, (Variant, bool)> = BTreeMap::new();
    for (storage, units) in storages.into_iter().chain(on_units) {
        for variant in variants_for(DeviceKind::Gpu, maker.vendor(), units, storage)? {
            let name = name(&variant);
            if name.contains(part) {
                let (first, _) = found.entry(name.clone()).or_insert_with(|| (variant.clone(), units.is_none()));
                ensure!(*first == variant, "two variants are called {name}");
            }
        }
    }
    ensure!(!found.is_empty(), "no kernel's name contains {part:?}");
    found.into_iter().map(|(name, (variant, in_browsers))| kernel(name, &variant, in_browsers)).collect()
}

/// Reads a file that is already specialised.
pub(crate) fn from_file(path: &std::path::Path) -> Result<Kernel> {
    let text = std::fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let buffers = u32::try_from(text.matches("var<storage").count())?;
    Ok(Kernel { name, text, buffers, in_browsers: true })
}

fn kernel(name: String, variant: &Variant, in_browsers: bool) -> Result<Kernel> {
    let text = specialize(variant).map_err(|problem| anyhow!("{name}: {problem}"))?;
    let buffers = u32::try_from(interface(variant.file).bindings.len())?;
    Ok(Kernel { name, text, buffers, in_browsers })
}

/// Makes a name that tells a variant from the others of its file. It omits flags that are off,
/// types equal to the stored type, and f32 as type of transformed values.
fn name(variant: &Variant) -> String {
    let stored = variant.value("Stored").or(variant.value("Pair"));
    let mut words = vec![variant.file.to_owned()];
    for (name, value) in &variant.values {
        match value {
            Value::Bool(false) => {}
            Value::Bool(true) => words.push((*name).to_owned()),
            Value::U32(number) => words.push(format!("{name}={number}")),
            Value::Type(own) if *name == "Transformed" && short(own) == "f32" => {}
            Value::Type(_) if matches!(*name, "Stored" | "Pair") => {}
            // SIDE implies these types.
            Value::Type(_) if matches!(*name, "Left" | "Right" | "Sums") => {}
            Value::Type(_) if *name != "Transformed" && Some(*value) == stored => {}
            Value::Type(other) => words.push(format!("{name}={}", short(other))),
        }
    }
    if let Some(Value::Type(stored)) = stored {
        words.push(short(stored).to_owned());
    }
    words.join(" ")
}

/// Returns the short name of a storage for tables.
fn short(wgsl_type: &str) -> &str {
    match wgsl_type {
        "vec4<f32>" | "vec2<f32>" => "f32",
        "vec4<f16>" | "vec2<f16>" => "f16",
        "vec2<u32>" | "u32" => "packed",
        other => other,
    }
}
