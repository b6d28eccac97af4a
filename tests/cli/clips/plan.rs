//! `wgvae plan --frames` and `wgvae inspect` of models for video.

use serde_json::{Value, json};

use crate::commands::write_hollow;
use crate::tool::{Folder, Outcome};

fn plan(folder: &Folder, more: &[&str]) -> Outcome {
    folder.run_without_adapter(&[&["plan", "--frames"], more].concat())
}

#[test]
fn a_plan_predicts_what_a_clip_takes() {
    let folder = Folder::for_video();
    let adapter = folder.run(&["adapters", "--json"]).json()[0]["limits"].clone();
    folder.write("limits.json", adapter.to_string().as_bytes());
    for (device, limits) in [("gpu", "limits.json"), ("cpu", "cpu")] {
        check_prediction(&folder, device, limits);
    }
}

/// Checks that plans for `limits` predict what clips take on `device`.
fn check_prediction(folder: &Folder, device: &str, limits: &str) {
    let on = ["--device", device];
    let model = ["--model", "model", "--precision", "f32", "--limits", limits, "--json"];
    let planned = |more: &[&str]| plan(folder, &[more, &model].concat()).json();
    let decode = planned(&["17", "--size", "40x24"]);
    let done = folder.decode_clip(&[&["-o", "frames/%d.png", "--json"], &on[..]].concat()).json();
    assert_eq!(decode["predicted_peak_bytes"], done["measured_peak_bytes"]);
    assert_eq!(decode["clip"]["first_plan"]["macs"], done["clip"]["first_plan"]["macs"]);
    let of = |report: &Value| [&report["clip"]["state_bytes"], &report["clip"]["latent_frames"]].map(Clone::clone);
    assert_eq!(of(&decode), of(&done));
    let encode = planned(&["17", "--size", "47x31", "--encode"]);
    let done = folder.run(&Folder::encoding("pixels.npy", &[&["-o", "out.npy", "--json"], &on[..]].concat())).json();
    assert_eq!(encode["predicted_peak_bytes"], done["measured_peak_bytes"]);

    if device == "gpu" {
        let budget = (decode["predicted_peak_bytes"].as_u64().unwrap() * 3 / 5).to_string();
        let budget = ["--memory-budget", &budget, "--parking", "on"];
        let within = planned(&[&["17", "--size", "40x24"], &budget[..]].concat());
        let done = folder.decode_clip(&[&["-o", "frames/%d.png", "--json"], &budget[..], &on].concat()).json();
        assert_eq!(within["predicted_peak_bytes"], done["measured_peak_bytes"]);
        assert_eq!(within["clip"]["host_bytes"], done["clip"]["host_bytes"]);
    }
}

#[test]
fn plans_of_published_models_for_video() {
    let folder = Folder::for_video();
    let wan = |more: &[&str]| plan(&folder, &[&["81", "--family", "wan21", "--size", "832x480"], more].concat());
    let text = wan(&[]).ok().stdout;
    for words in ["81 frames of 832x480 in 21 parts", "kept between parts", "\nfirst ", "\neach later"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    let facts = wan(&["--json"]).json();
    assert_eq!((&facts["clip"]["frames"], &facts["clip"]["latent_frames"]), (&json!(81), &json!(21)));
    assert_eq!(facts["plan"]["result"]["frames"], 4);
    // The peak does not depend on the length of the clip.
    let long = plan(&folder, &["8001", "--family", "wan21", "--size", "832x480", "--json"]).json();
    assert_eq!(long["predicted_peak_bytes"], facts["predicted_peak_bytes"]);
    let one = plan(&folder, &["1", "--family", "wan21", "--size", "832x480"]).ok().stdout;
    assert!(one.contains("1 frame of 832x480 in 1 part,") && !one.contains("each later"), "{one}");
    let encode = wan(&["--encode", "--json"]).json();
    assert_eq!(encode["plan"]["input"]["frames"], 4);

    let refused = |args: &[&str], words: &[&str]| plan(&folder, args).failed(&format!("{args:?}"), 1, words);
    refused(&["11", "--family", "wan21", "--size", "64x64"], &["--frames", "such as 9 or 13", "found 11"]);
    refused(&["2", "--family", "seedvr2", "--size", "64x64"], &["--frames", "such as 1 or 5", "found 2"]);
    refused(&["9", "--family", "sd15", "--size", "64x64"], &["--frames", "a model for video", "9 frames with "]);
    refused(&["9", "--family", "wan21", "--size", "60x64"], &["--size", "multiples of 8 pixels", "60x64"]);
    assert_eq!(plan(&folder, &["0", "--family", "wan21", "--size", "64x64"]).code, Some(2));
    let budgets = ["9", "--family", "wan21", "--size", "64x64", "--budgets", "1GiB"];
    assert_eq!(plan(&folder, &budgets).code, Some(2));
}

/// Tests that files without the tensors for clips can still decode single images.
#[test]
fn inspect_says_what_video_wants() {
    let folder = Folder::for_video();
    let inspect = |more: &[&str]| folder.run_without_adapter(&[&["inspect", "--model"], more].concat());
    for keys in ["wan21.original.json", "seedvr2.original.json"] {
        write_hollow(&folder, keys, "", "hollow.safetensors");
        let clips = inspect(&["hollow.safetensors", "--json"]).json()["clips"].clone();
        assert_eq!([&clips["can_decode"], &clips["can_encode"]], [true, true], "{keys}: {clips}");
    }
    write_hollow(&folder, "sd15.diffusers.json", "", "hollow.safetensors");
    assert_eq!(inspect(&["hollow.safetensors", "--json"]).json().get("clips"), None);

    folder.without_time();
    let facts = inspect(&["model", "--json"]).json();
    assert_eq!([&facts["can_decode"], &facts["clips"]["can_decode"]], [true, false]);
    assert_eq!(facts["clips"]["missing_to_decode"].as_array().map(Vec::len), Some(1), "{}", facts["clips"]);
    let text = inspect(&["model"]).ok().stdout;
    assert!(text.contains("video: missing to decode  1 tensors: decoder."), "{text}");
    assert!(text.contains("video: missing to encode  nothing"), "{text}");
}
