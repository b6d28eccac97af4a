//! Tests of the tables of crates and layers in ARCHITECTURE.md: each crate depends only on those
//! below, and every `crate::` path in `src/` leads to a layer below.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use test_kit::repository;

/// Dependencies that only the crates above the library may have. `ureq` is the library's if its
/// feature `hub` asks for it.
const NOT_OF_THE_LIBRARY: &[&str] = &["clap", "image", "png", "y4m"];

/// Names of a row, and the names that they may use.
type Row = (Vec<String>, Vec<String>);

/// Returns the rows of the table below a heading of ARCHITECTURE.md: the names in the first cell,
/// and those in the third.
fn table(heading: &str) -> Vec<Row> {
    let text = std::fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).unwrap();
    let lines = section.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    lines.skip(2).map(row).collect()
}

/// Reads a row. "each other" stands for the names of the row itself.
fn row(line: &str) -> Row {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let names: Vec<String> = cells[1].split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let mut may = Vec::new();
    for used in cells[3].split(", ").map(|used| used.trim_matches('`')) {
        match used {
            "nothing" => {}
            "each other" => may.extend_from_slice(&names),
            other => may.push(other.to_owned()),
        }
    }
    (names, may)
}

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

fn is_allowed(path: &str, layer: &str, may: &[String]) -> bool {
    let within = |allowed: &str| path == allowed || path.starts_with(&format!("{allowed}::"));
    within(layer) || may.iter().any(|allowed| allowed == "all" || within(allowed))
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
    let (root, crates) = (repository(), table("Crates"));
    for folder in std::fs::read_dir(root.join("crates")).unwrap() {
        let folder = format!("crates/{}/", folder.unwrap().file_name().to_str().unwrap());
        assert!(crates.iter().any(|(known, _)| known[0] == folder), "{folder} has no row in ARCHITECTURE.md");
    }
    for (folders, may) in &crates {
        let is_library = folders[0] == "src/";
        let folder = if is_library { "." } else { &folders[0] };
        let manifest = std::fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap();
        let used = dependencies(&manifest);
        let ours: Vec<&str> = used.iter().copied().filter(|name| name.starts_with("wgvae")).collect();
        assert_eq!(ours, *may, "{folder}: Cargo.toml and its row in ARCHITECTURE.md");
        assert!(!used.is_empty(), "{folder}: no dependencies were read");
        if is_library {
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
    let src = repository().join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    files.sort();
    let layers = table("Layers");
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for file in &files {
        let name = file.strip_prefix(&src).unwrap().to_str().unwrap().to_owned();
        let layer = name.split(['/', '\\', '.']).next().unwrap().to_owned();
        let Some((_, may)) = layers.iter().find(|(known, _)| known.contains(&layer)) else {
            problems.push(format!("src/{name}: layer \"{layer}\" has no row"));
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
    let listed: BTreeSet<String> = layers.into_iter().flat_map(|(names, _)| names).collect();
    assert_eq!(seen, listed, "layers with files, and those in the table");
}

#[test]
fn the_reader_of_tables_sees_names_and_what_they_may_use() {
    let names = |of: &[&str]| of.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let read = row("| `a`, [`b`](c) | `d` | each other, e, `f::g` | h |");
    assert_eq!(read, (names(&["a", "b"]), names(&["a", "b", "e", "f::g"])));
    assert_eq!(row("| `a` | b | nothing | c |"), (names(&["a"]), Vec::new()));
}

#[test]
fn the_reader_of_paths_sees_groups_and_long_paths() {
    assert_eq!(crate_paths("use crate::model::config::Family;"), ["model::config"]);
    assert_eq!(crate_paths("use crate::{plan::Plan, gpu::Gpu};"), ["plan::Plan", "gpu::Gpu"]);
    assert_eq!(crate_paths("|step: &crate::plan::Step| crate::vae::x()"), ["plan::Step", "vae::x"]);
    let may = ["model::config".to_owned()];
    assert!(!is_allowed("model::graph", "io", &may));
    assert!(is_allowed("model::config", "io", &may));
    assert!(is_allowed("model::graph", "lib", &["all".to_owned()]));
}
