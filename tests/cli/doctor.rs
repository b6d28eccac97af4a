//! `wgvae doctor`: what it finds, what is missing, and the exit code. Unit tests beside the code
//! check other machines, on plain facts.

use serde_json::Value;

use crate::tool::{Folder, Outcome, finish};

/// Runs `wgvae doctor` with the hub's cache in the folder and these environment variables.
fn doctor(folder: &Folder, args: &[&str], settings: &[(&str, &str)]) -> Outcome {
    let mut command = folder.command(&[&["doctor"], args].concat());
    finish(command.env("HF_HOME", folder.path("huggingface")).envs(settings.iter().copied()))
}

/// Returns state and text of the line called `name`.
#[track_caller]
fn line(found: &Value, name: &str) -> (String, String) {
    let checks = found["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name} in {found}"));
    let text = |field: &str| check[field].as_str().unwrap().to_owned();
    (text("state"), text("text"))
}

#[test]
fn a_machine_that_decodes_is_ready() {
    let folder = Folder::new();
    let found = doctor(&folder, &["--json"], &[]).json();
    assert_eq!(found["ready"], true, "{found}");
    let best = folder.run(&["adapters", "--json"]).json()[0].clone();
    let (state, text) = line(&found, "adapter 0");
    assert_eq!(state, "ok");
    for field in ["name", "backend", "device_type", "driver"] {
        assert!(text.contains(best[field].as_str().unwrap()), "{field} is not in {text}");
    }
    assert_eq!(line(&found, "device").0, "ok");
    assert_eq!(line(&found, "shader-f16").0, if best["limits"]["shader_f16"] == true { "ok" } else { "hint" });

    let said = doctor(&folder, &[], &[]).ok().stdout;
    assert_eq!(said.lines().count(), found["checks"].as_array().unwrap().len(), "{said}");
    for line in said.lines() {
        assert!(line.starts_with("ok ") || line.starts_with("hint "), "{line}");
    }
}

#[test]
fn without_an_adapter_a_machine_is_ready_and_told_what_a_gpu_needs() {
    let folder = Folder::new();
    let said = folder.run_without_adapter(&["doctor"]).ok();
    let hints: Vec<&str> = said.stdout.lines().filter(|line| line.starts_with("hint ")).collect();
    for words in [["adapter", "run on the CPU"], ["VK_DRIVER_FILES", "/nonexistent/driver.json"]] {
        assert!(hints.iter().any(|line| words.iter().all(|word| line.contains(word))), "{words:?}: {}", said.stdout);
    }
    let found = folder.run_without_adapter(&["doctor", "--json"]).json();
    assert_eq!(found["ready"], true, "{found}");
    assert!(line(&found, "cpu").1.contains("thread"), "{found}");
}

#[test]
fn the_hub_is_looked_at_without_asking_it() {
    const TOKEN: &str = "hf_nobodys";
    let folder = Folder::new();
    // No server listens at this address.
    let endpoint = ("HF_ENDPOINT", "http://127.0.0.1:9");
    let found = doctor(&folder, &["--json"], &[endpoint]).json();
    let (state, text) = line(&found, "hub cache");
    assert!(state == "ok" && text.contains("huggingface"), "{text}");
    assert_eq!(line(&found, "hub token").0, "hint");
    assert!(line(&found, "hub").1.contains(endpoint.1), "{found}");
    assert!(!folder.names().contains(&"huggingface".to_owned()), "nothing is made");

    let with_token = doctor(&folder, &["--json"], &[("HF_TOKEN", TOKEN), ("HF_HUB_OFFLINE", "1")]).ok();
    assert!(!with_token.stdout.contains(TOKEN), "{}", with_token.stdout);
    let found: Value = serde_json::from_str(&with_token.stdout).unwrap();
    assert_eq!(line(&found, "hub token").0, "ok");
    assert!(line(&found, "hub").1.contains("HF_HUB_OFFLINE"), "{found}");

    // A file stands in place of the folder.
    folder.write("huggingface", b"");
    let found = doctor(&folder, &["--json"], &[]).json();
    let (state, text) = line(&found, "hub cache");
    assert!(state == "hint" && text.contains("HF_HOME"), "{state} {text}");
}
