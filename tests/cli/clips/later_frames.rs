//! Clips of LTX-2, whose decoder sees later frames: the last frames come after the last latents.

use serde_json::json;

use super::assert_close;
use crate::tool::{Folder, fixture};

/// Nine latents of 2x3, which are 65 frames.
fn folder() -> Folder {
    Folder::of_clip("clip_ltx2", &[1, 8, 9, 2, 3], &[1, 3, 65, 16, 24])
}

#[test]
fn all_frames_of_a_decode_are_written() {
    let folder = folder();
    for device in ["gpu", "cpu"] {
        let report = folder.decode_clip(&["-o", "out.npy", "--json", "--device", device]).json();
        assert_close(&folder.npy("out.npy"), &fixture("clip_ltx2", "frames"));
        assert_eq!(report["measured_peak_bytes"], report["predicted_peak_bytes"]);
        assert_eq!((&report["clip"]["frames"], &report["clip"]["latent_frames"]), (&json!(65), &json!(9)));
        let parts = report["decodes"].as_array().unwrap();
        let frames: Vec<u64> = parts.iter().map(|part| part["frames"].as_u64().unwrap()).collect();
        assert!(frames.len() > 9 && frames.iter().sum::<u64>() == 65, "{frames:?}");
        assert!(frames.starts_with(&[0]) && frames.last() > Some(&0), "{frames:?}");
    }
    let whole = folder.decode_clip(&["-o", "frames/%d.png", "--json"]).json();
    let budget = whole["predicted_peak_bytes"].as_u64().unwrap() / 3 * 2;
    assert_eq!(folder.frames().len(), 65);
    let within =
        ["--memory-budget", &budget.to_string(), "--parking", "on", "--device", "gpu", "-o", "within.npy", "--json"];
    let report = folder.decode_clip(&within).json();
    assert!(report["measured_peak_bytes"].as_u64() <= Some(budget), "{}", report["measured_peak_bytes"]);
    folder.decode_clip(&["-o", "again.npy", "--device", "gpu"]).ok();
    assert_eq!(folder.read("within.npy"), folder.read("again.npy"));
}

#[test]
fn an_encode_gives_the_moments_of_the_class() {
    let folder = folder();
    let said = folder.run(&Folder::encoding("pixels.npy", &["--moments", "-o", "moments.npy"])).ok().stdout;
    assert!(said.contains("wrote moments.npy (of 65 frames, 24x16)"), "{said}");
    assert_close(&folder.npy("moments.npy"), &fixture("clip_ltx2", "moments"));
}
