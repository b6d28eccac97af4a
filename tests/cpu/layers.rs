//! Tests of the tables of crates and layers in ARCHITECTURE.md: each crate depends only on those
//! below, and every `crate::` path in `src/` leads to a layer below.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Crates (folders with a manifest), each with the crates of the workspace that it may depend on.
/// Tests, benches and tools may use all of them.
const CRATES: &[(&str, &[&str])] = &[
    (".", &[]),
    ("crates/media", &["wgvae"]),
    ("crates/memory-report", &["wgvae"]),
    ("crates/cli", &["wgvae", "wgvae-media", "wgvae-memory-report"]),
    ("python", &["wgvae", "wgvae-media"]),
];

/// Dependencies that only the crates above the library may have. `ureq` is the library's if its
/// feature `hub` asks for it.
const NOT_OF_THE_LIBRARY: &[&str] = &["clap", "image", "png", "y4m"];

/// Layers (first component below `src/`), each with the modules that it may use besides itself.
const LAYERS: &[(&str, &[&str])] = &[
    ("ordered", &[]),
    ("direction", &[]),
    ("tensor", &["error", "limits"]),
    ("printable", &[]),
    ("error", &["printable", "tensor", "limits"]),
    ("limits", &["tensor", "error"]),
    ("model", &["ordered", "tensor", "error"]),
    ("kernels", &["tensor", "limits", "error", "model"]),
    ("plan", &["ordered", "model", "kernels", "limits", "tensor", "error"]),
    ("execution", &["kernels", "limits", "tensor", "error"]),
    ("gpu", &["ordered", "execution", "plan", "kernels", "limits", "tensor", "error"]),
    ("cpu", &["ordered", "execution", "plan", "kernels", "limits", "tensor", "error"]),
    ("device", &["cpu", "gpu", "execution", "plan", "kernels", "limits", "tensor", "error"]),
    ("io", &["ordered", "tensor", "error", "model::config"]),
    ("tiling", &["tensor", "error", "model::config"]),
    ("quality", &["tensor"]),
    ("preview", &["vae", "model::config", "tensor", "error"]),
    ("demo", &["io", "error"]),
    ("hub", &["io", "tensor", "error"]),
    ("tuning", &["gpu", "execution", "plan", "kernels", "model", "limits", "tensor", "error"]),
    ("selftest", &["vae", "io", "device", "gpu", "execution", "plan", "kernels", "limits", "tensor", "error"]),
    (
        "vae",
        &[
            "direction",
            "ordered",
            "io",
            "device",
            "gpu",
            "execution",
            "plan",
            "kernels",
            "model",
            "tiling",
            "limits",
            "tensor",
            "error",
        ],
    ),
    (
        "lib",
        &[
            "direction",
            "printable",
            "io",
            "device",
            "gpu",
            "execution",
            "plan",
            "kernels",
            "model",
            "tiling",
            "preview",
            "quality",
            "limits",
            "tensor",
            "error",
            "vae",
        ],
    ),
    (
        "web",
        &[
            "direction",
            "preview",
            "vae",
            "tuning",
            "selftest",
            "device",
            "gpu",
            "execution",
            "plan",
            "io",
            "tiling",
            "model::config",
            "limits",
            "tensor",
            "error",
        ],
    ),
];

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

/// Returns the first two components of every path after `crate::` in a line of code. Groups `{a,
/// b}` are split.
fn crate_paths(code: &str) -> Vec<String> {
    code.match_indices("crate::")
        .filter(|(at, _)| {
            !code[..*at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$')
        })
        .flat_map(|(at, _)| {
            let rest = &code[at + "crate::".len()..];
            let items: Vec<&str> = match rest.strip_prefix('{') {
                Some(group) => group.split('}').next().unwrap_or(group).split(',').collect(),
                None => vec![rest],
            };
            items.into_iter().map(|item| {
                let path = item.trim().split(|letter: char| !(letter.is_alphanumeric() || "_:".contains(letter)));
                path.into_iter().next().unwrap_or_default().split("::").take(2).collect::<Vec<_>>().join("::")
            })
        })
        .filter(|path| !path.is_empty())
        .collect()
}

fn is_allowed(path: &str, layer: &str, may: &[&str]) -> bool {
    let within = |allowed: &str| path == allowed || path.starts_with(&format!("{allowed}::"));
    within(layer) || may.iter().any(|allowed| within(allowed))
}

/// Returns the names in the tables `[dependencies]` of a manifest, those for one target among them.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut is_dependency = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_dependency =
                line == "[dependencies]" || (line.starts_with("[target.") && line.ends_with(".dependencies]"));
        } else if is_dependency && line.starts_with(|letter: char| letter.is_alphanumeric()) {
            found.extend(line.split([' ', '.', '=']).next());
        }
    }
    found
}

#[test]
fn crates_depend_only_on_the_crates_below() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in std::fs::read_dir(root.join("crates")).unwrap() {
        let folder = format!("crates/{}", folder.unwrap().file_name().to_str().unwrap());
        assert!(CRATES.iter().any(|(known, _)| *known == folder), "{folder} has no row in tests/cpu/layers.rs");
    }
    for (folder, may) in CRATES {
        let manifest = std::fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap();
        let used = dependencies(&manifest);
        let ours: Vec<&str> = used.iter().copied().filter(|name| name.starts_with("wgvae")).collect();
        assert_eq!(ours, *may, "{folder}/Cargo.toml and its row in tests/cpu/layers.rs");
        assert!(!used.is_empty(), "{folder}/Cargo.toml: no dependencies were read");
        if *folder == "." {
            let wrong: Vec<_> = used.iter().filter(|name| NOT_OF_THE_LIBRARY.contains(name)).collect();
            assert!(wrong.is_empty(), "the library depends on {wrong:?}");
        }
    }
}

#[test]
fn the_reader_of_manifests_sees_all_kinds_of_rows() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\na = \"1\"\n# b = \"1\"\nwgvae.workspace = true\n\
        [target.'cfg(unix)'.dependencies]\nc = { version = \"1\" }\n[dev-dependencies]\nd = \"1\"\n";
    assert_eq!(dependencies(manifest), ["a", "wgvae", "c"]);
}

#[test]
fn modules_use_only_the_layers_below() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    files.sort();
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for file in &files {
        let name = file.strip_prefix(&src).unwrap().to_str().unwrap().to_owned();
        let layer = name.split(['/', '\\', '.']).next().unwrap().to_owned();
        let Some((_, may)) = LAYERS.iter().find(|(known, _)| *known == layer) else {
            problems.push(format!("src/{name}: layer \"{layer}\" has no row in tests/cpu/layers.rs"));
            continue;
        };
        seen.insert(layer.clone());
        for (number, line) in (1..).zip(std::fs::read_to_string(file).unwrap().lines()) {
            let code = line.split("//").next().unwrap_or(line);
            let wrong = crate_paths(code).into_iter().filter(|path| !is_allowed(path, &layer, may));
            problems.extend(wrong.map(|path| {
                format!("src/{name}:{number} uses crate::{path}; its row: {layer} may use {}", may.join(", "))
            }));
            if layer != "gpu" && code.contains("wgpu::") {
                problems.push(format!("src/{name}:{number} names wgpu; its row: only gpu does"));
            }
        }
    }
    assert!(problems.is_empty(), "{}\n(the table: \"Layers\" in ARCHITECTURE.md)", problems.join("\n"));
    assert!(seen.len() >= 9, "found only {seen:?}");
}

#[test]
fn the_reader_of_paths_sees_groups_and_long_paths() {
    assert_eq!(crate_paths("use crate::model::config::Family;"), ["model::config"]);
    assert_eq!(crate_paths("use crate::{plan::Plan, gpu::Gpu};"), ["plan::Plan", "gpu::Gpu"]);
    assert_eq!(crate_paths("|step: &crate::plan::Step| crate::vae::x()"), ["plan::Step", "vae::x"]);
    assert!(!is_allowed("model::graph", "io", &["model::config"]));
    assert!(is_allowed("model::config", "io", &["model::config"]));
}
