//! Scripts of the release workflow, as far as they run without GitHub: `.ci/archive` and
//! `.ci/release-notes`.

use std::path::Path;
use std::process::{Command, Stdio};

use test_kit::repository;

use crate::tool::{Folder, Outcome, finish};

fn run(program: &Path, args: &[&str]) -> Outcome {
    finish(Command::new(program).args(args).stdin(Stdio::null()))
}

#[test]
fn an_archive_has_all_that_people_need() {
    let folder = Folder::new();
    let target = "x86_64-unknown-linux-gnu";
    let out = folder.path("release");
    let archive = repository().join(".ci/archive");
    run(&archive, &[env!("CARGO_BIN_EXE_wgvae"), target, out.to_str().unwrap()]).ok();
    let name = format!("wgvae-{}-{target}", env!("CARGO_PKG_VERSION"));
    let file = out.join(format!("{name}.tar.gz"));
    let listed = run(Path::new("tar"), &["-tzf", file.to_str().unwrap()]).ok().stdout;
    let listed: Vec<&str> = listed.lines().collect();
    for wanted in [
        "wgvae",
        "README.md",
        "CHANGELOG.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        "man1/wgvae-decode.1",
        "completions/wgvae.zsh",
    ] {
        assert!(listed.contains(&format!("{name}/{wanted}").as_str()), "{wanted} is not in {listed:?}");
    }
    // A program that does not run gives no archive.
    let broken = Folder::new();
    let out = broken.path("release");
    assert_ne!(run(&archive, &["/bin/false", target, out.to_str().unwrap()]).code, Some(0));
    assert!(!out.exists() || std::fs::read_dir(out).unwrap().next().is_none());
}

/// Makes a folder with the files that contain a version, and the script.
fn versioned(changelog: &str) -> Folder {
    let folder = Folder::new();
    for name in [".ci", "python", "web"] {
        std::fs::create_dir(folder.path(name)).unwrap();
    }
    for name in [".ci/release-notes", "Cargo.toml", "python/Cargo.toml", "web/package.json"] {
        std::fs::copy(repository().join(name), folder.path(name)).unwrap();
    }
    folder.write("CHANGELOG.md", changelog.as_bytes());
    folder
}

#[test]
fn notes_are_the_changelogs_entry_of_the_version_that_all_have() {
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    let entry = format!(
        "# Changelog\n\n## [Unreleased]\n\n- Later.\n\n## [{VERSION}] - 2026-12-01\n\n### Added\n\n- This.\n\n## [0.0.1] - 2026-01-01\n\n- Before.\n"
    );
    let notes = |folder: &Folder, version: &str| run(&folder.path(".ci/release-notes"), &[version]);
    let folder = versioned(&entry);
    assert_eq!(notes(&folder, VERSION).ok().stdout.trim(), "### Added\n\n- This.");

    let refused = |folder: &Folder, version: &str, words: &[&str]| {
        let outcome = notes(folder, version);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{outcome:?}");
        assert!(words.iter().all(|word| outcome.stderr.contains(word)), "{words:?}: {}", outcome.stderr);
    };
    refused(&folder, "9.9.9", &["Cargo.toml", "9.9.9"]);
    let package = String::from_utf8(folder.read("web/package.json")).unwrap();
    folder.write(
        "web/package.json",
        package.replace(&format!("\"version\": \"{VERSION}\""), "\"version\": \"0.0.9\"").as_bytes(),
    );
    refused(&folder, VERSION, &["web/package.json", "0.0.9"]);
    refused(&versioned("# Changelog\n\n## [Unreleased]\n\n- This.\n"), VERSION, &["CHANGELOG.md", VERSION]);
    // An entry without content.
    refused(&versioned(&entry.replace("### Added\n\n- This.\n", "")), VERSION, &["CHANGELOG.md", VERSION]);
}
