//! Clips of HunyuanVideo 1.5, whose attention sees all earlier frames.

use super::assert_close;
use super::encode::from_stdin;
use crate::tool::{Folder, fixture};

/// Five latents of 3x5, which are 17 frames.
fn folder() -> Folder {
    Folder::of_clip("clip_hunyuan_video", &[1, 8, 5, 3, 5], &[1, 3, 17, 12, 20])
}

#[test]
fn decodes_and_encodes_are_those_of_the_class() {
    let folder = folder();
    for device in ["gpu", "cpu"] {
        let report = folder.decode_clip(&["-o", "out.npy", "--json", "--device", device]).json();
        assert_close(&folder.npy("out.npy"), &fixture("clip_hunyuan_video", "frames"));
        assert_eq!(report["measured_peak_bytes"], report["predicted_peak_bytes"]);
    }
    folder.run(&Folder::encoding("pixels.npy", &["--moments", "-o", "moments.npy"])).ok();
    assert_close(&folder.npy("moments.npy"), &fixture("clip_hunyuan_video", "moments"));
}

/// Tests that a plan counts keys and values of every frame, by hand: two tensors of 32 channels in
/// f16, padded to a multiple of four pixels.
#[test]
fn plans_grow_with_the_length() {
    let folder = folder();
    let kept = |frames: &str| {
        let args = ["plan", "--model", "model", "--size", "20x12", "--frames", frames, "--json"];
        folder.run_without_adapter(&args).json()["clip"]["state_bytes"].as_u64().unwrap()
    };
    assert_eq!(kept("81") - kept("41"), 10 * 2 * 16 * 32 * 2);
}

/// Tests a clip whose length nobody knows beforehand.
#[test]
fn a_pipe_may_have_as_many_latents_as_planned() {
    let folder = folder();
    folder.decode_clip(&["-o", "clip.y4m", "--fps", "16"]).ok();
    let encode =
        |latents: &str| from_stdin(&folder, folder.read("clip.y4m"), &["-o", "out.npy", "--clip-latents", latents]);
    encode("5").ok();
    assert_eq!(folder.npy("out.npy").shape, [1, 8, 5, 3, 5]);
    let error = encode("4");
    error.failed("a longer clip", 1, &["latents of the clip", "at most 4 latents", "--clip-latents", "one more"]);
}
