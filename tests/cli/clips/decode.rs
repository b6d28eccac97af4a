//! Decodes of clips that work.

use std::process::Stdio;

use serde_json::{Value, json};
use test_kit::formula;
use wgvae::HostTensor;

use super::{LATENTS, assert_close};
use crate::tool::{Folder, fixture};

#[test]
fn floats_are_those_of_the_class_and_a_budget_changes_no_bit() {
    let folder = Folder::for_video();
    let said = folder.decode_clip(&["-o", "out.npy"]).ok().stdout;
    for words in ["wrote out.npy (17 frames, 40x24)", "in 5 parts", "predicted", "kept between parts"] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
    assert_close(&folder.npy("out.npy"), &fixture("clip_wan", "frames"));
    let whole = folder.decode_clip(&["-o", "again.npy", "--json", "--device", "gpu"]).json();
    let half = (whole["predicted_peak_bytes"].as_u64().unwrap() * 3 / 5).to_string();
    let more = ["--memory-budget", &half, "--parking", "on", "--limits", "webgpu-default"];
    let within = folder.decode_clip(&[&["-o", "within.npy", "--json"], &more[..]].concat()).json();
    assert!(within["measured_peak_bytes"].as_u64() <= half.parse().ok(), "{}", within["measured_peak_bytes"]);
    assert!(within["clip"]["host_bytes"].as_u64() > Some(0), "{}", within["clip"]["host_bytes"]);
    assert_eq!(folder.read("within.npy"), folder.read("again.npy"));
}

#[test]
fn tiles_are_those_of_diffusers() {
    let folder = Folder::for_video();
    folder.write_clip(&formula::latents(&[1, 16, 3, 7, 9]));
    let tiles = ["--tiling", "blend", "--tile-size", "32", "--tile-overlap", "8"];
    for device in ["gpu", "cpu"] {
        let report =
            folder.decode_clip(&[&["-o", "out.npy", "--json", "--device", device], &tiles[..]].concat()).json();
        assert_close(&folder.npy("out.npy"), &fixture("tiled_clip_wan", "frames"));
        assert_eq!(report["tiling"], json!({ "name": "blend", "tile_pixels": 32, "overlap_pixels": 8, "tiles": 9 }));
        assert_eq!(report["measured_peak_bytes"], report["predicted_peak_bytes"], "{device}");
        let clip = &report["clip"];
        // What tiles keep for their next part is in host memory, and the CPU has no other.
        assert_eq!(clip["host_bytes"].as_u64() > Some(0), device == "gpu", "{clip}");
    }
}

#[test]
fn the_report_of_a_clip_has_what_it_promises() {
    let folder = Folder::for_video();
    let printed = folder.decode_clip(&["-o", "frames/%03d.png", "--report", "report.json", "--json"]).json();
    let report: Value = serde_json::from_slice(&folder.read("report.json")).unwrap();
    assert_eq!(printed, report);
    assert_eq!(report["measured_peak_bytes"], report["predicted_peak_bytes"]);
    assert_eq!(report["files"].as_array().map(Vec::len), Some(17));
    let clip = &report["clip"];
    assert_eq!((&clip["frames"], &clip["latent_frames"]), (&json!(17), &json!(5)));
    assert_eq!(clip["size"], json!({ "width": 40, "height": 24 }));
    assert_eq!(clip["fps"], "24/1");
    assert!(clip["state_bytes"].as_u64() > Some(0) && clip["first_plan"]["macs"].as_u64() > Some(0), "{clip}");
    let parts = report["decodes"].as_array().unwrap();
    assert_eq!(parts.iter().map(|part| part["frames"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 4, 4, 4, 4]);
    assert_eq!(parts[4]["image"], 4);
    assert_eq!([&parts[2]["kernels_compiled"], &parts[2]["buffers_created"]], [0, 0]);
    assert!(report["plan"]["macs"].as_u64() > clip["first_plan"]["macs"].as_u64());
    assert!(report["seconds"].as_f64() > Some(0.0));
}

/// Converts a float to a level of a picture.
fn level(value: f32) -> u8 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
    let level = ((value.clamp(-1.0, 1.0) + 1.0) * 127.5).round() as u8;
    level
}

#[test]
fn numbered_pictures_are_the_frames() {
    let folder = Folder::for_video();
    let said = folder.decode_clip(&["-o", "frames/%05d.png"]).ok().stdout;
    assert!(said.contains("wrote 17 files, frames/00001.png to frames/00017.png (17 frames, 40x24)"), "{said}");
    let names: Vec<String> = (1..=17).map(|number| format!("{number:05}.png")).collect();
    assert_eq!(folder.frames(), names);
    let frames = fixture("clip_wan", "frames");
    let plane = 24 * 40;
    for (index, name) in names.iter().enumerate() {
        let picture = image::load_from_memory(&folder.read(&format!("frames/{name}"))).unwrap().into_rgb8();
        assert_eq!(picture.dimensions(), (40, 24));
        for (channel, pixel) in (0..3).flat_map(|channel| (0..plane).map(move |pixel| (channel, pixel))) {
            let (found, wanted) =
                (picture.as_raw()[pixel * 3 + channel], frames.data[(channel * 17 + index) * plane + pixel]);
            assert!(found.abs_diff(level(wanted)) <= 1, "{name}, channel {channel}, pixel {pixel}");
        }
    }
    // A shorter clip leaves the later pictures of this one in place and prints a note.
    folder.write_clip(&formula::latents(&[1, 16, 2, 3, 5]));
    let said = folder.decode_clip(&["-o", "frames/%05d.png"]).ok().stderr;
    assert!(said.contains("pictures up to number 17 remain, but this clip ends at 5"), "{said}");
}

#[test]
fn a_pipe_gets_what_a_file_gets_and_the_facts_go_to_stderr() {
    let folder = Folder::for_video();
    folder.decode_clip(&["-o", "clip.y4m", "--fps", "29.97"]).ok();
    let file = folder.read("clip.y4m");
    assert!(file.starts_with(b"YUV4MPEG2 W40 H24 F2997:100 "), "{:?}", String::from_utf8_lossy(&file[..60]));
    let output =
        folder.command(&Folder::decoding(&["-o", "-", "--fps", "2997/100"])).stderr(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout == file, "{} bytes in a pipe, {} in a file", output.stdout.len(), file.len());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("wrote - (17 frames, 40x24)"), "{said}");
    // Each frame has a line and three planes of 10 bits, in 2 bytes each.
    folder.decode_clip(&["-o", "ten.y4m", "--bits", "10"]).ok();
    let ten = folder.read("ten.y4m");
    let header = ten.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    assert!(String::from_utf8_lossy(&ten[..header]).contains("F24:1"), "24 without a word");
    assert_eq!(ten.len() - header, 17 * (6 + 40 * 24 * 3 * 2));
}

/// Tests the golden clip in other files: four axes where only a clip is possible, one frame of
/// latents, and the VAE's own latents.
#[test]
fn latents_of_every_shape() {
    let folder = Folder::for_video();
    folder.decode_clip(&["-o", "five.y4m"]).ok();
    let HostTensor { shape, data } = formula::latents(&LATENTS);
    folder.write_clip(&HostTensor { shape: shape[1..].to_vec(), data: data.clone() });
    folder.decode_clip(&["-o", "four.y4m"]).ok();
    assert_eq!(folder.read("four.y4m"), folder.read("five.y4m"));
    folder.decode_clip(&["-o", "own.y4m", "--unscaled"]).ok();
    assert_ne!(folder.read("own.y4m"), folder.read("five.y4m"));

    let first: Vec<f32> = data.chunks_exact(5 * 15).flat_map(|channel| &channel[..15]).copied().collect();
    folder.write_clip(&HostTensor { shape: vec![1, 16, 1, 3, 5], data: first.clone() });
    folder.decode_clip(&["-o", "frames/%d.png"]).ok();
    assert_eq!(folder.frames(), ["1.png"]);
    // A single image decodes as before.
    folder.write_clip(&HostTensor { shape: vec![1, 16, 3, 5], data: first });
    let said = folder.decode_clip(&["-o", "image.png"]).ok().stdout;
    assert!(said.contains("wrote image.png (40x24)"), "{said}");
}
