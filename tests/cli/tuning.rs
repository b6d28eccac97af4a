//! `wgvae tune` and its effect on decodes.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::tool::{Folder, Outcome, finish};

/// Runs the command with a cache in the folder.
fn run(folder: &Folder, args: &[&str]) -> Outcome {
    finish(folder.command(args).env("XDG_CACHE_HOME", folder.path("cache")))
}

fn decode(folder: &Folder, more: &[&str]) -> Outcome {
    let args = ["decode", "--model", "model", "--latents", "latents.safetensors", "-o", "out.npy", "--device", "gpu"];
    run(folder, &[&args, more].concat())
}

fn remembered(folder: &Folder) -> PathBuf {
    folder.path("cache/wgvae/kernels.json")
}

/// Returns the plan's kernels from the report of a decode.
fn kernels(outcome: Outcome) -> Value {
    outcome.json()["plan"]["choice"].clone()
}

#[test]
fn what_was_measured_is_kept_and_taken_and_changes_no_bit() {
    let folder = Folder::new();
    let dry = run(&folder, &["tune", "--dry-run", "--json"]).json();
    assert!(!remembered(&folder).exists());
    let device = dry["device"].as_str().unwrap();
    let trials = dry["tuning"]["trials"].as_array().unwrap();
    assert!(trials.len() > 1, "{dry}");
    assert!(trials.iter().all(|trial| trial["same_bits"] == true && trial["seconds"].as_f64().unwrap() > 0.0), "{dry}");

    let rules = &trials[0]["kernels"];
    let other = trials.iter().map(|trial| &trial["kernels"]).find(|kernels| *kernels != rules).unwrap();
    std::fs::create_dir_all(remembered(&folder).parent().unwrap()).unwrap();
    let known = json!({ device: { "kernels": other, "trials": [] } });
    std::fs::write(remembered(&folder), known.to_string()).unwrap();
    assert_eq!(&kernels(decode(&folder, &["--json"])), other);
    let tuned = folder.read("out.npy");
    assert_eq!(&kernels(decode(&folder, &["--json", "--no-tune"])), rules);
    assert_eq!(folder.read("out.npy"), tuned);
    assert_eq!(std::fs::read_to_string(remembered(&folder)).unwrap(), known.to_string(), "decodes only read it");

    let said = run(&folder, &["tune"]).ok().stdout;
    assert!(said.contains("used") && said.contains(&remembered(&folder).display().to_string()), "{said}");
    let kept: Value = serde_json::from_slice(&std::fs::read(remembered(&folder)).unwrap()).unwrap();
    assert!(!kept[device]["trials"].as_array().unwrap().is_empty(), "{kept}");
}

#[test]
fn a_first_decode_measures_nothing_and_takes_what_is_predicted() {
    let folder = Folder::new();
    let report = decode(&folder, &["--json"]).json();
    assert_eq!(report["measured_peak_bytes"], report["predicted_peak_bytes"], "{report}");
    assert!(!remembered(&folder).exists(), "kernels are measured when somebody asks");
}

#[test]
fn a_choice_that_is_impossible_is_said_and_kept() {
    let folder = Folder::new();
    let device = run(&folder, &["tune", "--dry-run", "--json"]).json();
    let mut other = device["tuning"]["kernels"].clone();
    other["winograd_scratch_bytes"] = json!(0);
    let impossible = json!({ device["device"].as_str().unwrap(): { "kernels": other, "trials": [] } }).to_string();
    std::fs::create_dir_all(remembered(&folder).parent().unwrap()).unwrap();
    std::fs::write(remembered(&folder), &impossible).unwrap();
    let outcome = decode(&folder, &[]).ok();
    assert!(outcome.stderr.contains("using the kernels that rules choose"), "{outcome:?}");
    assert!(outcome.stderr.contains("the choice of kernels"), "{outcome:?}");
    assert_eq!(std::fs::read_to_string(remembered(&folder)).unwrap(), impossible);
}

#[test]
fn a_damaged_file_of_kernels_is_replaced_with_a_note() {
    let folder = Folder::new();
    std::fs::create_dir_all(remembered(&folder).parent().unwrap()).unwrap();
    for text in ["{", "[]", r#"{ "device": { "of": "another version" } }"#] {
        std::fs::write(remembered(&folder), text).unwrap();
        let outcome = run(&folder, &["tune"]).ok();
        assert!(outcome.stderr.contains("kernels.json: `wgvae tune` did not write this file"), "{outcome:?}");
        let kept: Value = serde_json::from_slice(&std::fs::read(remembered(&folder)).unwrap()).unwrap();
        assert_eq!(kept.as_object().unwrap().len(), 1, "{kept}");
        let again = decode(&folder, &[]).ok();
        assert!(!again.stderr.contains("kernels.json"), "{again:?}");
    }
}
