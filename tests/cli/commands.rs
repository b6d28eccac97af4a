//! Other commands: demo, plan, inspect, adapters, and every command's help.

use std::io::{Seek as _, SeekFrom, Write as _};

use serde_json::{Map, Value, json};
use wgvae::config::AutoencoderConfig;

use crate::tool::{Folder, decoder_weights, fixture_path, safetensors};

#[test]
fn the_demo_writes_a_picture() {
    let folder = Folder::new();
    let said = folder.run(&["demo"]).ok().stdout;
    assert!(said.contains("demo.png (512x512)") && said.contains("predicted") && said.contains("measured"), "{said}");
    let file = folder.read("demo.png");
    assert_eq!(&file[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(&file[16..24], [0, 0, 2, 0, 0, 0, 2, 0]);
}

#[test]
fn the_demo_needs_no_adapter_and_shaders_give_its_picture() {
    let folder = Folder::new();
    let said = folder.run_without_adapter(&["demo", "--threads", "1"]).ok().stdout;
    assert!(said.contains("on CPU (1 thread, "), "{said}");
    let alone = folder.read("demo.png");
    folder.run(&["demo", "--device", "cpu", "--threads", "3"]).ok();
    assert!(folder.read("demo.png") == alone, "three threads give another picture than one");
    let model = ["--model", "model", "--latents", "latents.safetensors", "-o", "halves.png"];
    let args = [&["decode", "--precision", "f16", "--threads", "1", "--json"], &model[..]].concat();
    let halves = folder.run_without_adapter(&args).json();
    assert_eq!(halves["plan"]["storage"], "packed_f16", "{halves}");
    assert_eq!(halves["measured_peak_bytes"], halves["predicted_peak_bytes"]);
    let said = folder.run(&["demo", "--both"]).ok().stdout;
    assert!(said.contains("both ways, levels at most "), "{said}");
}

#[test]
fn plans_need_no_gpu() {
    let folder = Folder::new();
    let plan = |args: &[&str]| folder.run_without_adapter(&[&["plan", "--json"], args].concat()).json();
    let sd15 = plan(&["--family", "sd15", "--size", "512x512"]);
    for name in ["predicted_peak_bytes", "weight_bytes", "largest_binding_bytes", "submissions", "macs"] {
        assert!(sd15[name].as_u64() > Some(0), "{name}: {}", sd15[name]);
    }
    assert!(sd15["largest_binding_bytes"].as_u64() <= Some(128 << 20));
    assert_eq!(sd15["storage"], "f16");
    assert_eq!(sd15["result"], json!({ "size": { "width": 512, "height": 512 }, "channels": 3, "frames": 1 }));

    let floats = plan(&["--family", "sd15", "--size", "512x512", "--precision", "f32"]);
    assert!(floats["predicted_peak_bytes"].as_u64() > sd15["predicted_peak_bytes"].as_u64());
    assert_eq!(floats["macs"], sd15["macs"]);
    assert_eq!(plan(&["--family", "sd15", "--size", "512x512", "--packed"])["storage"], "packed_f16");
    let fast = ["--family", "sd15", "--size", "512x512", "--precision", "fast"];
    assert_eq!(plan(&fast)["storage"], "fast_f16");
    let words = ["precision: expected f16 or f32, on a device without shader-f16, found fast"];
    folder.run_without_adapter(&[&["plan", "--packed"], &fast[..]].concat()).failed("no halves", 1, &words);

    for (more, word) in [(["--limits", "cpu"], "those of the CPU"), (["--precision", "f32"], "no halves to pack")] {
        let args = [&["plan", "--packed", "--family", "sd15", "--size", "64x64"], &more[..]].concat();
        folder.run_without_adapter(&args).failed("no shaders", 1, &["--packed", word]);
    }

    folder.write("limits.json", sd15["limits"].to_string().as_bytes());
    let from_file = plan(&["--family", "sd15", "--size", "512x512", "--limits", "limits.json"]);
    assert_eq!(from_file, sd15);

    let model = plan(&["--model", "model", "--size", "20x18", "--output", "raw"]);
    assert_eq!(model["input"], json!({ "size": { "width": 10, "height": 9 }, "channels": 8, "frames": 1 }));
    let text = folder.run_without_adapter(&["plan", "--model", "model", "--size", "20x18"]).ok().stdout;
    assert!(text.starts_with("10x9x8 -> 20x18x3") && text.contains("decoder.conv_in"), "{text}");
    let peak = text.split_once("peak ").and_then(|(_, rest)| rest.split_once("  (")).unwrap().0;
    let last = text.lines().last().unwrap();
    assert!(last.starts_with(&format!("predicted peak {peak}, about ")), "{last}");
}

#[test]
fn a_plan_without_a_network_names_both_flags() {
    let words = ["required", "<--model <PATH>|--family <NAME>>"];
    Folder::new().run_without_adapter(&["plan", "--size", "512x512"]).failed("no network", 2, &words);
}

#[test]
fn a_file_of_a_folder_is_opened_as_the_folder() {
    let folder = Folder::new();
    let plan = |model: &str| folder.run_without_adapter(&["plan", "--model", model, "--size", "20x18", "--json"]);
    let file = "model/diffusion_pytorch_model.safetensors";
    let named = plan(file);
    assert!(named.stderr.contains(&format!("note: {file}: using config.json beside it")), "{named:?}");
    assert_eq!(named.json(), plan("model").json());
    // This file may be another model's than config.json.
    folder.write("model/my.safetensors", &folder.read(file));
    folder.write("model/config.json", br#"{"_class_name": "AutoencoderTiny"}"#);
    let alone = plan("model/my.safetensors");
    alone.failed("groups that weights do not tell", 1, &["norm_num_groups"]);
    let warning = "warning: model/my.safetensors: config.json beside it is not used: it describes another model";
    assert!(alone.stderr.contains(warning), "{alone:?}");
    folder.write("model/config.json", b"{bad");
    let broken = plan("model/my.safetensors").stderr;
    assert!(broken.contains("warning: model/my.safetensors: config.json beside it is not used: "), "{broken}");
    folder.write("model/config.json", br#"{"_class_name": "AutoencoderTiny"}"#);
    plan(file).failed("another network", 1, &["_class_name", "as the weights have", "from config.json"]);
}

#[test]
fn norms_of_an_unpublished_model_are_not_guessed_without_a_word() {
    let folder = Folder::new();
    let mut config: Value = serde_json::from_slice(&folder.read("model/config.json")).unwrap();
    (config["block_out_channels"], config["norm_num_groups"]) = (json!([32, 64]), json!(8));
    let weights = decoder_weights(&AutoencoderConfig::from_json(&config.to_string()).unwrap());
    folder.write("model/my.safetensors", &safetensors(&weights));
    std::fs::remove_file(folder.path("model/config.json")).unwrap();
    let said =
        || folder.run_without_adapter(&["plan", "--model", "model/my.safetensors", "--size", "20x18"]).ok().stderr;
    let warning = "weights do not tell norm_num_groups: 32 are assumed";
    assert!(said().contains(warning), "{}", said());
    folder.write("model/config.json", config.to_string().as_bytes());
    assert!(!said().contains(warning), "{}", said());
}

#[test]
fn a_plan_predicts_what_a_decode_takes() {
    let folder = Folder::new();
    let adapter = folder.run(&["adapters", "--json"]).json()[0]["limits"].clone();
    folder.write("limits.json", adapter.to_string().as_bytes());
    let args = ["plan", "--model", "model", "--size", "20x18", "--precision", "f32", "--json"];
    for (device, limits) in [("gpu", "limits.json"), ("cpu", "cpu")] {
        let plan = folder.run_without_adapter(&[&args[..], &["--limits", limits]].concat()).json();
        let decode = folder.decode(&["-o", "out.png", "--json", "--device", device]).json();
        assert_eq!(plan["predicted_peak_bytes"], decode["measured_peak_bytes"], "{device}");
        if device == "gpu" {
            assert_eq!(folder.run(&[&args[..], &["--adapter", "0"]].concat()).json()["macs"], plan["macs"]);
        }
    }
}

/// Writes a sparse file with the tensors of a published checkpoint: only its header takes space on
/// the disk.
pub(crate) fn write_hollow(folder: &Folder, keys: &str, prefix: &str, name: &str) {
    let path = fixture_path("keys").join(keys);
    let shapes: Map<String, Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let (mut header, mut end) = (Map::new(), 0);
    for (tensor, shape) in &shapes {
        let elements: u64 = shape.as_array().unwrap().iter().map(|extent| extent.as_u64().unwrap()).product();
        let begin = end;
        end += elements * 2;
        let entry = json!({ "dtype": "F16", "shape": shape, "data_offsets": [begin, end] });
        header.insert(format!("{prefix}{tensor}"), entry);
    }
    let file = crate::tool::with_header(&Value::Object(header.clone()).to_string(), &[]);
    folder.write(name, &file);
    let mut opened = std::fs::OpenOptions::new().write(true).open(folder.path(name)).unwrap();
    opened.set_len(file.len() as u64 + end).unwrap();
    // wgvae refuses all-zero values in these tensors.
    for (tensor, entry) in header.iter().filter(|(tensor, _)| tensor.ends_with("quant_conv.weight")) {
        let begin = entry["data_offsets"][0].as_u64().unwrap_or_else(|| panic!("{tensor} has no place"));
        opened.seek(SeekFrom::Start(file.len() as u64 + begin)).unwrap();
        opened.write_all(&1_u16.to_le_bytes()).unwrap();
    }
}

#[test]
fn inspect_says_what_a_model_is() {
    let folder = Folder::new();
    let inspect = |model: &str| folder.run_without_adapter(&["inspect", "--json", "--model", model]).json();
    let toy = inspect("model");
    assert_eq!((&toy["layout"], &toy["can_decode"]), (&json!("diffusers"), &json!(true)));
    assert_eq!(toy["config"]["latent_channels"], 8);

    let cases = [
        ("sd15.diffusers.json", "", "diffusers", 4),
        ("sd15.diffusers_old_attn.json", "", "diffusers", 4),
        ("sd15.ldm.json", "first_stage_model.", "LDM", 4),
        ("sd3.ldm.json", "", "LDM", 16),
        ("flux1.ae_safetensors.json", "", "LDM", 16),
        ("cogview4.diffusers.json", "", "diffusers", 16),
    ];
    for (keys, prefix, layout, channels) in cases {
        write_hollow(&folder, keys, prefix, "hollow.safetensors");
        let facts = inspect("hollow.safetensors");
        assert_eq!(facts["layout"], layout, "{keys}");
        assert_eq!(facts["config"]["latent_channels"], channels, "{keys}");
        assert_eq!(facts["missing"], json!([]), "{keys}");
        assert_eq!(facts["can_decode"], true, "{keys}");
        assert_eq!(facts["element_types"]["F16"], facts["tensors"], "{keys}");
        assert!(facts["parameters"]["decoder"].as_u64() > Some(40_000_000), "{keys}: {}", facts["parameters"]);
    }
}

#[test]
fn inspect_says_what_a_model_can_do() {
    let folder = Folder::new();
    let cases = [
        ("sd15.ldm.json", "kl", [true, true]),
        ("flux2.bfl.json", "kl", [true, true]),
        ("taesd.diffusers.json", "tiny", [true, true]),
        ("taesd.upstream_encoder.json", "tiny", [false, true]),
        ("taef2.upstream_decoder.json", "tiny", [true, false]),
        ("wan21.original.json", "wan", [true, true]),
        ("seedvr2.original.json", "seedvr", [true, true]),
    ];
    for (keys, network, [decode, encode]) in cases {
        write_hollow(&folder, keys, "", "hollow.safetensors");
        let facts = folder.run_without_adapter(&["inspect", "--json", "--model", "hollow.safetensors"]).json();
        assert_eq!(facts["config"]["network"], network, "{keys}");
        assert_eq!((&facts["can_decode"], &facts["can_encode"]), (&json!(decode), &json!(encode)), "{keys}");
        let text = folder.run_without_adapter(&["inspect", "--model", "hollow.safetensors"]).ok().stdout;
        assert_eq!(text.contains("the encoder: there is none in this model"), !encode, "{text}");
        assert_eq!(text.contains("the decoder: there is none in this model"), !decode, "{text}");
    }
}

#[test]
fn inspect_says_what_is_missing_and_what_is_unknown() {
    let folder = Folder::new();
    let mut weights = crate::tool::weights();
    weights.remove("decoder.conv_norm_out.bias");
    folder.write_weights(&weights);
    let facts = folder.run_without_adapter(&["inspect", "--json", "--model", "model"]).json();
    assert_eq!((&facts["can_decode"], &facts["missing"]), (&json!(false), &json!(["decoder.conv_norm_out.bias"])));

    write_hollow(&folder, "sd15.diffusers.json", "", "hollow.safetensors");
    let text = folder.run_without_adapter(&["inspect", "--model", "hollow.safetensors"]).ok().stdout;
    assert!(text.contains("name it with --family, one of sd15, sd21, sdxl"), "{text}");
    let args = ["inspect", "--model", "hollow.safetensors", "--family", "sdxl"];
    let text = folder.run_without_adapter(&args).ok().stdout;
    assert!(text.contains("factor 0.13025"), "{text}");
    let args = ["decode", "--model", "hollow.safetensors", "--latents", "latents.safetensors", "-o", "out.png"];
    folder.run(&args).failed("channels", 1, &["4 channels", "8 channels"]);
}

#[test]
fn adapters_are_listed() {
    let folder = Folder::new();
    let adapters = folder.run(&["adapters", "--json"]).json();
    let first = &adapters[0];
    assert!(first["name"].is_string() && first["kernels"].is_object() && first["limits"].is_object(), "{first}");
    let text = folder.run(&["adapters"]).ok().stdout;
    for word in [first["name"].as_str().unwrap(), "shader-f16", "largest storage binding", "kernels"] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
}

#[test]
fn every_help_has_an_example() {
    let folder = Folder::new();
    for command in ["demo", "decode", "compare-tiling", "inspect", "plan", "memory", "adapters"] {
        let help = folder.run(&[command, "--help"]).ok().stdout;
        assert!(help.contains("Example") && help.contains(&format!("\n  wgvae {command} ")), "{help}");
        assert!(help.contains("--json"), "{help}");
    }
    let help = folder.run(&["--help"]).ok().stdout;
    assert!(help.contains("Exit codes") && help.contains("wgvae demo"), "{help}");
    assert!(folder.run(&["--version"]).ok().stdout.starts_with("wgvae "));
}
