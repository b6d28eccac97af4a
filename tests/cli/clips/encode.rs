//! Encodes of clips that work.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::json;
use test_kit::formula;
use wgvae::HostTensor;
use wgvae::images::Posterior;
use wgvae::internals::npy::write_npy;
use wgvae::internals::safetensors::write_with_metadata;

use super::{LATENTS, PIXELS, assert_close};
use crate::tool::{Folder, Outcome, fixture};

fn encode(folder: &Folder, image: &str, more: &[&str]) -> Outcome {
    folder.run(&Folder::encoding(image, more)).ok()
}

/// Returns frame `index` of a clip `[1, c, t, h, w]`, as `[c, h, w]`.
fn frame_of(clip: &HostTensor, index: usize) -> HostTensor {
    let [_, channels, frames, height, width] = clip.shape[..] else { panic!("no clip") };
    let plane = height * width;
    let planes = (0..channels).flat_map(|channel| &clip.data[(channel * frames + index) * plane..][..plane]);
    HostTensor { shape: vec![channels, height, width], data: planes.copied().collect() }
}

#[test]
fn moments_are_those_of_the_class_and_a_budget_changes_no_bit() {
    let folder = Folder::for_video();
    let said = encode(&folder, "pixels.npy", &["--moments", "-o", "moments.npy", "--device", "gpu"]);
    assert!(said.stdout.contains("wrote moments.npy (of 17 frames, 47x31)"), "{}", said.stdout);
    assert!(said.stderr.contains("note: pixels.npy: 47x31 is no multiple of 8 pixels"), "{}", said.stderr);
    let moments = folder.npy("moments.npy");
    assert_close(&moments, &fixture("clip_wan", "moments"));

    let more = ["-o", "own.npy", "--unscaled", "--report", "report.json", "--json", "--device", "gpu"];
    let report = encode(&folder, "pixels.npy", &more).json();
    assert_eq!(report["measured_peak_bytes"], report["predicted_peak_bytes"]);
    assert_eq!(report["images"], json!([{ "file": "pixels.npy", "count": 17, "size": { "width": 47, "height": 31 } }]));
    let parts: Vec<u64> =
        report["encodes"].as_array().unwrap().iter().map(|part| part["frames"].as_u64().unwrap()).collect();
    assert_eq!(parts, [1, 4, 4, 4, 4]);
    let own = folder.npy("own.npy");
    assert_eq!(own.shape, LATENTS);
    assert_eq!(own.data, moments.data[..moments.data.len() / 2], "the mode is the mean");

    let budget = (report["predicted_peak_bytes"].as_u64().unwrap() * 3 / 5).to_string();
    let more = ["-o", "within.npy", "--unscaled", "--memory-budget", &budget, "--parking", "on", "--json"];
    let within = encode(&folder, "pixels.npy", &[&more[..], &["--device", "gpu"]].concat()).json();
    assert!(within["measured_peak_bytes"].as_u64() <= budget.parse().ok());
    assert_eq!(folder.read("within.npy"), folder.read("own.npy"));
}

/// Tests that each frame of latents has its own noise: the noise of the image with its index.
#[test]
fn samples_are_those_of_the_seed() {
    let folder = Folder::for_video();
    encode(&folder, "pixels.npy", &["-o", "moments.npy", "--moments"]);
    encode(&folder, "pixels.npy", &["-o", "sample.npy", "--sample", "--seed", "7", "--unscaled"]);
    let (moments, sample) = (folder.npy("moments.npy"), folder.npy("sample.npy"));
    for index in 0..LATENTS[2] {
        let posterior = Posterior::new(frame_of(&moments, index), 16).unwrap();
        let drawn = posterior.sample(7, u32::try_from(index).unwrap()).unwrap();
        assert_eq!(frame_of(&sample, index), drawn, "frame {index}");
    }
}

/// Tests that an encoded clip can be decoded: the file tells which scale its latents have.
#[test]
fn latents_are_decoded_again() {
    let folder = Folder::for_video();
    encode(&folder, "pixels.npy", &["-o", "scaled.safetensors"]);
    encode(&folder, "pixels.npy", &["-o", "own.safetensors", "--unscaled"]);
    for name in ["scaled", "own"] {
        let (latents, output) = (format!("{name}.safetensors"), format!("{name}.npy"));
        let args = ["decode", "--model", "model", "--latents", &latents, "--precision", "f32", "-o", &output];
        folder.run(&args).ok();
    }
    assert_close(&folder.npy("scaled.npy"), &folder.npy("own.npy"));
    let args = ["decode", "--model", "model", "--latents", "scaled.safetensors", "-o", "other.npy", "--unscaled"];
    let said = folder.run(&args).ok().stderr;
    assert!(said.contains("note: scaled.safetensors: ") && said.contains("which --unscaled overrides"), "{said}");
}

/// Makes a folder with a clip of 16 frames of 40 x 24 pixels, as numbered pictures and as y4m.
fn sixteen_frames() -> Folder {
    let folder = Folder::for_video();
    let mut latents = formula::latents(&LATENTS);
    latents.data.iter_mut().for_each(|value| *value *= 0.5);
    folder.write_clip(&latents);
    folder.decode_clip(&["-o", "frames/%05d.png"]).ok();
    folder.decode_clip(&["-o", "clip.y4m"]).ok();
    std::fs::remove_file(folder.path("frames/00017.png")).unwrap();
    let mut file = folder.read("clip.y4m");
    file.truncate(file.len() - 6 - 40 * 24 * 3);
    folder.write("clip.y4m", &file);
    folder
}

#[test]
fn frames_that_are_missing_are_added_if_that_is_asked_for() {
    let folder = sixteen_frames();
    for image in ["frames/%05d.png", "clip.y4m"] {
        let refused = folder.run_without_adapter(&Folder::encoding(image, &["-o", "out.npy"]));
        refused.failed(image, 1, &[image, "such as 17", "--pad repeat or mirror adds 1", "found 16"]);
        for (pad, how) in [("repeat", "the last one again"), ("mirror", "the last ones backwards")] {
            let output = format!("{pad}.npy");
            let said = encode(&folder, image, &["-o", &output, "--pad", pad]).stderr;
            assert!(said.contains("16 frames, and 1 added at the end") && said.contains(how), "{said}");
            assert_eq!(folder.npy(&output).shape, LATENTS);
        }
        assert_ne!(folder.read("repeat.npy"), folder.read("mirror.npy"));
    }
}

pub(super) fn from_stdin(folder: &Folder, input: Vec<u8>, more: &[&str]) -> Outcome {
    let mut command = folder.command(&Folder::encoding("-", more));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    Outcome { code: output.status.code(), stdout, stderr }
}

/// Tests a pipe, whose number of frames is known only at its end.
#[test]
fn a_pipe_is_what_a_file_is() {
    let folder = sixteen_frames();
    let file = folder.read("clip.y4m");
    encode(&folder, "clip.y4m", &["-o", "file.safetensors", "--pad", "mirror"]);
    let said = from_stdin(&folder, file.clone(), &["-o", "pipe.safetensors", "--pad", "mirror"]).ok();
    assert!(said.stderr.contains("16 frames, and 1 added at the end"), "{}", said.stderr);
    assert!(said.stdout.contains("(of 17 frames, 40x24)"), "{}", said.stdout);
    assert_eq!(folder.read("pipe.safetensors"), folder.read("file.safetensors"));

    let before = folder.names();
    let failed = |input: &[u8], words: &[&str]| {
        from_stdin(&folder, input.to_vec(), &["-o", "none.npy"]).failed("stdin", 1, words);
        assert_eq!(folder.names(), before);
    };
    failed(&file, &["frames of stdin", "such as 17", "found 16"]);
    failed(&file[..file.len() - 100], &["stdin", "cut short within frame 16"]);
    failed(&file[..file.iter().position(|byte| *byte == b'\n').unwrap() + 1], &["stdin", "at least one", "none"]);
    failed(b"", &["stdin", "it is empty"]);
}

/// Tests that one frame with an axis of time is a clip, and gives latents with that axis.
#[test]
fn a_clip_of_one_frame_keeps_its_axis() {
    let folder = Folder::for_video();
    let mut frame = formula::input("pixels", &[1, 3, 1, 16, 24], 1.0);
    folder.write("frame.npy", &write_npy(&frame));
    encode(&folder, "frame.npy", &["-o", "clip.npy"]);
    assert_eq!(folder.npy("clip.npy").shape, [1, 16, 1, 2, 3]);
    frame.shape.remove(2);
    folder.write("image.npy", &write_npy(&frame));
    encode(&folder, "image.npy", &["-o", "image-latents.npy"]);
    assert_eq!(folder.npy("image-latents.npy").data, folder.npy("clip.npy").data);
}

/// Tests notes about frames that are not used as stored, also where only a later one is so.
#[test]
fn notes_of_a_clip_are_about_all_of_its_frames() {
    let folder = Folder::for_video();
    let mut levels = formula::input("pixels", &[1, 3, 5, 16, 16], 1.0);
    levels.data.iter_mut().for_each(|value| *value = (*value + 1.0) * 127.5);
    folder.write("levels.npy", &write_npy(&levels));
    let said = encode(&folder, "levels.npy", &["-o", "out.npy"]).stderr;
    assert!(
        said.contains("note: levels.npy: values range from ") && said.contains("but pictures have -1 to 1"),
        "{said}"
    );

    let png = |number: u32, channels: usize, color| {
        let picture = crate::encode::png(&vec![9; 16 * 16 * channels], 16, 16, color);
        folder.write(&format!("frames/{number}.png"), &picture);
    };
    (1..=5).for_each(|number| png(number, 3, image::ExtendedColorType::Rgb8));
    png(3, 4, image::ExtendedColorType::Rgba8);
    png(4, 4, image::ExtendedColorType::Rgba8);
    let said = encode(&folder, "frames/%d.png", &["-o", "out.npy"]).stderr;
    let alpha: Vec<&str> = said.lines().filter(|line| line.contains("transparency is dropped")).collect();
    assert!(matches!(alpha[..], [line] if line.starts_with("note: frames/3.png: ")), "{said}");

    let y4m = |aspect: &str| {
        let header = format!("YUV4MPEG2 W8 H8 F24:1 {aspect} Cmono\nFRAME\n");
        folder.write("one.y4m", &[header.as_bytes(), &[7; 64]].concat());
        encode(&folder, "one.y4m", &["-o", "out.npy"]).stderr
    };
    let said = y4m("A10:11");
    assert!(said.contains("note: one.y4m: its pixels are 10:11, not square"), "{said}");
    assert_eq!([y4m("A1:1"), y4m("A0:0")].map(|said| said.contains("square")), [false, false]);
}

/// Tests that a decode has the frames per second of the encoded clip, unless told otherwise.
#[test]
fn the_rate_of_a_clip_is_kept() {
    let folder = Folder::for_video();
    let header = "YUV4MPEG2 W8 H8 F30000:1001 Cmono\nFRAME\n";
    folder.write("one.y4m", &[header.as_bytes(), &[7; 64]].concat());
    encode(&folder, "one.y4m", &["-o", "latents.safetensors"]);
    let given = ["decode", "--model", "model", "--latents", "latents.safetensors", "--precision", "f32"];
    let decode = |more: &[&str]| folder.run(&[&given, more].concat()).ok().stderr;
    let rate = |file: &str| {
        let bytes = folder.read(file);
        String::from_utf8_lossy(&bytes[..60]).split(' ').find(|field| field.starts_with('F')).map(str::to_owned)
    };
    let said = decode(&["-o", "kept.y4m"]);
    assert!(said.contains("note: latents.safetensors: 30000/1001 frames per second"), "{said}");
    assert_eq!(rate("kept.y4m").as_deref(), Some("F30000:1001"));
    let said = decode(&["-o", "own.y4m", "--fps", "16"]);
    assert!(!said.contains("frames per second"), "{said}");
    assert_eq!(rate("own.y4m").as_deref(), Some("F16:1"));
    assert!(!decode(&["-o", "frames/%d.png"]).contains("frames per second"));

    let metadata = [("fps", "29.97002997002997".to_owned())].into_iter().collect();
    let foreign = write_with_metadata(&[("latents", &formula::latents(&[1, 16, 1, 1, 1]))], &metadata).unwrap();
    folder.write("latents.safetensors", &foreign);
    let said = decode(&["-o", "foreign.y4m"]);
    assert!(said.contains("24/1 frames per second") && said.contains("29.97002997002997"), "{said}");
    assert_eq!(rate("foreign.y4m").as_deref(), Some("F24:1"));
}

/// Tests that frames lose their edges, with a note, if their sides are no multiples of 8: 47 x 31
/// becomes 40 x 24.
#[test]
fn the_middle_of_frames_is_encoded() {
    let folder = Folder::for_video();
    let levels: Vec<u8> = (0..47 * 31 * 3_u32).map(|index| (index * 37 % 251) as u8).collect();
    let picture = crate::encode::png(&levels, 47, 31, image::ExtendedColorType::Rgb8);
    folder.write("frames/1.png", &picture);
    let said = encode(&folder, "frames/%d.png", &["-o", "picture.npy"]).stderr;
    assert!(said.contains("the middle 40x24 of each frame, as 47x31 is no multiple of 8 pixels"), "{said}");
    // The crop begins at row 15 - 12 and column 23 - 20.
    let value = |row: usize, column: usize, channel: usize| levels[((row + 3) * 47 + column + 3) * 3 + channel];
    let floats = (0..3).flat_map(|channel| {
        (0..24 * 40).map(move |at| 2.0 * (f32::from(value(at / 40, at % 40, channel)) / 255.0) - 1.0)
    });
    let clip = HostTensor { shape: vec![1, 3, 24, 40], data: floats.collect() };
    folder.write("middle.npy", &write_npy(&clip));
    encode(&folder, "middle.npy", &["-o", "floats.npy"]);
    assert_eq!(folder.npy("picture.npy").data, folder.npy("floats.npy").data);
    let exact = folder.run_without_adapter(&Folder::encoding("frames/%d.png", &["-o", "out.npy", "--exact-size"]));
    exact.failed("exact", 1, &["size of frames/%d.png", "multiples of 8 pixels", "47x31"]);
    assert_eq!(PIXELS[3..], [31, 47]);
}
