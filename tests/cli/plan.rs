//! `wgvae plan`: encodes, and requests that cannot be planned.

use serde_json::json;
use test_kit::formula;

use crate::commands::write_hollow;
use crate::tool::{Entry, Folder};

#[test]
fn encodes_are_planned_with_and_without_a_budget() {
    let folder = Folder::new();
    let plan = |more: &[&str]| {
        folder.run_without_adapter(&[&["plan", "--encode", "--family", "sd15", "--size", "256x192"], more].concat())
    };
    let whole = plan(&["--json"]).json();
    assert_eq!(whole["input"], json!({ "size": { "width": 256, "height": 192 }, "channels": 3, "frames": 1 }));
    assert_eq!(whole["result"], json!({ "size": { "width": 32, "height": 24 }, "channels": 8, "frames": 1 }));
    let text = plan(&[]).ok().stdout;
    assert!(text.starts_with("256x192x3 -> 32x24x8 ") && text.contains("encoder.conv_in"), "{text}");

    let peak = whole["predicted_peak_bytes"].as_u64().unwrap();
    let half = (peak / 2).to_string();
    let within = plan(&["--memory-budget", &half, "--json"]).json();
    assert!(within["predicted_peak_bytes"].as_u64() <= Some(peak / 2), "{}", within["predicted_peak_bytes"]);
    assert_eq!(within["result"], whole["result"]);

    let rows = plan(&["--budgets", &half, "--json", "--svg", "budgets.svg"]).json();
    assert_eq!(rows["plans"][0]["predicted_peak_bytes"], whole["predicted_peak_bytes"]);
    assert_eq!(rows["plans"][1]["predicted_peak_bytes"], within["predicted_peak_bytes"]);
    assert!(folder.read("budgets.svg").starts_with(b"<svg"));
    plan(&["--memory-budget", "1KiB"]).failed("1 KiB", 1, &["smallest budget found", "1.0 KiB"]);
}

#[test]
fn a_plan_predicts_what_an_encode_takes() {
    let folder = Folder::of_both();
    let adapter = folder.run(&["adapters", "--json"]).json()[0]["limits"].clone();
    folder.write("limits.json", adapter.to_string().as_bytes());
    // Floats of a size that is no multiple of the model's 2 pixels are encoded as they are.
    let args = ["plan", "--encode", "--model", "model", "--size", "20x19", "--json"];
    for (device, limits) in [("gpu", "limits.json"), ("cpu", "cpu")] {
        let plan = folder.run_without_adapter(&[&args[..], &["--limits", limits]].concat()).json();
        let encode = folder.encode(&["--image", "image.npy", "-o", "out.npy", "--json", "--device", device]).json();
        assert_eq!(encode["images"][0]["size"], json!({ "width": 20, "height": 19 }));
        assert_eq!(plan["predicted_peak_bytes"], encode["measured_peak_bytes"], "{device}");
    }
}

#[test]
fn a_clip_beyond_all_bounds_is_refused() {
    let args = ["plan", "--family", "hunyuan_video15", "--size", "64x96", "--frames", "17179869185"];
    Folder::new().run_without_adapter(&args).failed("2^32 latents", 1, &["--frames", "fewer than 2^32", "4294967297"]);
}

/// Tests packed latents: each latent of FLUX.2's diffusion model covers 16 x 16 pixels, packed from
/// the VAE's own of 8 x 8.
#[test]
fn the_size_is_that_of_the_picture_where_latents_are_packed() {
    let folder = Folder::new();
    let plan = |args: &[&str]| folder.run_without_adapter(&[&["plan", "--family", "flux2", "--json"], args].concat());
    let size = json!({ "width": 64, "height": 32 });
    assert_eq!(plan(&["--size", "64x32"]).json()["result"]["size"], size);
    assert_eq!(plan(&["--size", "64x32", "--encode"]).json()["input"]["size"], size);
    plan(&["--size", "24x32"]).failed("half a latent", 1, &["--size", "multiples of 16 pixels", "24x32"]);
}

/// Tests that the plan of a preview is that of the decode that makes it, and that a linear map
/// takes what its picture takes.
#[test]
fn previews_are_planned() {
    let folder = Folder::new();
    let plan = |args: &[&str]| folder.run_without_adapter(&[&["plan"], args].concat());
    let sizes = ["--size", "1024x768", "--preview", "100"];
    let mapped = plan(&[&["--family", "sdxl", "--json"], &sizes[..]].concat()).json();
    assert_eq!(mapped["preview"]["size"], json!({ "width": 64, "height": 48 }));
    assert_eq!([&mapped["predicted_peak_bytes"], &mapped["picture_bytes"]], [0, 64 * 48 * 4]);
    let text = plan(&[&["--family", "sdxl"], &sizes[..]].concat()).ok().stdout;
    assert!(text.starts_with("preview of 64x48 pixels by the linear map of sdxl: no weights, no device"), "{text}");
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 4, 96, 128])));
    let args = ["preview", "--family", "sdxl", "--latents", "latents.safetensors", "--max-side", "100", "-o", "p.png"];
    folder.run_without_adapter(&args).ok();
    let picture = image::load_from_memory(&folder.read("p.png")).unwrap();
    assert_eq!((picture.width(), picture.height()), (64, 48));

    for (model, size) in [("taesd", "96x72"), ("seedvr2", "96x72")] {
        let preview = plan(&[&["--family", model, "--json"], &sizes[..]].concat()).json();
        let decode = plan(&["--family", model, "--json", "--size", size]).json();
        assert_eq!(preview, decode, "{model}");
    }

    let budget = [&["--family", "sdxl", "--memory-budget", "1GiB"], &sizes[..]].concat();
    plan(&budget).failed("a budget", 1, &["--preview", "no memory budget"]);
    let adapter = ["--family", "sdxl", "--size", "64x64", "--preview", "64", "--adapter", "nowhere"];
    plan(&adapter).failed("an adapter", 1, &["--preview", "no --adapter"]);
    let small = ["--family", "taesd", "--size", "64x64", "--preview", "7"];
    plan(&small).failed("no room for a latent", 1, &["--preview", "at least 8"]);
    for other in ["--encode", "--frames=1"] {
        assert_eq!(plan(&[&["--family", "taesd", other], &sizes[..]].concat()).code, Some(2), "{other}");
    }
}

#[test]
fn a_plan_predicts_what_a_preview_takes() {
    let folder = Folder::new();
    folder.write_latents(&Entry::f32(&formula::latents(&[1, 8, 9, 10])));
    let args = ["plan", "--model", "model", "--size", "20x18", "--precision", "f32", "--limits", "cpu"];
    let preview = ["--preview", "12", "--json"];
    let plan = folder.run_without_adapter(&[&args[..], &preview].concat()).json();
    let decode = folder.decode(&["-o", "p.png", "--device", "cpu", "--preview", "12", "--json"]).json();
    assert_eq!(plan["predicted_peak_bytes"], decode["measured_peak_bytes"]);
}

#[test]
fn what_cannot_be_encoded_or_decoded_is_not_planned() {
    let folder = Folder::new();
    let plan = |args: &[&str]| folder.run_without_adapter(&[&["plan"], args].concat());
    let sd15 = |size: &str| plan(&["--encode", "--family", "sd15", "--size", size]);
    sd15("7x64").failed("too small", 1, &["--size", "at least 8x8 pixels", "7x64"]);
    sd15("0x64").failed("nothing", 1, &["--size", "at least 1 pixel", "0x64"]);
    sd15("4000000x8").failed("too large", 1, &["16384 latents each way", "500000x1 latents"]);
    assert_eq!(plan(&["--encode", "--family", "sd15", "--size", "64x64", "--output", "raw"]).code, Some(2));

    plan(&["--encode", "--model", "model", "--size", "20x18"]).failed("a decoder", 1, &["model", "encoder"]);
    write_hollow(&folder, "taesd.upstream_encoder.json", "", "encoder.safetensors");
    let of_encoder = ["--model", "encoder.safetensors", "--size", "64x64"];
    plan(&of_encoder).failed("an encoder", 1, &["encoder.safetensors", "a model with decoder weights"]);
    plan(&[&of_encoder[..], &["--encode"]].concat()).ok();
}
